import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { CONVERSATION_SLOTS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { tokensOfBytes } from '../../../sandbox/src/upstreams/models/tokens.ts'
import { usd } from '../../../server/src/kernel/money.ts'
import { ask } from '../installation.ts'

/** Those that no limit stops but that of a customer's tier. */
export const PROTOCOLS = ['openai', 'openai_responses', 'anthropic'] as const
/** And one that a key may ask 30 times a minute, whatever the tier allows. */
export const ALL_PROTOCOLS = [...PROTOCOLS, 'gemini'] as const
export type Protocol = (typeof ALL_PROTOCOLS)[number]
/** Those without a limit of requests of their own. */
export type Unlimited = (typeof PROTOCOLS)[number]
/** The sandbox's upstreams that have conversations. One of them speaks two protocols. */
export const UPSTREAMS = ['openai', 'anthropic', 'gemini'] as const
export type ConversationUpstream = (typeof UPSTREAMS)[number]

export function upstreamOf(protocol: Protocol): ConversationUpstream {
  return CONVERSATION_SLOTS[protocol]
}

/** In which protocol an upstream was asked; undefined where it was for no conversation. */
export function protocolOf({ upstream, path }: Pick<JournalEntry, 'upstream' | 'path'>): Protocol | undefined {
  if (/\/(embeddings|images\/generations)$|:(embedContent|batchEmbedContents)$/.test(path)) return undefined
  if (path.endsWith(PATHS.openai_responses)) return 'openai_responses'
  return UPSTREAMS.find((name) => name === upstream)
}

export type Question = { readonly path: string; readonly body: Readonly<Record<string, unknown>> }

const PATHS = {
  openai: '/v1/chat/completions',
  openai_responses: '/v1/responses',
  anthropic: '/v1/messages',
} as const
const GEMINI = '/v1beta/models'

/** Asks a model something, with words for the sandbox in the text and other members beside it. */
export function question(
  protocol: Protocol,
  model: string,
  text = '',
  more: Readonly<Record<string, unknown>> = {},
): Question {
  if (protocol === 'gemini') return { path: `${GEMINI}/${model}:generateContent`, body: { ...contents(text), ...more } }
  const said = protocol === 'openai_responses' ? { input: words(text) } : messages(text)
  return { path: PATHS[protocol], body: { model, ...said, ...more } }
}

/** The same as a stream. */
export const streamed: typeof question = (protocol, model, text = '', more = {}) =>
  protocol === 'gemini'
    ? { path: `${GEMINI}/${model}:streamGenerateContent?alt=sse`, body: { ...contents(text), ...more } }
    : question(protocol, model, text, { stream: true, ...more })

/** The members that limit an answer. */
export function limited(protocol: Protocol, tokens: number): Readonly<Record<string, unknown>> {
  if (protocol === 'openai_responses') return { max_output_tokens: tokens }
  return protocol === 'gemini' ? { generationConfig: { maxOutputTokens: tokens } } : { max_tokens: tokens }
}

const words = (text: string) => `a short story ${text}`.trim()
const messages = (text: string) => ({ messages: [{ role: 'user', content: words(text) }] })
const contents = (text: string) => ({ contents: [{ role: 'user', parts: [{ text: words(text) }] }] })

export type Heard = {
  readonly status: number
  /** Of the request; empty where the caller left before it was told. */
  readonly id: string
  /** All that came, head and framing included. */
  readonly bytes: number
  /** The data of each event, those that are JSON parsed. */
  readonly events: readonly unknown[]
  /** What was generated, of the events that came whole. */
  readonly text: string
  /** `clean`: the body ended as HTTP says; `broken`: the connection did before; `cut`: the caller left. */
  readonly end: 'clean' | 'broken' | 'cut'
  /** When the connection was over for the caller, in Unix milliseconds. */
  readonly overAtMs: number
}

const DEADLINE_MS = 180_000

/** When a caller leaves: as soon as so many bytes have come, or when something has come and then nothing for so long. */
export type Leaving = { readonly atByte?: number; readonly afterSilenceMs?: number }

/** Asks as a caller does who hears every byte. Who leaves at byte 0 does so right after asking. */
export async function hear(
  url: string,
  secret: string,
  { path, body }: Question,
  { atByte = Number.POSITIVE_INFINITY, afterSilenceMs }: Leaving = {},
): Promise<Heard> {
  const { hostname, port } = new URL(url)
  const text = JSON.stringify(body)
  const pieces: Buffer[] = []
  let bytes = 0
  let hasLeft = false
  let overAtMs = 0
  const socket = connect(Number(port), hostname)
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
  })
  const leave = () => {
    hasLeft = true
    overAtMs ||= nowMs()
    socket.destroy()
  }
  socket.on('error', () => {})
  let isDeadline = true
  socket.setTimeout(DEADLINE_MS)
  socket.on('timeout', () => (isDeadline ? socket.destroy() : leave()))
  socket.on('data', (piece: Buffer) => {
    pieces.push(piece)
    bytes += piece.length
    if (bytes >= atByte) leave()
    if (afterSilenceMs === undefined) return
    isDeadline = false
    socket.setTimeout(afterSilenceMs)
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    () => atByte === 0 && leave(),
  )
  await closed
  const heard = read(Buffer.concat(pieces).subarray(0, atByte), hasLeft)
  return { ...heard, bytes, overAtMs: overAtMs || nowMs() }
}

/** As the journal has it. */
const nowMs = () => performance.timeOrigin + performance.now()

function read(received: Buffer, hasLeft: boolean): Omit<Heard, 'bytes' | 'overAtMs'> {
  const headEnd = received.indexOf('\r\n\r\n')
  const head = received.toString('latin1', 0, headEnd === -1 ? received.length : headEnd)
  const rest = headEnd === -1 ? Buffer.alloc(0) : received.subarray(headEnd + 4)
  const isChunked = /^transfer-encoding: chunked/im.test(head)
  const { body, isWhole } = isChunked ? unchunked(rest) : { body: rest, isWhole: rest.length === lengthIn(head) }
  const events = eventsIn(body.toString('utf8'))
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    id: /^x-request-id: (\S+)/im.exec(head)?.[1] ?? '',
    events,
    text: events.map(generatedIn).join(''),
    end: hasLeft ? 'cut' : isWhole ? 'clean' : 'broken',
  }
}

function lengthIn(head: string): number {
  return Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? -1)
}

/** A body without its framing, as far as it came. */
function unchunked(bytes: Buffer): { body: Buffer; isWhole: boolean } {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return { body: Buffer.concat(pieces), isWhole: false }
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (size === 0) return { body: Buffer.concat(pieces), isWhole: true }
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}

function eventsIn(body: string): unknown[] {
  return body
    .split(/\r\n\r\n|\n\n/)
    .slice(0, -1)
    .flatMap((frame) => {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      return data === undefined ? [] : [parsed(data)]
    })
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return data
  }
}

/** What a model wrote in an event of any protocol. */
export function generatedIn(event: unknown): string {
  const { type, item, choices = [], delta = {}, content_block = {}, candidates = [] } = Object(event)
  const texts: unknown[] = [delta, delta.text, delta.thinking, delta.partial_json, content_block.name]
  // What is told once more when it is whole was not written again.
  if (type === 'response.output_item.added') texts.push(item.name)
  for (const choice of choices) {
    const { content, tool_calls = [] } = Object(choice?.delta)
    texts.push(content)
    for (const call of tool_calls) texts.push(call.function?.name, call.function?.arguments)
  }
  for (const candidate of candidates)
    for (const { text, functionCall: call } of candidate?.content?.parts ?? [])
      texts.push(text, call?.name, JSON.stringify(call?.args))
  return texts.filter((text) => typeof text === 'string').join('')
}

/** What the sandbox counts for a text. */
export const tokensOf = (text: string): number => tokensOfBytes(Buffer.byteLength(text))

/** Tokens in the classes that are priced. */
export type Tokens = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** The figures that an upstream reported, in any protocol. */
export function tokensIn(usage: unknown): Tokens {
  const told = Object(usage)
  if (told.promptTokenCount !== undefined) {
    // What is zero is left out.
    const { promptTokenCount, cachedContentTokenCount: cacheRead = 0, candidatesTokenCount = 0 } = told
    const { thoughtsTokenCount = 0 } = told
    return {
      input: promptTokenCount - cacheRead,
      output: candidatesTokenCount + thoughtsTokenCount,
      cacheRead,
      cacheWrite: 0,
    }
  }
  if (told.input_tokens_details !== undefined) {
    const { cached_tokens: cacheRead = 0, cache_write_tokens: cacheWrite = 0 } = told.input_tokens_details
    return {
      input: told.input_tokens - cacheRead - cacheWrite,
      output: told.output_tokens,
      cacheRead,
      cacheWrite,
    }
  }
  if (told.prompt_tokens === undefined)
    return {
      input: told.input_tokens,
      output: told.output_tokens,
      cacheRead: told.cache_read_input_tokens ?? 0,
      cacheWrite: told.cache_creation_input_tokens ?? 0,
    }
  const { cached_tokens = 0, cache_write_tokens = 0 } = Object(told.prompt_tokens_details)
  return {
    input: told.prompt_tokens - cached_tokens - cache_write_tokens,
    // Vectors have none.
    output: told.completion_tokens ?? 0,
    cacheRead: cached_tokens,
    cacheWrite: cache_write_tokens,
  }
}

const ONE_TOKEN = {
  input: usd(SANDBOX_PRICE.input) / 1_000_000n,
  output: usd(SANDBOX_PRICE.output) / 1_000_000n,
  cacheRead: usd(SANDBOX_PRICE.cacheRead) / 1_000_000n,
  cacheWrite: usd(SANDBOX_PRICE.cacheWrite) / 1_000_000n,
}

/** What so many tokens cost, in nanos: each once, in its own class. */
export function costOf({ input, output, cacheRead, cacheWrite }: Tokens): bigint {
  return (
    BigInt(input) * ONE_TOKEN.input +
    BigInt(output) * ONE_TOKEN.output +
    BigInt(cacheRead) * ONE_TOKEN.cacheRead +
    BigInt(cacheWrite) * ONE_TOKEN.cacheWrite
  )
}

/** What became of a call, as the ledger has it. */
export type Charge = {
  readonly id: string
  readonly outcome: 'posted' | 'voided'
  readonly amount: bigint
  readonly held: bigint
  readonly overrun: bigint
  readonly executed: boolean
  readonly failed: boolean
  readonly tokens: Tokens
  readonly begunAtMs: number
}

type Wanted = { readonly accountId?: string; readonly id?: string }

/** The charges of an account, that of a call, or all, by the ids of their calls. */
export async function chargesOf(pool: pg.Pool, { accountId, id }: Wanted = {}): Promise<ReadonlyMap<string, Charge>> {
  const { rows } = await pool.query(
    `select id, outcome, amount, held, overrun, executed, failed, extract(epoch from begun_at) * 1000 as begun_at_ms,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
     from charges where ($1::uuid is null or account_id = $1) and ($2::uuid is null or id = $2)`,
    [accountId ?? null, id ?? null],
  )
  return new Map(
    rows.map(({ input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, begun_at_ms, ...row }) => {
      const tokens = {
        input: Number(input_tokens),
        output: Number(output_tokens),
        cacheRead: Number(cache_read_tokens),
        cacheWrite: Number(cache_write_tokens),
      }
      return [row.id, { ...row, tokens, begunAtMs: Number(begun_at_ms) }]
    }),
  )
}

/** The charge of a call, once it is settled: where the caller has left, that is when nobody waits for it any more. */
export async function chargeOf(pool: pg.Pool, id: string, deadlineMs = 60_000): Promise<Charge> {
  const startedMs = performance.now()
  for (;;) {
    const charge = (await chargesOf(pool, { id })).get(id)
    if (charge !== undefined) return charge
    if (performance.now() - startedMs > deadlineMs) throw new Error(`${id} was not settled in ${deadlineMs} ms`)
    await delay(LOOK_EVERY_MS)
  }
}

const LOOK_EVERY_MS = 10

/** Waits until no call of an account is open, or of anybody. */
export async function settled(pool: pg.Pool, accountId: string | null = null, deadlineMs = 90_000): Promise<void> {
  const open = 'select from holds where $1::uuid is null or account_id = $1 limit 1'
  await until(async () => (await pool.query(open, [accountId])).rowCount === 0, deadlineMs, 'every call is settled')
}

/** What the owner of a call is told of how it was measured; it is written behind the answer. */
export async function evidenceOf(url: string, secret: string, id: string): Promise<Record<string, unknown>> {
  let detail: unknown = null
  await until(
    async () => {
      detail = (await ask(url, secret, `/v1/requests/${id}`)).json.detail ?? null
      return detail !== null
    },
    PATIENCE_MS,
    `the detail of ${id}`,
  )
  return Object(detail)
}

/** The journal's entries by the call that they were asked for. */
export function byCall(journal: readonly JournalEntry[]): ReadonlyMap<string, JournalEntry> {
  return new Map(journal.map((entry) => [entry.request_id ?? '', entry]))
}

/** Does the work for each, so many at once. */
export async function eachOf<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}

/** Open sockets of a process to a port on this machine, or from one, as the kernel has them. */
export function socketsOf(pid: number, port: number): number {
  const inodes = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)))
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return lines.filter((line) => {
    const [, local = '', remote = '', state, , , , , , inode] = line.trim().split(/\s+/)
    return state !== LISTENING && (local.endsWith(place) || remote.endsWith(place)) && inodes.has(`socket:[${inode}]`)
  }).length
}

const LISTENING = '0A'

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // It was closed meanwhile.
    return ''
  }
}

/** What is left of calls that are over: money held and places taken. */
export async function leftOver(pool: pg.Pool): Promise<{ readonly holds: number; readonly claims: number }> {
  const { rows } = await pool.query(
    'select (select count(*)::integer from holds) as holds, (select count(*)::integer from claims) as claims',
  )
  return rows[0]
}

/** Asks, and leaves without having heard anything as soon as something is so. */
export async function leaveOnce(
  url: string,
  secret: string,
  { path, body }: Question,
  isSo: () => Promise<boolean>,
): Promise<void> {
  const leaving = new AbortController()
  // The head of a stream may come before its first byte. Who lets go of it leaves, and fetch does that for whoever has
  // forgotten it: so it is kept until the end.
  const asked = fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: leaving.signal,
  }).catch(() => undefined)
  await until(isSo, PATIENCE_MS, 'what the caller waits for')
  leaving.abort()
  const answer = await asked
  if (answer?.ok === false) throw new Error(`was answered with ${answer.status}`)
}
