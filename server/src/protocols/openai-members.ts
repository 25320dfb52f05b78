import {
  type Choice,
  formed,
  limited,
  limitedEach,
  type Member,
  memberTable,
  needing,
  neutral,
  priced,
  refused,
  typed,
} from '../catalogue/member-table.ts'
import { withBeyond, withElsewhere } from './beyond-protocols.ts'
import { CACHE, IN_INPUT, NO_AUDIO, OTHER_MODEL, PRICED_TIERS, RUN_UPSTREAM, SENT_ELSEWHERE, TIERS } from './reasons.ts'
import { counted, MODEL, messagesWith, OUTPUT_LIMIT, STREAM } from './typed-members.ts'

/** Chat completions: https://platform.openai.com/docs/api-reference/chat/create, and what others add to them. */

const cacheBreakpoint = memberTable('prompt_cache_breakpoint', {
  mode: neutral(),
  ttl: limited(['30m'], CACHE),
})
export const BREAKPOINT = formed(
  'object',
  neutral(() => cacheBreakpoint),
)

const imageUrl = memberTable('image_url', {
  url: priced('as a picture; data of another type as a file; no audio'),
  detail: priced('as a picture'),
})
const file = memberTable('file', {
  file_data: priced('as a file'),
  file_id: priced('as a file'),
  filename: priced(IN_INPUT),
})

const inputAudio = memberTable('input_audio', { data: priced('as audio'), format: neutral() })

const part: Choice = {
  title: 'parts of a content',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    text: memberTable('parts of type text', {
      type: neutral(),
      text: priced(IN_INPUT),
      prompt_cache_breakpoint: BREAKPOINT,
    }),
    refusal: memberTable('parts of type refusal', { type: neutral(), refusal: priced(IN_INPUT) }),
    image_url: memberTable('parts of type image_url', {
      type: neutral(),
      image_url: priced('as a picture', () => imageUrl),
      prompt_cache_breakpoint: BREAKPOINT,
    }),
    file: memberTable('parts of type file', {
      type: neutral(),
      file: priced('as a file', () => file),
      prompt_cache_breakpoint: BREAKPOINT,
    }),
    input_audio: memberTable(
      'parts of type input_audio',
      {
        type: neutral(),
        input_audio: priced('as audio', () => inputAudio),
        prompt_cache_breakpoint: BREAKPOINT,
      },
      { needs: { need: 'input_audio', why: NO_AUDIO } },
    ),
    audio_url: NO_AUDIO,
  },
  others: undefined,
}

const calledFunction = memberTable('function of a call', {
  name: priced(IN_INPUT),
  arguments: priced(IN_INPUT),
  parsed_arguments: priced(IN_INPUT),
})
const calledCustom = memberTable('custom of a call', { name: priced(IN_INPUT), input: priced(IN_INPUT) })
const toolCall = memberTable('calls of tools', {
  id: priced(IN_INPUT),
  type: neutral(),
  index: neutral(),
  function: priced(IN_INPUT, () => calledFunction),
  custom: priced(IN_INPUT, () => calledCustom),
})

const message = memberTable('messages', {
  role: priced(IN_INPUT),
  content: priced(IN_INPUT, () => part),
  name: priced(IN_INPUT),
  refusal: priced(IN_INPUT),
  reasoning: priced(IN_INPUT),
  reasoning_content: priced(IN_INPUT),
  reasoning_details: priced(IN_INPUT),
  annotations: priced(IN_INPUT),
  parsed: priced(IN_INPUT),
  tool_calls: priced(IN_INPUT, () => toolCall),
  tool_call_id: priced(IN_INPUT),
  function_call: priced(IN_INPUT, () => calledFunction),
  audio: refused(NO_AUDIO),
})

const declaredFunction = memberTable('function of a tool', {
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  parameters: priced(IN_INPUT),
  strict: neutral(),
})
const declaredCustom = memberTable('custom of a tool', {
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  format: priced(IN_INPUT),
})

const tool: Choice = {
  title: 'tools',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    function: memberTable('tools of type function', {
      type: neutral(),
      function: priced(IN_INPUT, () => declaredFunction),
    }),
    custom: memberTable('tools of type custom', { type: neutral(), custom: priced(IN_INPUT, () => declaredCustom) }),
  },
  others: RUN_UPSTREAM,
}

const named = memberTable('name of a tool', { name: neutral() })
const allowedTools = memberTable('allowed_tools', { mode: neutral(), tools: neutral() })
const toolChoice = memberTable('tool_choice', {
  type: neutral(),
  function: neutral(() => named),
  custom: neutral(() => named),
  allowed_tools: neutral(() => allowedTools),
})

const jsonSchema = memberTable('json_schema', {
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  schema: priced(IN_INPUT),
  strict: neutral(),
})
const responseFormat = memberTable('response_format', {
  type: neutral(),
  json_schema: priced(IN_INPUT, () => jsonSchema),
})

const streamOptions = memberTable('stream_options', {
  include_usage: neutral(),
  include_obfuscation: neutral(),
})
const cacheOptions = memberTable('prompt_cache_options', { mode: neutral(), ttl: limited(['30m'], CACHE) })

export const CHOICES_MOST = 128

const spoken = memberTable('audio', { voice: neutral(), format: neutral() })

const CHAT_MEMBERS: Readonly<Record<string, Member>> = {
  model: MODEL,
  messages: messagesWith(() => message),
  max_completion_tokens: OUTPUT_LIMIT,
  max_tokens: OUTPUT_LIMIT,
  n: counted('answers', CHOICES_MOST),
  stream: STREAM,
  stream_options: formed(
    'object',
    neutral(() => streamOptions),
  ),
  tools: formed(
    'list',
    priced(IN_INPUT, () => tool),
  ),
  functions: formed(
    'list',
    priced(IN_INPUT, () => declaredFunction),
  ),
  tool_choice: neutral(() => toolChoice),
  function_call: neutral(() => named),
  parallel_tool_calls: neutral(),
  response_format: priced(IN_INPUT, () => responseFormat),
  reasoning_effort: neutral(),
  verbosity: neutral(),
  temperature: neutral(),
  top_p: neutral(),
  top_k: neutral(),
  min_p: neutral(),
  frequency_penalty: neutral(),
  presence_penalty: neutral(),
  repetition_penalty: neutral(),
  logit_bias: neutral(),
  logprobs: neutral(),
  top_logprobs: neutral(),
  seed: neutral(),
  stop: neutral(),
  store: neutral(),
  metadata: neutral(),
  user: neutral(),
  safety_identifier: neutral(),
  prompt_cache_key: neutral(),
  prompt_cache_options: formed(
    'object',
    neutral(() => cacheOptions),
  ),
  prompt_cache_retention: limited(['in_memory', 'in-memory'], CACHE),
  service_tier: limited(['auto', 'default'], TIERS, PRICED_TIERS),
  modalities: limitedEach(['text'], 'other answers have prices of their own.', { audio: 'output_audio' }),
  moderation: refused(OTHER_MODEL),
  best_of: refused('it generates more choices than it returns. Use "n".'),
  audio: needing('output_audio', 'spoken answers have a price of their own.', () => spoken),
}
export const CHAT = memberTable('chat completions', withBeyond('max_completion_tokens', CHAT_MEMBERS), {
  required: ['model', 'messages'],
})

const ONLY_TEXTS = 'only texts are embedded.'
const IN_THE_INPUT = 'what is to be embedded stands in "input".'

const EMBEDDINGS_MEMBERS: Readonly<Record<string, Member>> = {
  model: MODEL,
  input: typed({ anyOf: [{ type: 'string' }, { type: 'array', minItems: 1 }] }, priced('each input is in the bound')),
  dimensions: neutral(),
  encoding_format: limited(['float', 'base64'], 'other formats do not report their cost.'),
  user: neutral(),
  stream: limited([false], 'embeddings always come whole.'),
  service_tier: limited(['auto', 'default'], TIERS),
  messages: refused(IN_THE_INPUT),
  inputs: refused(IN_THE_INPUT),
  documents: refused(IN_THE_INPUT),
  image: refused(ONLY_TEXTS),
  images: refused(ONLY_TEXTS),
  mm_processor_kwargs: refused(ONLY_TEXTS),
  chat_template: refused('a template can repeat the input without bound.'),
}
export const EMBEDDINGS = memberTable('embeddings', withElsewhere(EMBEDDINGS_MEMBERS), {
  required: ['model', 'input'],
})

const IN_PARTS = 'partial images have their own price and are not sent here.'
export const DEARER = 'it may change the price of an image.'

export const PICTURES_MOST = 10
export const WORD_LENGTH = 32
const SIZED = typed(
  { type: 'string', minLength: 1, maxLength: WORD_LENGTH },
  priced('a picture has a price by its size and quality'),
)

/** Any other member may make a picture dearer, in a way that size and quality do not tell. */
export const IMAGES = memberTable(
  'pictures',
  {
    model: MODEL,
    prompt: typed({ type: 'string', minLength: 1 }, priced(IN_INPUT)),
    n: counted('pictures', PICTURES_MOST),
    size: SIZED,
    quality: SIZED,
    style: neutral(),
    background: neutral(),
    moderation: neutral(),
    user: neutral(),
    safety_identifier: neutral(),
    output_format: limited(['png', 'jpeg', 'webp'], 'other formats have their own prices.'),
    output_compression: neutral(),
    response_format: limited(['url', 'b64_json'], 'other formats do not report the number of images.'),
    stream: limited([false], IN_PARTS),
    partial_images: refused(IN_PARTS),
    complexity: refused(DEARER),
    frame_count: refused(DEARER),
    frame_duration_ms: refused(DEARER),
    svg: refused(OTHER_MODEL),
    provider: refused(SENT_ELSEWHERE),
    extra_body: refused(SENT_ELSEWHERE),
    api_base: refused(SENT_ELSEWHERE),
  },
  { others: DEARER, required: ['model', 'prompt'] },
)
