import {
  type Choice,
  formed,
  limited,
  limitedEach,
  type Member,
  memberTable,
  neutral,
  priced,
  refused,
  type Table,
  typed,
} from '../catalogue/member-table.ts'
import { SERVER_TOOLS, type ServerTool } from '../catalogue/price-classes.ts'
import { withBeyond } from './beyond-protocols.ts'
import { BREAKPOINT, DEARER } from './openai-members.ts'
import {
  CACHE,
  HOSTED,
  IN_INPUT,
  NO_AUDIO,
  OTHER_MODEL,
  PRICED_TIERS,
  SEARCH,
  STORED,
  SUMMARY,
  TIERS,
} from './reasons.ts'
import { MODEL, OUTPUT_LIMIT, STREAM } from './typed-members.ts'

/** Responses: https://platform.openai.com/docs/api-reference/responses/create, and what coding agents add to them. */

/** One library refers to what it was given unless it is told that this was not stored. */
const REFERENCE = `${STORED} (In the AI SDK: providerOptions.openai.store = false.)`
/** Its price depends on the model, and is another than that of `web_search`. */
const PREVIEW = 'it has another price than web_search. Use that.'
const NO_SEARCH = `${SEARCH} Leave the tool out (in Codex: web_search = "disabled").`

const textPart = (type: string, more: Readonly<Record<string, Member>> = {}): Table =>
  memberTable(`parts of type ${type}`, { type: neutral(), text: priced(IN_INPUT), ...more })

const part: Choice = {
  title: 'parts of an item',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    input_text: textPart('input_text', { prompt_cache_breakpoint: BREAKPOINT }),
    output_text: textPart('output_text', {
      annotations: priced(IN_INPUT),
      logprobs: priced(IN_INPUT),
      parsed: priced(IN_INPUT),
    }),
    summary_text: textPart('summary_text'),
    reasoning_text: textPart('reasoning_text'),
    refusal: memberTable('parts of type refusal, of an item', { type: neutral(), refusal: priced(IN_INPUT) }),
    input_image: memberTable('parts of type input_image', {
      type: neutral(),
      image_url: priced('as a picture; data of another type as a file; no audio'),
      file_id: priced('as a picture'),
      detail: priced('as a picture'),
      prompt_cache_breakpoint: BREAKPOINT,
    }),
    input_file: memberTable('parts of type input_file', {
      type: neutral(),
      file_data: priced('as a file'),
      file_id: priced('as a file'),
      file_url: priced('as a file'),
      filename: priced(IN_INPUT),
      detail: priced('as a file'),
      prompt_cache_breakpoint: BREAKPOINT,
    }),
    encrypted_content: memberTable('parts of type encrypted_content', {
      type: neutral(),
      encrypted_content: priced(IN_INPUT),
    }),
    input_audio: NO_AUDIO,
  },
  others: undefined,
}

const caller = memberTable('caller of a tool', { type: neutral(), caller_id: neutral() })
/** What every item may have. */
const ITEM = { type: neutral(), id: priced(IN_INPUT), status: neutral(), created_by: neutral() }
const CALL = {
  ...ITEM,
  call_id: priced(IN_INPUT),
  name: priced(IN_INPUT),
  namespace: priced(IN_INPUT),
  caller: neutral(() => caller),
  async: neutral(),
}

const formatTable = memberTable('format of a text', {
  type: neutral(),
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  schema: priced(IN_INPUT),
  strict: neutral(),
})
const textConfig = memberTable('text', {
  format: priced(IN_INPUT, () => formatTable),
  verbosity: neutral(),
})
const reasoning = memberTable('reasoning', {
  effort: neutral(),
  summary: neutral(),
  generate_summary: neutral(),
  context: neutral(),
  mode: limited(['standard'], 'other modes may generate beyond the output limit.'),
})
const TEXT = formed(
  'object',
  priced(IN_INPUT, () => textConfig),
)
const REASONING = formed(
  'object',
  neutral(() => reasoning),
)

const declared = {
  type: neutral(),
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  allowed_callers: neutral(),
  async: neutral(),
  defer_loading: neutral(),
}

/** A tool that the upstream runs, at a price for each call. */
const hosted = (name: ServerTool, why: string, members: Readonly<Record<string, Member>>): Table =>
  memberTable(
    `tools of type ${name}, of a response`,
    { type: neutral(), allowed_callers: neutral(), ...members },
    { needs: { need: `tool:${name}`, why } },
  )

const WEB_SEARCH = hosted('web_search', NO_SEARCH, {
  filters: priced(IN_INPUT),
  search_context_size: neutral(),
  search_content_types: neutral(),
  user_location: priced(IN_INPUT),
  external_web_access: neutral(),
})
const container = memberTable('container of a code interpreter', {
  type: limited(['auto'], STORED),
  memory_limit: refused('a larger one has a price of its own.'),
  file_ids: refused(STORED),
  network_policy: refused('it refers to your own account with the provider, which is not used here.'),
})

const tool: Choice = {
  title: 'tools of a response',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    function: memberTable('tools of type function, of a response', {
      ...declared,
      parameters: priced(IN_INPUT),
      output_schema: priced(IN_INPUT),
      strict: neutral(),
    }),
    custom: memberTable('tools of type custom, of a response', { ...declared, format: priced(IN_INPUT) }),
    namespace: memberTable('tools of type namespace', {
      type: neutral(),
      name: priced(IN_INPUT),
      description: priced(IN_INPUT),
      tools: formed(
        'list',
        priced(IN_INPUT, () => tool),
      ),
    }),
    web_search: WEB_SEARCH,
    web_search_2025_08_26: WEB_SEARCH,
    web_search_preview: PREVIEW,
    web_search_preview_2025_03_11: PREVIEW,
    file_search: hosted('file_search', HOSTED, {
      vector_store_ids: neutral(),
      max_num_results: neutral(),
      ranking_options: neutral(),
      filters: neutral(),
    }),
    code_interpreter: hosted('code_interpreter', HOSTED, {
      container: formed(
        'object',
        neutral(() => container),
      ),
    }),
    image_generation: hosted('image_generation', HOSTED, {
      action: neutral(),
      size: neutral(),
      quality: neutral(),
      background: neutral(),
      moderation: neutral(),
      output_format: limited(['png', 'jpeg', 'webp'], DEARER),
      output_compression: neutral(),
      input_fidelity: neutral(),
      complexity: refused(DEARER),
      frame_count: refused(DEARER),
      frame_duration_ms: refused(DEARER),
      svg: refused(OTHER_MODEL),
      model: refused(OTHER_MODEL),
      partial_images: refused('partial images have their own price and are not sent here.'),
      input_image_mask: refused(STORED),
    }),
  },
  others: HOSTED,
}
const TOOLS = formed(
  'list',
  priced(IN_INPUT, () => tool),
)

/** What a tool of the upstream's own has left in a conversation. It may fill the context window. */
const hostedCall = (name: ServerTool, members: readonly string[]): Table =>
  memberTable(
    `items of type ${name}_call`,
    { ...ITEM, ...Object.fromEntries(members.map((member) => [member, priced('the context window is held')])) },
    { needs: { need: `tool:${name}`, why: HOSTED } },
  )

/** An item of a conversation. One without a type is a message. */
const item: Choice = {
  title: 'items of the input',
  by: 'type',
  kindOf: (type) => type ?? 'message',
  whenLeftOut: 'message',
  kinds: {
    message: memberTable('items of type message', {
      ...ITEM,
      role: priced(IN_INPUT),
      content: priced(IN_INPUT, () => part),
      phase: neutral(),
    }),
    function_call: memberTable('items of type function_call', {
      ...CALL,
      arguments: priced(IN_INPUT),
      parsed_arguments: priced(IN_INPUT),
    }),
    function_call_output: memberTable('items of type function_call_output', {
      ...CALL,
      output: priced(IN_INPUT, () => part),
    }),
    custom_tool_call: memberTable('items of type custom_tool_call', { ...CALL, input: priced(IN_INPUT) }),
    custom_tool_call_output: memberTable('items of type custom_tool_call_output', {
      ...CALL,
      output: priced(IN_INPUT, () => part),
    }),
    reasoning: memberTable('items of type reasoning', {
      ...ITEM,
      summary: priced(IN_INPUT, () => part),
      content: priced(IN_INPUT, () => part),
      encrypted_content: priced(IN_INPUT),
    }),
    compaction: memberTable('items of type compaction', { ...ITEM, encrypted_content: priced(IN_INPUT) }),
    additional_tools: memberTable('items of type additional_tools', { ...ITEM, role: priced(IN_INPUT), tools: TOOLS }),
    agent_message: memberTable('items of type agent_message', {
      ...ITEM,
      author: priced(IN_INPUT),
      recipient: priced(IN_INPUT),
      content: priced(IN_INPUT, () => part),
      agent: priced(IN_INPUT),
    }),
    configuration_update: memberTable('items of type configuration_update', {
      ...ITEM,
      reasoning: REASONING,
      text: TEXT,
    }),
    item_reference: REFERENCE,
    compaction_trigger: SUMMARY,
    web_search_call: hostedCall('web_search', ['action']),
    file_search_call: hostedCall('file_search', ['queries', 'results']),
    code_interpreter_call: hostedCall('code_interpreter', ['code', 'container_id', 'outputs']),
    image_generation_call: hostedCall('image_generation', [
      ...['result', 'revised_prompt', 'action', 'size', 'quality', 'background', 'output_format', 'error', 'svg_usage'],
    ]),
    computer_call: HOSTED,
    computer_call_output: HOSTED,
    local_shell_call: HOSTED,
    local_shell_call_output: HOSTED,
    shell_call: HOSTED,
    shell_call_output: HOSTED,
    apply_patch_call: HOSTED,
    apply_patch_call_output: HOSTED,
    mcp_call: HOSTED,
    mcp_list_tools: HOSTED,
    mcp_approval_request: HOSTED,
    mcp_approval_response: HOSTED,
    tool_search_call: HOSTED,
    tool_search_output: HOSTED,
    program: HOSTED,
    program_output: HOSTED,
  },
  others: undefined,
}

const named = (type: string) =>
  memberTable(`tool_choice of type ${type}`, { type: neutral(), name: neutral(), namespace: neutral() })
const chosen = (name: ServerTool): Table =>
  memberTable(`tool_choice of type ${name}`, { type: neutral() }, { needs: { need: `tool:${name}`, why: HOSTED } })
const toolChoice: Choice = {
  title: 'tool_choice of a response',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    function: named('function'),
    custom: named('custom'),
    allowed_tools: memberTable('tool_choice of type allowed_tools', {
      type: neutral(),
      mode: neutral(),
      tools: neutral(),
    }),
    ...Object.fromEntries(SERVER_TOOLS.map((name) => [name, chosen(name)])),
  },
  others: HOSTED,
}

const streamOptions = memberTable('stream_options of a response', { include_obfuscation: neutral() })
const cacheOptions = memberTable('prompt_cache_options of a response', {
  mode: neutral(),
  ttl: limited(['30m'], CACHE),
  prewarm: neutral(),
  comparison_response_id: refused('nothing is stored here, so that there is no response to compare with.'),
})
const image = memberTable('image', {
  context_compression: limited(['auto'], 'it changes the token count of an image.'),
})

const RESPONSES_MEMBERS: Readonly<Record<string, Member>> = {
  model: MODEL,
  input: typed(
    { anyOf: [{ type: 'string' }, { type: 'array', minItems: 1 }] },
    priced(IN_INPUT, () => item),
  ),
  instructions: priced(IN_INPUT),
  max_output_tokens: OUTPUT_LIMIT,
  stream: STREAM,
  stream_options: formed(
    'object',
    neutral(() => streamOptions),
  ),
  store: limited([false], STORED),
  include: neutral(),
  tools: TOOLS,
  tool_choice: neutral(() => toolChoice),
  parallel_tool_calls: neutral(),
  max_tool_calls: typed({ type: 'integer', minimum: 1 }, priced('as many calls of tools are held')),
  text: TEXT,
  reasoning: REASONING,
  truncation: neutral(),
  temperature: neutral(),
  top_p: neutral(),
  top_logprobs: neutral(),
  metadata: neutral(),
  client_metadata: neutral(),
  user: neutral(),
  safety_identifier: neutral(),
  prompt_cache_key: neutral(),
  prompt_cache_options: formed(
    'object',
    neutral(() => cacheOptions),
  ),
  prompt_cache_retention: limited(['in_memory', 'in-memory'], CACHE),
  service_tier: limited(['auto', 'default'], TIERS, PRICED_TIERS),
  image: formed(
    'object',
    neutral(() => image),
  ),
  modalities: limitedEach(['text'], 'other answers have prices of their own.'),
  audio: refused('spoken answers have a price of their own.'),
  previous_response_id: refused(STORED),
  conversation: refused(STORED),
  prompt: refused('prompts that the provider stores cannot be priced in advance. Send it in "instructions".'),
  background: limited([false], 'a call ends with its answer here. Leave it out, or ask for a stream.'),
  context_management: refused(SUMMARY),
  moderation: refused(OTHER_MODEL),
  access_programs: refused('they refer to your own account with the provider, which is not used here.'),
}

export const RESPONSES = memberTable('responses', withBeyond('max_output_tokens', RESPONSES_MEMBERS), {
  required: ['model', 'input'],
})
