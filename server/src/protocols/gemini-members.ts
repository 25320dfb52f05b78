import {
  formed,
  limited,
  limitedEach,
  type Member,
  memberTable,
  needing,
  neutral,
  priced,
  refused,
  type Table,
  typed,
} from '../catalogue/member-table.ts'
import { withBeyond, withElsewhere } from './beyond-protocols.ts'
import { IN_INPUT, NO_AUDIO, OTHER_MODEL, PRICED_TIERS, RUN_UPSTREAM, TIERS } from './reasons.ts'
import { counted, OUTPUT_LIMIT } from './typed-members.ts'

/** Contents, as a stream or whole, and the count of their tokens: https://ai.google.dev/api/generate-content. */
const STORED = 'content that the provider stores cannot be priced in advance.'
const NOT_TEXT = 'answers other than text have their own prices.'

const spelt = (title: string, members: Readonly<Record<string, Member>>, others?: string): Table =>
  memberTable(title, members, { spelling: 'camel or snake', ...(others !== undefined && { others }) })

const data = (title: string, where: string): Table =>
  spelt(title, {
    mimeType: priced('by its kind; no audio'),
    [where]: priced('by its kind'),
    displayName: priced(IN_INPUT),
  })
export const INLINE_DATA = data('inlineData', 'data')
export const FILE_DATA = data('fileData', 'fileUri')

const functionCall = spelt('functionCall', {
  id: priced(IN_INPUT),
  name: priced(IN_INPUT),
  args: priced(IN_INPUT),
  partialArgs: priced(IN_INPUT),
  willContinue: neutral(),
})
export const FUNCTION_RESPONSE = spelt('functionResponse', {
  id: priced(IN_INPUT),
  name: priced(IN_INPUT),
  response: priced(IN_INPUT),
  parts: priced(IN_INPUT, () => PART),
  scheduling: neutral(),
  willContinue: neutral(),
})
const executableCode = spelt('executableCode', {
  id: priced(IN_INPUT),
  code: priced(IN_INPUT),
  language: priced(IN_INPUT),
})
const codeExecutionResult = spelt('codeExecutionResult', {
  id: priced(IN_INPUT),
  outcome: priced(IN_INPUT),
  output: priced(IN_INPUT),
})
const toolCall = spelt('toolCall', { id: priced(IN_INPUT), toolType: priced(IN_INPUT), args: priced(IN_INPUT) })
const toolResponse = spelt('toolResponse', {
  id: priced(IN_INPUT),
  toolType: priced(IN_INPUT),
  response: priced(IN_INPUT),
})
export const VIDEO_METADATA = spelt('videoMetadata', {
  startOffset: neutral(),
  endOffset: neutral(),
  fps: priced('the context window is held'),
})
export const PART_RESOLUTION = spelt('mediaResolution of a part', {
  level: neutral(),
  numTokens: priced('the context window is held'),
})
const speechMetadata = spelt('speechMetadata', { speaker: priced(IN_INPUT), style: priced(IN_INPUT) })

export const PART = spelt('parts', {
  text: priced(IN_INPUT),
  inlineData: priced('by its kind', () => INLINE_DATA),
  fileData: priced('the context window is held', () => FILE_DATA),
  functionCall: priced(IN_INPUT, () => functionCall),
  functionResponse: priced(IN_INPUT, () => FUNCTION_RESPONSE),
  executableCode: priced(IN_INPUT, () => executableCode),
  codeExecutionResult: priced(IN_INPUT, () => codeExecutionResult),
  toolCall: priced('the context window is held', () => toolCall),
  toolResponse: priced('the context window is held', () => toolResponse),
  thought: neutral(),
  thoughtSignature: priced(IN_INPUT),
  partMetadata: priced(IN_INPUT),
  speechMetadata: priced(IN_INPUT, () => speechMetadata),
  videoMetadata: priced('by its members', () => VIDEO_METADATA),
  mediaResolution: priced('by its members', () => PART_RESOLUTION),
  mediaProcessing: limited(['MEDIA_PROCESSING_UNSPECIFIED'], 'it changes the token count of a part.'),
  audioTranscription: refused(NO_AUDIO),
})

export const CONTENT = spelt('contents', { role: priced(IN_INPUT), parts: priced(IN_INPUT, () => PART) })

const declaration = spelt('functionDeclarations', {
  name: priced(IN_INPUT),
  description: priced(IN_INPUT),
  behavior: neutral(),
  parameters: priced(IN_INPUT),
  parametersJsonSchema: priced(IN_INPUT),
  response: priced(IN_INPUT),
  responseJsonSchema: priced(IN_INPUT),
})
export const TOOL = spelt(
  'tools',
  {
    functionDeclarations: priced(IN_INPUT, () => declaration),
    retrieval: refused(RUN_UPSTREAM),
    googleMaps: refused(RUN_UPSTREAM),
    mcpServers: refused(RUN_UPSTREAM),
    codeExecution: refused(RUN_UPSTREAM),
    computerUse: refused(RUN_UPSTREAM),
    enterpriseWebSearch: refused(RUN_UPSTREAM),
    exaAiSearch: refused(RUN_UPSTREAM),
    googleSearch: refused(RUN_UPSTREAM),
    googleSearchRetrieval: refused(RUN_UPSTREAM),
    parallelAiSearch: refused(RUN_UPSTREAM),
    urlContext: refused(RUN_UPSTREAM),
    fileSearch: refused(RUN_UPSTREAM),
  },
  RUN_UPSTREAM,
)

const functionCalling = spelt('functionCallingConfig', {
  mode: neutral(),
  allowedFunctionNames: neutral(),
  streamFunctionCallArguments: neutral(),
})
const place = spelt('latLng', { latitude: neutral(), longitude: neutral() })
const retrievalConfig = spelt('retrievalConfig', { languageCode: neutral(), latLng: neutral(() => place) })
const toolConfig = spelt('toolConfig', {
  functionCallingConfig: neutral(() => functionCalling),
  retrievalConfig: neutral(() => retrievalConfig),
  includeServerSideToolInvocations: neutral(),
})

const safetySetting = spelt('safetySettings', { category: neutral(), method: neutral(), threshold: neutral() })
const thinkingConfig = spelt('thinkingConfig', {
  includeThoughts: neutral(),
  thinkingBudget: priced('within the output limit'),
  thinkingLevel: neutral(),
})

const textFormat = spelt('text of responseFormat', { mimeType: neutral(), schema: priced(IN_INPUT) })
const responseFormat = spelt(
  'responseFormat',
  {
    text: priced(IN_INPUT, () => textFormat),
    audio: refused(NOT_TEXT),
    image: refused(NOT_TEXT),
    video: refused(NOT_TEXT),
  },
  NOT_TEXT,
)

export const CHOICES_MOST = 8

export const GENERATION_CONFIG = spelt('generationConfig', {
  maxOutputTokens: OUTPUT_LIMIT,
  candidateCount: counted('answers', CHOICES_MOST),
  temperature: neutral(),
  topP: neutral(),
  topK: neutral(),
  stopSequences: neutral(),
  seed: neutral(),
  logprobs: neutral(),
  responseLogprobs: neutral(),
  presencePenalty: neutral(),
  frequencyPenalty: neutral(),
  responseMimeType: neutral(),
  responseSchema: priced(IN_INPUT),
  responseJsonSchema: priced(IN_INPUT),
  _responseJsonSchema: priced(IN_INPUT),
  responseFormat: formed(
    'objects',
    priced(IN_INPUT, () => responseFormat),
  ),
  responseModalities: limitedEach(['TEXT'], NOT_TEXT, { AUDIO: 'output_audio', IMAGE: 'output_image' }),
  thinkingConfig: neutral(() => thinkingConfig),
  mediaResolution: priced('a part is held at its highest resolution'),
  audioTimestamp: neutral(),
  enableAffectiveDialog: refused(NOT_TEXT),
  enableEnhancedCivicAnswers: refused(RUN_UPSTREAM),
  speechConfig: needing('output_audio', NOT_TEXT),
  imageConfig: needing('output_image', NOT_TEXT),
  videoConfig: refused(NOT_TEXT),
  translationConfig: refused(NOT_TEXT),
  routingConfig: refused(OTHER_MODEL),
  modelSelectionConfig: refused(OTHER_MODEL),
  modelConfig: refused(OTHER_MODEL),
  audioTranscriptionConfig: refused(OTHER_MODEL),
})

const BODY: Readonly<Record<string, Member>> = {
  model: priced('in the path alone; in what is counted it is replaced'),
  contents: typed(
    { minItems: 1 },
    priced(IN_INPUT, () => CONTENT),
  ),
  systemInstruction: priced(IN_INPUT, () => CONTENT),
  tools: formed(
    'objects',
    priced(IN_INPUT, () => TOOL),
  ),
  toolConfig: neutral(() => toolConfig),
  safetySettings: neutral(() => safetySetting),
  generationConfig: priced('by its members', () => GENERATION_CONFIG),
  serviceTier: limited(['standard', 'unspecified'], TIERS, PRICED_TIERS),
  labels: neutral(),
  store: neutral(),
  cachedContent: refused(STORED),
  continuationToken: refused(STORED),
  modelArmorConfig: refused(RUN_UPSTREAM),
  generationOutputConfig: refused(RUN_UPSTREAM),
}

const LIMIT = 'generationConfig.maxOutputTokens'
export const CONTENT_REQUEST = memberTable('contents to be generated', withBeyond(LIMIT, BODY), {
  spelling: 'camel or snake',
  required: ['contents'],
})
export const COUNT_REQUEST = spelt(
  'contents to be counted',
  withBeyond(LIMIT, { ...BODY, generateContentRequest: priced('it costs nothing', () => CONTENT_REQUEST) }),
)

/** Vectors of texts: https://ai.google.dev/api/embeddings. Pictures, sound and files have prices of their own. */
const ONLY_TEXTS = 'only texts are embedded.'

const embeddedPart = spelt('parts to be embedded', { text: priced(IN_INPUT) }, ONLY_TEXTS)
const embeddedContent = spelt('content to be embedded', {
  role: priced(IN_INPUT),
  parts: priced(IN_INPUT, () => embeddedPart),
})

const EMBED_MEMBERS: Readonly<Record<string, Member>> = {
  taskType: priced(IN_INPUT),
  title: priced(IN_INPUT),
  outputDimensionality: neutral(),
  autoTruncate: neutral(),
  mimeType: refused(ONLY_TEXTS),
  documentOcr: refused(ONLY_TEXTS),
  audioTrackExtraction: refused(ONLY_TEXTS),
}
export const EMBED_CONFIG = spelt('embedContentConfig', EMBED_MEMBERS)
export const EMBED_REQUEST = memberTable(
  'a text to be embedded',
  withElsewhere({
    ...EMBED_MEMBERS,
    model: neutral(),
    content: formed(
      'object',
      priced(IN_INPUT, () => embeddedContent),
    ),
    embedContentConfig: formed(
      'object',
      priced('by its members', () => EMBED_CONFIG),
    ),
  }),
  { spelling: 'camel or snake', required: ['content'] },
)
export const BATCH_EMBED_REQUEST = memberTable(
  'texts to be embedded',
  withElsewhere({
    model: refused(OTHER_MODEL),
    requests: formed(
      'list',
      priced('each is in the bound', () => EMBED_REQUEST),
    ),
  }),
  { spelling: 'camel or snake', required: ['requests'] },
)
