import type { AgentFace, AgentRequest } from '../http/agent-routes.ts'
import { parseJson } from '../http/json.ts'
import { asFault } from '../kernel/fault.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { requireExactNumbers } from './exact-numbers.ts'
import type { Metadata } from './metadata.ts'
import { type AgentParts, createMetaNames } from './parts.ts'
import { createSdkServer } from './sdk-server.ts'
import { createShortPath } from './short-path.ts'
import { createTools } from './tools.ts'

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
export function createAgentFace(parts: Parts): AgentFace {
  const { metadata, version, provider, jsonLimits, isOurOrigin } = parts
  const metaNames = createMetaNames(provider)
  const callTool = createTools(parts, metaNames)
  const answerShortly = createShortPath({ callTool, metaNames })
  const answerWhole = createSdkServer({ callTool, version, instructions: INSTRUCTIONS })
  const limits = { ...jsonLimits, jsonDepth: jsonLimits.jsonDepth + ENVELOPE_DEPTH }

  async function answer(request: AgentRequest): Promise<Answer> {
    const { headers, rawBody, method, host } = request
    if (headers.origin !== undefined && !isOurOrigin(headers.origin, host))
      return refusal(403, INVALID_REQUEST, 'Pages of this Origin may not use the tools. Ask the operator to allow it.')
    if (method !== 'POST' || rawBody === null || !isJson(headers['content-type']))
      return answerWhole(request, undefined)
    let body: unknown
    try {
      body = parseJson(rawBody, limits)
      requireExactNumbers(rawBody.toString('utf8'))
    } catch (thrown) {
      return refuseBody(asFault(thrown))
    }
    if (Array.isArray(body))
      return refusal(400, INVALID_REQUEST, 'Batches of messages are not taken. Send one, or use the tool batch_use.')
    return (await answerShortly(request, body)) ?? answerWhole(request, body)
  }

  function refuseBody({ code, message }: ReturnType<typeof asFault>): Answer {
    return refusal(400, code === 'invalid_json' ? PARSE_ERROR : INVALID_REQUEST, message)
  }

  return { path: metadata.path, documents: metadata.documents, answer }
}

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600

const INSTRUCTIONS =
  'Models, social, finance and web-traffic data, each call at a known price. First search for what you want to do, then get_details of an operation, then use it with max_price_usd. search, get_details and list_categories are free. Every answer says what was charged and what is left.'

function refusal(status: number, code: number, message: string): Answer {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
  return { status, headers: JSON_HEADERS, body }
}

function isJson(type: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(type ?? '')
}
