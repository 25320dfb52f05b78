import assert from 'node:assert/strict'
import type pg from 'pg'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { defaultNames } from '../../harness/recorded-contract.ts'
import { type SandboxProcess, startSandbox } from '../../harness/sandbox.ts'
import { bindSandbox, EMBEDDING_MODEL, IMAGE_MODEL, makeMasterKey, VIDEO_MODEL } from '../../harness/seed.ts'
import { until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { GROUPS } from '../../server/src/catalogue/limit-groups.ts'
import { isSoldByUnit, isTask, type Operation, spell } from '../../server/src/catalogue/operation.ts'
import { createKey, type NewKey } from '../../server/src/identity/keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Secret } from '../../server/src/kernel/secret.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import type { By } from '../../server/src/storage/audit.ts'
import { createWorkspace, grantTier } from '../../server/src/workspaces/workspaces.ts'
import { requireDeclared } from '../contract/declared.ts'
import { connect } from '../ledger/world.ts'

/** The whole service for a test file: processes of ours, a sandbox of upstreams, and a pool to look behind the scenes. */
export type Installation = {
  readonly gateways: readonly Gateway[]
  readonly url: string
  readonly sandbox: SandboxProcess
  readonly pool: pg.Pool
  readonly masterKey: Secret
  readonly stop: () => Promise<void>
}

type Options = {
  readonly processes?: number
  readonly env?: Readonly<Record<string, string>>
  readonly changes?: string
  readonly masterKey?: Secret
  /** Is told every line that the processes log. */
  readonly onLine?: (line: string) => void
}

export async function startInstallation(databaseUrl: string, options: Options = {}): Promise<Installation> {
  const { processes = 1, env = {}, changes, onLine } = options
  const masterKey = options.masterKey ?? makeMasterKey()
  const sandbox = await startSandbox()
  const { pools } = connect(databaseUrl)
  await bindSandbox({ pool: pools.rest, masterKey, sandboxUrl: sandbox.url })
  const gateways = await startGateways(processes, {
    databaseUrl,
    env: { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn', ...env },
    ...(changes !== undefined && { changes }),
    ...(onLine !== undefined && { onLine }),
  })
  return {
    gateways,
    url: gateways[0]?.url ?? '',
    sandbox,
    pool: pools.rest,
    masterKey,
    async stop() {
      // The sandbox refuses where a call has asked more than it may: everything else ends all the same.
      const ended = await Promise.allSettled([...gateways.map((gateway) => gateway.stop()), sandbox.stop()])
      await pools.close()
      for (const one of ended) if (one.status === 'rejected') throw one.reason
    },
  }
}

export const ids = createIds({ clock: systemClock })
export const ACTOR: By = { actor: 'operator test', origin: {} }

export type Customer = {
  readonly workspaceId: Id
  readonly accountId: Id
  readonly keyId: Id
  readonly secret: string
}

type Wanted = {
  readonly money?: bigint
  /** A live key has live money, and asks live upstreams. */
  readonly key?: Partial<NewKey>
  /** Of the key itself, because nothing lowers a tier; without it a limit that no test meets. */
  readonly requestsPerMinute?: number
}

/** Somebody with test money and limits that a test does not meet. */
export async function makeCustomer(
  pool: pg.Pool,
  { money = 10_000_000_000n, key = {}, requestsPerMinute }: Wanted = {},
): Promise<Customer> {
  const workspace = await createWorkspace({ pool, ids }, ACTOR, { name: 'Customer' })
  const { id: workspaceId } = workspace
  const accountId = key.mode === 'live' ? workspace.liveAccountId : workspace.testAccountId
  const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 }
  await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'enterprise', limits })
  if (money > 0n) await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(money) })
  const rates = requestsPerMinute === undefined ? key.rates : { ...key.rates, requestsPerMinute }
  return { workspaceId, accountId, ...(await makeKey(pool, workspaceId, { ...key, ...(rates && { rates }) })) }
}

/** One more key of somebody. */
export async function makeKey(
  pool: pg.Pool,
  workspaceId: Id,
  key: Partial<NewKey> = {},
): Promise<Pick<Customer, 'keyId' | 'secret'>> {
  const wanted = { workspaceId, mode: 'test', name: 'key', ...key } as const
  const { id: keyId, secret } = await createKey({ pool, ids }, ACTOR, wanted)
  return { keyId, secret: secret.reveal() }
}

export type Told = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body where it is JSON. */
  readonly json: Record<string, unknown>
  readonly id: string
  readonly costUsd: string | null
}

type Ask = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a text is sent as it is. */
  readonly body?: unknown
}

/** Asks as a caller does. Whatever is answered must be what the contract declares. */
export async function ask(url: string, secret: string, path: string, wanted: Ask = {}): Promise<Told> {
  const told = await askAnybody(url, secret, path, wanted)
  requireDeclared({
    method: methodOf(wanted),
    path,
    asked: headersOf(secret, wanted),
    status: told.status,
    headers: told.headers,
    text: told.text,
    // Live keys ask what a test has put in a provider's place, and the sandbox answers as it is told.
    isDeviant: secret.startsWith('fb_live_') || isDirected(path, wanted.body),
  })
  return told
}

/** The same of somebody who has no contract with us, such as the sandbox itself. */
export async function askAnybody(url: string, secret: string, path: string, wanted: Ask = {}): Promise<Told> {
  const { body } = wanted
  const response = await fetch(url + path, {
    method: methodOf(wanted),
    redirect: 'manual',
    headers: headersOf(secret, wanted),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: jsonOf(text),
    id: response.headers.get('x-request-id') ?? '',
    costUsd: response.headers.get('x-farebox-cost-usd'),
  }
}

function methodOf({ method, body }: Ask): string {
  return method ?? (body === undefined ? 'GET' : 'POST')
}

function headersOf(secret: string, { headers, body }: Ask): Headers {
  return new Headers({
    ...(secret !== '' && { authorization: `Bearer ${secret}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  })
}

function isDirected(path: string, body: unknown): boolean {
  return /sandbox(:|%3a)/i.test(`${path} ${JSON.stringify(body)}`)
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The members of the error object of an answer. */
export function errorOf({ json }: Told): Record<string, unknown> {
  return Object(json.error)
}

/** Our code for a refusal, wherever the protocol has a place for it. */
export function codeOf(told: Told): unknown {
  const { code, details } = errorOf(told)
  return Array.isArray(details) ? Object(details[0]).reason : (code ?? Object(details).error_code)
}

export type Call = {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** They cost nothing, so that neither quotes nor budgets say anything about them. */
export const FREE: ReadonlySet<string> = new Set(['messages_count_tokens', 'generate_content_count_tokens'])

/** They go on when they have been answered, and their upstreams are asked again and again. */
export const TASKS: ReadonlySet<string> = new Set(catalogue.operations.filter(isTask).map(({ id }) => id))

/** They act for a user who has linked an account, which nobody has by default. */
export const LINKED: ReadonlySet<string> = new Set(
  catalogue.operations.filter((one) => isSoldByUnit(one) && one.actsFor !== undefined).map(({ id }) => id),
)

/** Those with a number of requests a minute of their own, which a test of many calls would meet. */
export const SCARCE: ReadonlySet<string> = new Set(
  catalogue.operations.filter(({ limits }) => limits.some((name) => name in GROUPS)).map(({ id }) => id),
)

type MakeCall = (word: string) => Call

/** Calls of those operations that are not called by their example: models, and what a test knows the words of. */
const OWN_CALLS: Readonly<Record<string, MakeCall>> = {
  chat_completions: (word) => ({ path: '/v1/chat/completions', body: conversation(word) }),
  responses: (word) => ({ path: '/v1/responses', body: { model: 'sandbox/text', input: `a short story ${word}` } }),
  messages: (word) => ({ path: '/v1/messages', body: conversation(word) }),
  messages_count_tokens: (word) => ({ path: '/v1/messages/count_tokens', body: conversation(word) }),
  generate_content: (word) => ({ path: `${GEMINI}:generateContent`, body: contents(word) }),
  stream_generate_content: (word) => ({ path: `${GEMINI}:streamGenerateContent?alt=sse`, body: contents(word) }),
  generate_content_count_tokens: (word) => ({ path: `${GEMINI}:countTokens`, body: contents(word) }),
  embeddings: (word) => ({
    path: '/v1/embeddings',
    body: { model: EMBEDDING_MODEL, input: `a short story ${word}` },
  }),
  embed_content: (word) => ({
    path: `/v1beta/models/${EMBEDDING_MODEL}:embedContent`,
    body: toBeEmbedded(word),
  }),
  batch_embed_contents: (word) => ({
    path: `/v1beta/models/${EMBEDDING_MODEL}:batchEmbedContents`,
    body: { requests: [{ model: `models/${EMBEDDING_MODEL}`, ...toBeEmbedded(word) }] },
  }),
  image_generations: (word) => ({
    path: '/v1/images/generations',
    body: { model: IMAGE_MODEL, prompt: `a fox in the snow ${word}` },
  }),
  video_synthesis: (word) => ({
    path: '/apis/v1/services/aigc/video-generation/video-synthesis',
    body: { model: VIDEO_MODEL, input: { prompt: `a fox in the snow ${word}` } },
    headers: { 'x-farebox-async': 'enable' },
  }),
  deep_research: (word) => ({ path: '/v1/deep-research/search', body: { query: `why is the sea salty ${word}` } }),
  rerank: (word) => ({
    path: '/v1/rerank',
    body: { query: `a quick animal ${word}`, documents: ['a snail', 'a fox'] },
  }),
  search_word_suggestion: (word) =>
    get('/reseller/social_c/shop/web/fetch_search_word_suggestion_v2', { search_word: `cats ${word}` }),
  user_stories: (word) => get('/reseller/social_b/v2/fetch_user_stories', { username: `cats ${word}` }),
  post_comments: (word) => get('/social_b/post/comments', { url: `https://social-b.invalid/p/1 ${word}` }),
  tweet_quotes: (word) => get('/social_a/tweet/quotes', { tweetId: `123 ${word}` }),
  follow_user: () => ({ path: '/apis/v1/social_a/follow_social_a', body: { target_user_id: '123' } }),
  website_traffic_engagement: (word) =>
    get('/traffic_analytics/website/traffic-engagement', { domain: `example.com ${word}` }),
}

const GEMINI = '/v1beta/models/sandbox/text'

function contents(word: string) {
  return { contents: [{ role: 'user', parts: [{ text: `a short story ${word}` }] }] }
}

function toBeEmbedded(word: string) {
  return { content: { parts: [{ text: `a short story ${word}` }] } }
}

function conversation(word: string) {
  return { model: 'sandbox/text', messages: [{ role: 'user', content: `a short story ${word}` }] }
}

function get(path: string, query: Readonly<Record<string, string>>): Call {
  return { path: `/apis/v1${path}?${new URLSearchParams(query)}` }
}

/** The example of an operation that is sold by the unit, with the word behind its first text. */
function exampleOf(operation: Operation): MakeCall | undefined {
  if (!isSoldByUnit(operation)) return undefined
  const { method, example } = operation
  const path = spell(operation.path, defaultNames())
  const [first] = Object.entries(example).find(([, value]) => typeof value === 'string') ?? []
  return (word) => {
    const given = first === undefined || word === '' ? example : { ...example, [first]: `${example[first]} ${word}` }
    if (method === 'POST') return { path, body: given }
    const query = Object.entries(given).map(([name, value]): [string, string] => [name, String(value)])
    return { path: `${path}?${new URLSearchParams(query)}` }
  }
}

/** A call of every operation, with a word for the sandbox where it has a place for one. */
export const CALLS: Readonly<Record<string, MakeCall>> = Object.fromEntries(
  catalogue.operations.flatMap((operation) => {
    const make = OWN_CALLS[operation.id] ?? exampleOf(operation)
    return make === undefined ? [] : [[operation.id, make]]
  }),
)

/** Calls an operation, whatever it is. */
export function call(url: string, secret: string, operation: string, word = '', also: Ask = {}): Promise<Told> {
  const make = CALLS[operation]
  if (make === undefined) throw new Error(`nobody has written a call of ${operation}`)
  const { path, body, headers } = make(word)
  return ask(url, secret, path, {
    ...also,
    headers: { ...headers, ...also.headers },
    ...(body !== undefined && { body }),
  })
}

const SETTLED_MS = 180_000

/** What an answer cost. A stream or a task has begun before anybody knows, so that only the record can tell. */
export async function costOf(url: string, secret: string, { id, costUsd }: Told): Promise<string> {
  const recorded = async (): Promise<string | undefined> =>
    Object((await ask(url, secret, `/v1/requests/${id}`)).json.cost).usd
  if (costUsd !== null) return costUsd
  await until(async () => (await recorded()) !== undefined, SETTLED_MS, 'that the call is settled')
  return (await recorded()) ?? ''
}

/** That an answer is a refusal of ours, in the shape of the data endpoints and nothing else. */
export function isDataFault({ json, id, headers }: Told, code: string, type: string): void {
  const { error, ...beside } = json
  const { message, ...rest } = Object(error)
  assert.equal(rest.code, code)
  assert.equal(rest.type, type)
  assert.ok(typeof message === 'string' && message.length > 10)
  assert.deepEqual(beside, { request_id: id })
  assert.match(headers.get('content-type') ?? '', /^application\/json/)
}

/** What the ledger says that calls of an account were charged, by their ids. */
export async function chargesOf(pool: pg.Pool, accountId: Id): Promise<ReadonlyMap<Id, bigint>> {
  const { rows } = await pool.query<{ id: Id; amount: bigint }>(
    'select id, amount from charges where account_id = $1',
    [accountId],
  )
  return new Map(rows.map(({ id, amount }) => [id, amount]))
}
