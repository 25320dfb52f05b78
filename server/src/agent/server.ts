import { memberOf } from '../catalogue/price.ts'
import type { AgentRequest, AgentRoutes } from '../http/agent-routes.ts'
import { retryAfterSecondsOf } from '../http/retry-after.ts'
import { asFault, Fault, invalidRequest } from '../kernel/fault.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { parseJson } from '../wire/json.ts'
import { inexactNumberIn } from './exact-numbers.ts'
import type { Metadata } from './metadata.ts'
import { type AgentParts, COUNTED, createMetaNames } from './parts.ts'
import { createSdkServer } from './sdk-server.ts'
import { createShortPath } from './short-path.ts'
import { createTools, type ToolRequest } from './tools.ts'

type Parts = AgentParts & {
  readonly metadata: Metadata
  readonly version: string
  readonly provider: string
  readonly isOurOrigin: (origin: string, host: string) => boolean
}

/** The arguments of a call stand so many levels below the body of its request. */
const ENVELOPE_DEPTH = 5
const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

/** The agent server: MCP over HTTP, without sessions. Any process answers any request. */
export function createAgentServer(parts: Parts): AgentRoutes {
  const { metadata, version, provider, jsonLimits, isOurOrigin, begin, refused } = parts
  const metaNames = createMetaNames(provider)
  const callTool = createTools(parts, metaNames)
  const serverInfo = { name: provider.toLowerCase(), title: provider, version }
  const answerShortly = createShortPath({ callTool, metaNames, serverInfo })
  const answerWhole = createSdkServer({ callTool, serverInfo, instructions: INSTRUCTIONS })
  const limits = { ...jsonLimits, jsonDepth: jsonLimits.jsonDepth + ENVELOPE_DEPTH }

  async function answer(request: AgentRequest): Promise<Answer> {
    const { headers, rawBody, method, host } = request
    if (headers.origin !== undefined && !isOurOrigin(headers.origin, host))
      return refuse(request, new Fault('forbidden', { detail: NOT_OUR_ORIGIN }))
    if (method !== 'POST' || rawBody === null || !isJson(headers['content-type']))
      return answerCounted(request, undefined)
    const { body, unread, inexact } = read(rawBody)
    if (unread !== undefined) return refuse(request, unread)
    // The model that wrote such a number is told, and can correct it; what no tool is called by is a client's.
    if (inexact !== undefined && !isCall(body)) return refuse(request, inexact)
    if (Array.isArray(body)) return refuse(request, invalidRequest(NO_BATCHES))
    // Nothing is ever told unasked, so that nobody has to stay and listen.
    if (memberOf(body, 'method') === 'subscriptions/listen')
      return refuse(request, new Fault('route_not_found'), noSuchMethod(memberOf(body, 'id')))
    const asked = { ...request, ...(inexact !== undefined && { wrong: inexact }) }
    return (await answerShortly(asked, body)) ?? answerCounted(asked, body)
  }

  /**
   * What the short path does not know counts as a request before the library of the protocol reads it. A call of a tool counts by itself,
   * if it comes to one.
   */
  async function answerCounted(request: ToolRequest, body: unknown): Promise<Answer> {
    const isToolCall = memberOf(body, 'method') === 'tools/call'
    const early = isToolCall ? undefined : await count(request)
    if (early !== undefined) return told(request, early)
    const { answer, isCalled, cause } = await answerWhole(request, body)
    if (isCalled) return answer
    const fault = faultIn(answer, cause)
    if (isToolCall) return refuse(request, fault ?? new Fault('invalid_request'), answer)
    if (fault !== undefined) refused(request, fault)
    return answer
  }

  /** What is over where a key has no requests left. */
  async function count({ id, caller }: AgentRequest): Promise<Fault | undefined> {
    return begin({ id, caller, operation: COUNTED, hold: null, tokens: 0, claims: [] }).then(() => undefined, asFault)
  }

  /** The message of a body, and what is wrong with it. */
  function read(rawBody: Buffer): Read {
    try {
      return { body: parseJson(rawBody, limits), inexact: inexactNumberIn(rawBody.toString('utf8')) }
    } catch (thrown) {
      return { unread: asFault(thrown) }
    }
  }

  /** What is refused counts as a request, as everywhere; who has none left is told that instead. */
  async function refuse(request: AgentRequest, wrong: Fault, answer?: Answer): Promise<Answer> {
    const fault = await count(request)
    if (fault !== undefined) return told(request, fault)
    if (answer === undefined) return told(request, wrong)
    refused(request, wrong)
    return answer
  }

  function told(request: AgentRequest, fault: Fault): Answer {
    refused(request, fault)
    const answer = refusal(fault.status, fault.code === 'invalid_json' ? PARSE_ERROR : INVALID_REQUEST, fault.message)
    const retryAfterSeconds = retryAfterSecondsOf(fault)
    if (retryAfterSeconds === undefined) return answer
    return { ...answer, headers: { ...answer.headers, 'retry-after': String(retryAfterSeconds) } }
  }

  return { path: metadata.path, documents: metadata.documents, answer }
}

type Read = { readonly body?: unknown; readonly unread?: Fault; readonly inexact?: Fault | undefined }

/** Whether a message calls a tool and has an id that it can be answered under. */
function isCall(body: unknown): boolean {
  const id = memberOf(body, 'id')
  return memberOf(body, 'method') === 'tools/call' && (typeof id === 'string' || Number.isSafeInteger(id))
}

const NOT_OUR_ORIGIN = 'Web pages of this Origin may not use the tools. Ask the operator to allow it.'
const NO_BATCHES = 'Batches of messages are not supported. Send one message, or use the tool batch_use.'

/** What the library of the protocol has refused, or failed at. Undefined where it has answered. */
function faultIn({ status, body }: Answer, cause: Error | undefined): Fault | undefined {
  const [, code] = /"error":\{"code":(-\d+)/.exec(body.toString()) ?? []
  if (status < 400 && code === undefined) return undefined
  if (status >= 500 || code === String(INTERNAL_ERROR)) return new Fault('internal_error', { cause })
  if (status === 405) return new Fault('method_not_allowed')
  return new Fault(code === String(METHOD_NOT_FOUND) ? 'route_not_found' : 'invalid_request')
}

const INTERNAL_ERROR = -32_603
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const METHOD_NOT_FOUND = -32_601

const INSTRUCTIONS =
  'Models, social, finance and web-traffic data, as far as they are sold here, each call at a known price. First search for what you want to do, then get_details of an operation, then use it with max_price_usd. search, get_details and list_categories are free. Every answer of use says what was charged, and what is left when that has changed.'

function noSuchMethod(id: unknown): Answer {
  return refusal(
    404,
    METHOD_NOT_FOUND,
    'Method not found',
    typeof id === 'string' || typeof id === 'number' ? id : null,
  )
}

function refusal(status: number, code: number, message: string, id: string | number | null = null): Answer {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id })
  return { status, headers: JSON_HEADERS, body }
}

function isJson(type: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(type ?? '')
}
