import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AgentRequest } from '../http/agent-routes.ts'
import { createSdkServer } from './sdk-server.ts'
import { createShortPath } from './short-path.ts'
import type { CallTool } from './tools.ts'

const serverInfo = { name: 'farebox', title: 'Farebox', version: '0.1.0' }
/** Tells what it was asked, so that two ways of asking can be compared. */
const callTool: CallTool = async (_, { name, given, meta }) => ({
  content: [{ type: 'text', text: name }],
  structuredContent: { given, key: meta['farebox/idempotency-key'] },
  ...(name === 'search' && { isError: true }),
  _meta: { 'farebox/call': { request_id: '1' } },
})
const answerShortly = createShortPath({
  callTool,
  serverInfo,
  metaNames: { idempotencyKey: 'farebox/idempotency-key' },
})
const answerWhole = createSdkServer({ callTool, serverInfo, instructions: '' })

type Case = {
  readonly headers?: Readonly<Record<string, string>>
  readonly meta?: Readonly<Record<string, unknown>> | null
  readonly message?: object
  readonly params?: object
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'client', version: '1' },
}
const BASE = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
const of = (headers: object, body: unknown) => {
  const request = { id: '1', caller: { credentialId: 'c' }, method: 'POST', host: 'localhost', headers }
  return [request as unknown as AgentRequest, body] as const
}

function modern({ headers, meta, message, params }: Case, method = 'tools/call') {
  const own = method === 'tools/call' ? { name: 'use', arguments: { a: 1 } } : {}
  const all = { ...BASE, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': 'use', ...headers }
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { ...own, _meta: { ...ENVELOPE, ...meta }, ...params },
    ...message,
  }
  return of(all, body)
}

function legacy({ headers, meta, message, params }: Case, method = 'tools/call') {
  const own = method === 'tools/call' ? { name: 'use', arguments: { a: 1 } } : {}
  const body = {
    jsonrpc: '2.0',
    id: 'x',
    method,
    params: { ...own, ...(meta && { _meta: meta }), ...params },
    ...message,
  }
  return of({ ...BASE, 'mcp-protocol-version': '2025-11-25', ...headers }, body)
}

/** The message of an answer, whether it comes by itself or as an event. */
function messageIn({ body }: { readonly body: Buffer | string }): unknown {
  return JSON.parse(body.toString().replace(/^event: message\ndata: /, ''))
}

async function both(asked: ReturnType<typeof of>) {
  return { short: await answerShortly(...asked), whole: (await answerWhole(...asked)).answer }
}

const KNOWN: Readonly<Record<string, ReturnType<typeof of>>> = {
  'a call': modern({}),
  'a call without arguments': modern({ params: { arguments: undefined } }),
  'a call whose tool fails': modern({ headers: { 'mcp-name': 'search' }, params: { name: 'search' } }),
  'a call with an idempotency key': modern({ meta: { 'farebox/idempotency-key': 'k' } }),
  'a call with a progress token': modern({ meta: { progressToken: 7 } }),
  'a call of a client with elicitation': modern({
    meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} }, roots: {} } },
  }),
  'a list': modern({}, 'tools/list'),
  'a call of before': legacy({}),
  'a call of before, of a version that is not said': legacy({ headers: { 'mcp-protocol-version': '2025-03-26' } }),
  'a call of before with an idempotency key': legacy({ meta: { 'farebox/idempotency-key': 'k', progressToken: 'p' } }),
  'a list of before': legacy({}, 'tools/list'),
  'a list of before without params': of(
    { ...BASE, 'mcp-protocol-version': '2025-06-18' },
    { jsonrpc: '2.0', id: 3, method: 'tools/list' },
  ),
}

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** All of them are left to the library, whatever it makes of them. */
const UNKNOWN: Readonly<Record<string, ReturnType<typeof of>>> = {
  'another tool in the header': modern({ headers: { 'mcp-name': 'search' } }),
  'another method in the header': modern({ headers: { 'mcp-method': 'tools/list' } }),
  'another version in the header': modern({ headers: { 'mcp-protocol-version': '2025-11-25' } }),
  'a version that nobody speaks': legacy({ headers: { 'mcp-protocol-version': '1999-01-01' } }),
  'an envelope without capabilities': modern({ meta: { [CAPABILITIES]: undefined } }),
  'capabilities that are none': modern({ meta: { [CAPABILITIES]: [] } }),
  'capabilities that nobody knows': modern({ meta: { [CAPABILITIES]: { roots: { listChanged: 'yes' } } } }),
  'a client that is none': modern({ meta: { 'io.modelcontextprotocol/clientInfo': { name: 1 } } }),
  'a trace': modern({ meta: { traceparent: 'nonsense' } }),
  'a token that is none': modern({ meta: { progressToken: 1.5 } }),
  'an unknown tool': modern({ headers: { 'mcp-name': 'nothing' }, params: { name: 'nothing' } }),
  'arguments that are a list': modern({ params: { arguments: [] } }),
  'a call as a task': legacy({ params: { task: { ttl: 1 } } }),
  'an id that is none': legacy({ message: { id: null } }),
  'another jsonrpc': legacy({ message: { jsonrpc: '1.0' } }),
  'a member beside': legacy({ message: { extra: 1 } }),
  'a client that takes no events': legacy({ headers: { accept: 'application/json' } }),
  'a page of a list': legacy({ params: { cursor: 'x' } }, 'tools/list'),
  'another method': legacy({}, 'prompts/list'),
}

describe('the short path', () => {
  for (const [title, asked] of Object.entries(KNOWN))
    it(`answers as the library of the protocol does: ${title}`, async () => {
      const { short, whole } = await both(asked)
      assert.ok(short)
      assert.equal(short.status, whole.status)
      assert.deepEqual(messageIn(short), messageIn(whole))
    })

  for (const [title, asked] of Object.entries(UNKNOWN))
    it(`leaves to the library what it does not know: ${title}`, async () => {
      assert.equal(await answerShortly(...asked), undefined)
    })
})
