import {
  ApiError,
  type Content,
  type GenerateContentParameters,
  type GenerateContentResponse,
  type GenerateContentResponseUsageMetadata,
  GoogleGenAI,
} from '@google/genai'
import {
  type Addressee,
  type Client,
  COST_HEADER,
  DEFAULT_LIMIT,
  type Failure,
  finishOf,
  type Options,
  type Question,
  type Said,
  type Tokens,
  type Turn,
  textOf,
} from './sdk-client.ts'

export const geminiClient: Client = {
  name: 'gemini',
  protocol: 'gemini',
  async ask(to, question, { streamed, ...options }) {
    return streamed ? askStreamed(to, question, options) : askWhole(to, question, options)
  },
  failureOf,
  hidesHeadersOfErrors: true,
}

export function connectGemini({ url, secret }: Addressee): GoogleGenAI {
  return new GoogleGenAI({ apiKey: secret, httpOptions: { baseUrl: url } })
}

export function geminiBody(
  { model, turns, tool, json, limit = DEFAULT_LIMIT }: Question,
  signal?: AbortSignal,
): GenerateContentParameters {
  return {
    model,
    contents: turns.flatMap(contentsOf),
    config: {
      maxOutputTokens: limit,
      ...(signal !== undefined && { abortSignal: signal }),
      ...(tool !== undefined && {
        tools: [
          {
            functionDeclarations: [
              { name: tool.name, description: tool.description, parametersJsonSchema: tool.schema },
            ],
          },
        ],
      }),
      ...(json !== undefined && { responseMimeType: 'application/json' }),
      ...(typeof json === 'object' && { responseJsonSchema: json }),
    },
  }
}

function contentsOf(turn: Turn): Content[] {
  if (turn.by === 'assistant') return [{ role: 'model', parts: [{ text: turn.text }] }]
  if (turn.by === 'tool') {
    const { name, input } = turn.call
    return [
      { role: 'model', parts: [{ functionCall: { name, args: Object(input) } }] },
      { role: 'user', parts: [{ functionResponse: { name, response: { output: turn.result } } }] },
    ]
  }
  const picture = turn.png === undefined ? [] : [{ inlineData: { mimeType: 'image/png', data: turn.png } }]
  return [{ role: 'user', parts: [{ text: turn.text }, ...picture] }]
}

type Rest = Omit<Options, 'streamed'>

async function askWhole(to: Addressee, question: Question, { signal }: Rest): Promise<Said> {
  const response = await connectGemini(to).models.generateContent(geminiBody(question, signal))
  return saidIn([response], response.sdkHttpResponse?.headers?.[COST_HEADER])
}

async function askStreamed(to: Addressee, question: Question, { signal, onText }: Rest): Promise<Said> {
  const chunks: GenerateContentResponse[] = []
  for await (const chunk of await connectGemini(to).models.generateContentStream(geminiBody(question, signal))) {
    chunks.push(chunk)
    const text = geminiText(chunk)
    if (text !== '') onText?.(text)
  }
  return saidIn(chunks, textOf(Object(chunks.at(-1)?.usageMetadata).cost_usd))
}

function saidIn(chunks: readonly GenerateContentResponse[], costUsd: string | undefined): Said {
  const calls = chunks.flatMap(partsOf).flatMap(({ functionCall: call }) =>
    // Calls have ids where a model makes several at once.
    call === undefined ? [] : [{ id: call.id ?? '', name: call.name ?? '', input: call.args }],
  )
  const last = chunks.at(-1)
  const finish = finishOf(last?.candidates?.[0]?.finishReason)
  return {
    text: chunks.map(geminiText).join(''),
    calls,
    // The protocol has no reason of its own for a call.
    finish: finish === 'stop' && calls.length > 0 ? 'tool' : finish,
    usage: tokensOf(last?.usageMetadata),
    costUsd,
    requestId: last?.sdkHttpResponse?.headers?.['x-request-id'],
  }
}

const partsOf = ({ candidates }: GenerateContentResponse) => candidates?.[0]?.content?.parts ?? []

/** The library's own word for it complains of parts that are no text. */
export function geminiText(chunk: GenerateContentResponse): string {
  return partsOf(chunk)
    .map(({ text = '' }) => text)
    .join('')
}

function tokensOf(usage: GenerateContentResponseUsageMetadata = {}): Tokens {
  const { promptTokenCount = 0, cachedContentTokenCount: cacheRead = 0 } = usage
  const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage
  return {
    input: promptTokenCount - cacheRead,
    output: candidatesTokenCount + thoughtsTokenCount,
    cacheRead,
    cacheWrite: 0,
  }
}

/** All that the library keeps of an error is its status, and its body as the message. */
function failureOf(thrown: unknown): Failure {
  if (!(thrown instanceof ApiError)) throw thrown
  const { message, status } = thrown
  const { error } = JSON.parse(message.slice(message.indexOf('{')))
  return { className: thrown.constructor.name, status, ...wordsIn(error) }
}

/** What an error of this protocol says. Its code is the status once more; ours is among its details. */
export function wordsIn(error: unknown): Pick<Failure, 'code' | 'type' | 'requestId' | 'retryAfter'> {
  const { status: type, details = [] } = Object(error)
  const { reason: code, requestId, retryDelay } = Object.assign({}, ...details)
  return { code, type, requestId: textOf(requestId), retryAfter: textOf(retryDelay)?.replace(/s$/, '') }
}
