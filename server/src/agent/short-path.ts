import { isMembers } from '../catalogue/member-table.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { CAPABILITIES, elicitationError, opensPages, saidToOpenPages } from './ask-person.ts'
import type { MetaNames } from './parts.ts'
import { TOOLS_CACHE } from './sdk-server.ts'
import { isToolName } from './tool-arguments.ts'
import { TOOLS } from './tool-list.ts'
import { isInputRequired } from './tool-result.ts'
import type { CallTool } from './tools.ts'

type Parts = {
  readonly callTool: CallTool
  readonly metaNames: Pick<MetaNames, 'idempotencyKey'>
  readonly serverInfo: Readonly<Record<string, string>>
}

type Members = Readonly<Record<string, unknown>>
/** Which of the two kinds of the protocol a request speaks; undefined where it takes a closer look to tell. */
type Era = 'modern' | 'legacy' | undefined

const MODERN = '2026-07-28'
const LEGACY: ReadonlySet<string> = new Set(['2025-11-25', '2025-06-18', '2025-03-26'])
const ENVELOPE = 'io.modelcontextprotocol/'
const VERSION = `${ENVELOPE}protocolVersion`
const CLIENT = `${ENVELOPE}clientInfo`
const SERVER = `${ENVELOPE}serverInfo`
const HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

/**
 * Answers calls and lists of tools that are written as clients write them, at a fraction of what the protocol's library takes to make a
 * server. It takes only what it knows in every member; undefined leaves a request to the library, which then says what is wrong with it,
 * if anything is. A test holds the answers of the two against each other.
 */
export function createShortPath({ callTool, metaNames, serverInfo }: Parts) {
  const ownMeta = new Set([metaNames.idempotencyKey, 'progressToken'])
  const envelope = new Set([...ownMeta, VERSION, CAPABILITIES, CLIENT])
  const identity = { [SERVER]: serverInfo }
  const lists = {
    modern: JSON.stringify({ tools: TOOLS, resultType: 'complete', ...TOOLS_CACHE, _meta: identity }),
    legacy: JSON.stringify({ tools: TOOLS }),
  }

  function eraOf({ headers }: AgentRequest, meta: Members | undefined): Era {
    const version = headers['mcp-protocol-version']
    if (version === MODERN) return meta !== undefined && isModern(meta, envelope) ? 'modern' : undefined
    if (version !== undefined && (typeof version !== 'string' || !LEGACY.has(version))) return undefined
    return meta === undefined || (hasOnly(meta, ownMeta) && isToken(meta.progressToken)) ? 'legacy' : undefined
  }

  async function call(
    request: AgentRequest,
    { id, params }: Message,
    era: 'modern' | 'legacy',
  ): Promise<Answer | undefined> {
    const { name, arguments: given, _meta: meta = {} } = params
    if (typeof name !== 'string' || !isToolName(name) || !hasOnly(params, CALL)) return undefined
    if (given !== undefined && !isMembers(given)) return undefined
    if (era === 'modern' && request.headers['mcp-name'] !== name) return undefined
    const capabilities = isMembers(meta) ? meta[CAPABILITIES] : undefined
    const opens = era === 'modern' ? opensPages(capabilities) : saidToOpenPages(request.headers)
    const result = await callTool(request, { name, given, meta: Object(meta), asking: opens ? FIRST_TIME : null })
    if (isInputRequired(result))
      return era === 'modern'
        ? answered(id, JSON.stringify({ ...result, _meta: identity }))
        : {
            status: 200,
            headers: HEADERS,
            body: JSON.stringify({ jsonrpc: '2.0', id, error: elicitationError(result) }),
          }
    return answered(
      id,
      JSON.stringify(
        era === 'legacy' ? result : { ...result, resultType: 'complete', _meta: { ...result._meta, ...identity } },
      ),
    )
  }

  return async (request: AgentRequest, body: unknown): Promise<Answer | undefined> => {
    const message = messageIn(body)
    if (message === undefined || !acceptsBoth(request)) return undefined
    const { id, method, params } = message
    const { _meta: meta } = params
    if (meta !== undefined && !isMembers(meta)) return undefined
    const era = eraOf(request, meta)
    if (era === undefined || (era === 'modern' && request.headers['mcp-method'] !== method)) return undefined
    if (method === 'tools/call') return call(request, message, era)
    return hasOnly(params, LIST) ? answered(id, lists[era]) : undefined
  }
}

/** What comes back of an earlier answer is read by the library. */
const FIRST_TIME = { state: undefined, responses: undefined }
const MESSAGE: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])
const CALL: ReadonlySet<string> = new Set(['name', 'arguments', '_meta'])
const LIST: ReadonlySet<string> = new Set(['_meta'])

type Message = { readonly id: string | number; readonly method: 'tools/call' | 'tools/list'; readonly params: Members }

function messageIn(body: unknown): Message | undefined {
  if (!isMembers(body) || !hasOnly(body, MESSAGE)) return undefined
  const { jsonrpc, id, method, params = {} } = body
  if (jsonrpc !== '2.0' || !isId(id) || !isMembers(params)) return undefined
  return method === 'tools/call' || method === 'tools/list' ? { id, method, params } : undefined
}

function isId(id: unknown): id is string | number {
  return typeof id === 'string' || Number.isSafeInteger(id)
}

function isToken(token: unknown): boolean {
  return token === undefined || isId(token)
}

function hasOnly(members: Members, names: ReadonlySet<string>): boolean {
  for (const name in members) if (!names.has(name)) return false
  return true
}

function acceptsBoth({ headers: { accept = '' } }: AgentRequest): boolean {
  return accept.includes('application/json') && accept.includes('text/event-stream')
}

function isModern(meta: Members, envelope: ReadonlySet<string>): boolean {
  if (meta[VERSION] !== MODERN || !hasOnly(meta, envelope) || !isToken(meta.progressToken)) return false
  return isKnownClient(meta[CLIENT]) && areKnownCapabilities(meta[CAPABILITIES])
}

const CLIENT_MEMBERS: ReadonlySet<string> = new Set(['name', 'version', 'title'])

function isKnownClient(client: unknown): boolean {
  if (client === undefined) return true
  if (!isMembers(client) || !hasOnly(client, CLIENT_MEMBERS)) return false
  const { name, version, title } = client
  return typeof name === 'string' && typeof version === 'string' && (title === undefined || typeof title === 'string')
}

/** As usual clients declare them, each with nothing in it. Nothing that is answered here asks for any. */
const KNOWN: Readonly<Record<string, ReadonlySet<string>>> = {
  roots: new Set(),
  sampling: new Set(),
  elicitation: new Set(['form', 'url']),
}

function areKnownCapabilities(capabilities: unknown): boolean {
  if (!isMembers(capabilities)) return false
  for (const name in capabilities) {
    const [declared, parts] = [capabilities[name], KNOWN[name]]
    if (parts === undefined || !isMembers(declared) || !hasOnly(declared, parts)) return false
    for (const part in declared) if (!isEmpty(declared[part])) return false
  }
  return true
}

function isEmpty(value: unknown): boolean {
  return isMembers(value) && Object.keys(value).length === 0
}

function answered(id: string | number, result: string): Answer {
  return { status: 200, headers: HEADERS, body: `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}` }
}
