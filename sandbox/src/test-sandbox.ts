import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Agent, request } from 'undici'
import type { Answer } from './answer.ts'
import type { JournalEntry } from './journal.ts'
import type { JsonObject } from './json.ts'
import { createSandbox } from './sandbox.ts'
import { UPSTREAMS } from './upstreams.ts'

/** A right request for each upstream; tests change what they are about. */
export const ASK = {
  rerank: {
    path: '/rerank/v1/rerank',
    headers: { authorization: 'Bearer sandbox-key' },
    body: { model: 'm', query: 'cheap hotel', documents: ['a castle', 'a cheap hotel', 'a hotel'] },
  },
  reseller: {
    path: '/reseller/api/v1/social_c/web/fetch_tag_detail?tag_name=cats',
    headers: { authorization: 'Bearer sandbox-key' },
  },
  comments: { path: '/comments/v2/social_b/post/comments?url=post', headers: { 'x-api-key': 'sandbox-key' } },
  quotes: { path: '/quotes/social_a/tweet/quotes?tweetId=77', headers: { 'x-api-key': 'sandbox-key' } },
  financial: { path: '/financial/financial-metrics/snapshot?ticker=ABC', headers: { 'x-api-key': 'sandbox-key' } },
  traffic: {
    path: '/traffic/v5/website-analysis/websites/traffic-and-engagement?domain=example.com',
    headers: { 'api-key': 'sandbox-key' },
  },
  deep_research: {
    path: '/deep_research/search',
    headers: { authorization: 'Bearer sandbox-key' },
    body: { query: 'why is the sea salty' },
  },
  openai: {
    path: '/openai/v1/chat/completions',
    headers: { authorization: 'Bearer sandbox-key' },
    body: { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] },
  },
  anthropic: {
    path: '/anthropic/v1/messages',
    headers: { 'x-api-key': 'sandbox-key', 'anthropic-version': '2023-06-01' },
    body: { model: 'sandbox/echo', max_tokens: 1000, messages: [{ role: 'user', content: 'Hello' }] },
  },
  gemini: {
    path: '/gemini/v1beta/models/sandbox/echo:generateContent',
    headers: { 'x-goog-api-key': 'sandbox-key' },
    body: { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] },
  },
  video: {
    path: '/video/services/aigc/video-generation/video-synthesis',
    headers: { authorization: 'Bearer sandbox-key', 'x-sandbox-async': 'enable' },
    body: { model: 'sandbox/video', input: { prompt: 'A cat on the beach' }, parameters: { resolution: '720P' } },
  },
  platform: {
    path: '/platform/2/oauth2/revoke',
    headers: {
      authorization: `Basic ${Buffer.from('sandbox-client:sandbox-client-secret').toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'token=nobody-s',
  },
} as const

export type Question = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly method?: string
}

/** A right request for an answer that has a file of its own. */
export function askFor({
  upstream,
  method,
  path,
  needs: [needed],
}: Answer): Question & Required<Pick<Question, 'headers'>> {
  const [credential] = UPSTREAMS.get(upstream)?.credentials ?? []
  assert.ok(credential !== undefined, upstream)
  const place = `/${upstream}${path.replaceAll(/\{\w+\}/g, 'word')}`
  const headers = { [credential.header]: credential.scheme === 'bearer' ? 'Bearer sandbox-key' : 'sandbox-key' }
  return method === 'GET'
    ? { path: `${place}?${needed}=cats`, headers }
    : { path: place, headers, body: { [needed]: 'cats' } }
}

export type TestSandbox = Awaited<ReturnType<typeof startTestSandbox>>

/** A sandbox in this process, on a port of its own. */
export async function startTestSandbox(options: Parameters<typeof createSandbox>[0] = {}) {
  const { server, close } = createSandbox(options)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const url = `http://127.0.0.1:${address.port}`
  const agent = new Agent()

  async function ask({ path, headers = {}, body, method = body === undefined ? 'GET' : 'POST' }: Question) {
    const answer = await request(url + path, {
      method,
      headers,
      dispatcher: agent,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.body.text()
    return { status: answer.statusCode, headers: answer.headers, text, json: () => JSON.parse(text) }
  }

  async function journal(): Promise<JournalEntry[]> {
    return (await ask({ path: '/journal' })).json().entries
  }

  async function stop(): Promise<void> {
    await agent.destroy()
    await close()
  }

  return { url, port: address.port, ask, journal, close, stop }
}

/** The reranking whose query asks for directives. */
export function reranking(...directives: readonly string[]): Question {
  const query = ['cheap hotel', ...directives.map((one) => `sandbox:${one}`)].join(' ')
  return { ...ASK.rerank, body: { ...ASK.rerank.body, query } }
}

const QUIET_MS = 600

/** Silence is counted in turns: a process that stood still for a second on a busy machine has not listened for a second. */
const TURN_MS = 50

/**
 * The bytes as they come, and how the connection ended; `open` where it was still open after no more bytes came for a
 * while. How long the first byte may take is the caller's to say, since a busy machine takes its time.
 */
export async function askRaw(port: number, { path, headers = {}, body }: Question, firstByteMs = 10_000) {
  const content = body === undefined ? '' : JSON.stringify(body)
  const socket = connect(port, '127.0.0.1')
  const received: Buffer[] = []
  let turns: NodeJS.Timeout | undefined
  const end = await new Promise<'open' | 'closed' | 'reset'>((resolve) => {
    let silentTurns = firstByteMs / TURN_MS
    turns = setInterval(() => {
      silentTurns -= 1
      if (silentTurns <= 0) resolve('open')
    }, TURN_MS)
    socket.on('data', (chunk) => {
      received.push(chunk)
      silentTurns = QUIET_MS / TURN_MS
    })
    socket.once('error', () => resolve('reset'))
    socket.once('end', () => resolve('closed'))
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(
      `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: sandbox\r\n${lines.join('')}` +
        `content-length: ${Buffer.byteLength(content)}\r\n\r\n${content}`,
    )
  })
  clearInterval(turns)
  socket.destroy()
  const text = Buffer.concat(received).toString()
  const [head = '', ...rest] = text.split('\r\n\r\n')
  return { text, head, content: rest.join('\r\n\r\n'), pieces: received.length, end }
}

/** An object whose members are of these kinds, and no others. */
export function assertMembers(value: JsonObject, kinds: Readonly<Record<string, string>>, context = ''): void {
  const found = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, kindOf(member)]))
  const expected = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => {
      const is = found[name] ?? 'absent'
      return [name, kind === 'any' || kind.split('|').includes(is) ? is : kind]
    }),
  )
  assert.deepEqual(found, expected, context)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

export type SentFrame = { readonly event: string | undefined; readonly data: string }

/** The frames of a stream of events, each of them whole. */
export function framesIn(stream: string): SentFrame[] {
  const frames = stream.split('\n\n')
  assert.equal(frames.pop(), '', 'a frame ends with an empty line')
  return frames.map((frame) => {
    const [, event, data = ''] = /^(?:event: (.*)\n)?data: (.*)$/.exec(frame) ?? assert.fail(frame)
    return { event, data }
  })
}

/** The body of an answer that came in HTTP's chunks. */
export function unchunked(content: string): string {
  return content.replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, '').replace(/\r\n$/, '')
}
