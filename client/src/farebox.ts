import { type Account, createAccount } from './account.ts'
import type { Answered, Fetch } from './attempt.ts'
import { baseUrlOf, newKey, requireIdempotencyKey, requireKey, requireWhole } from './checks.ts'
import { systemClock } from './clock.ts'
import { FREE_ROUTES, type FreeRoutes, OPERATIONS, type Operations, type Quote } from './contract.ts'
import { OutcomeUnknownError, UnexpectedAnswerError } from './errors.ts'
import { createLookUp, type FoundRequest, foundIn, isPage } from './look-up.ts'
import { readUsd } from './money.ts'
import { type CallOptions, DEFAULTS, type FareboxOptions, type Names, type RequestOptions } from './options.ts'
import { type Paged, paged } from './pages.ts'
import { quoteOf, type Result, resultOf } from './result.ts'
import { askedOf, createSdks, type Sdks } from './sdks.ts'
import { createSend, type Send, type SendOptions, type SendParts, type Wanted } from './send.ts'
import { createTasks, type Tasks } from './tasks.ts'
import { aimOf, type Route, routeOf, wireOf } from './wire.ts'

export type OperationId = keyof Operations
type Quotable = {
  [Id in OperationId]: (typeof OPERATIONS)[Id] extends `${string} q${string}` ? Id : never
}[OperationId]
type FreeId = keyof FreeRoutes
type ListedRequests = FreeRoutes['list_requests']['answer']
type ListQuery = Omit<FreeRoutes['list_requests']['input'], 'cursor' | 'idempotency_key'>
/** Each page is a call of its own, with its own key. */
type PageOptions = Omit<CallOptions, 'idempotencyKey' | 'quote'>
type QuotesPage = Operations['tweet_quotes']['answer']

/** The gateway, for one key. */
export class Farebox {
  readonly tasks: Tasks
  readonly requests: Requests
  readonly sdk: Sdks
  readonly account: Account
  readonly #send: Send
  readonly #parts: SendParts
  readonly #settings: Required<Pick<FareboxOptions, 'timeoutMs' | 'maxRetries' | 'maxWaitMs'>>
  readonly #baseUrl: string
  readonly #apiKey: string
  readonly #names: Names
  readonly #maxCostUsd: string | undefined

  constructor(options: FareboxOptions) {
    const { apiKey, baseUrl, clock = systemClock, random = Math.random, names = {}, maxCostUsd } = options
    requireKey(apiKey)
    this.#baseUrl = baseUrlOf(baseUrl)
    this.#apiKey = apiKey
    this.#names = names
    this.#maxCostUsd = maxCostUsd
    const { timeoutMs, maxRetries, maxWaitMs } = { ...DEFAULTS, ...withoutGaps(options) }
    requireWhole({ timeoutMs }, 1)
    requireWhole({ maxRetries, maxWaitMs }, 0)
    this.#settings = { timeoutMs, maxRetries, maxWaitMs }
    const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
    this.#parts = { fetch, clock, random, word: (names.provider ?? 'farebox').toLowerCase() }
    this.#send = createSend(this.#parts, createLookUp({ clock, read: (...by) => this.#readByKey(...by) }))
    const free: Free = (id, input, how) => this.#free(id, input, how)
    this.tasks = createTasks({ clock, random, free, create: (input, how) => this.call('video_synthesis', input, how) })
    this.requests = createRequests(free, (key, operation) => this.#readByKey(key, operation, undefined))
    this.account = createAccount({
      ...{ options: options.account, word: this.#parts.word },
      answered: (wanted, how) => this.#answered(wanted, this.#how(how)),
      streamed: (wanted, how) => this.#answered(wanted, { ...this.#how(how), isStreamed: true }),
    })
    this.sdk = createSdks({ apiKey, baseUrl: this.#baseUrl, fetch: this.fetch })
  }

  /** Makes a call and pays for it, once, whatever happens on the way. */
  async call<Id extends OperationId>(
    operation: Id,
    input: Operations[Id]['input'],
    options: CallOptions = {},
  ): Promise<Result<Operations[Id]['answer']>> {
    if ('stream' in input && input.stream === true)
      throw new TypeError('Streams are for the SDKs of the protocols: new OpenAI(farebox.sdk.openai()).')
    const route = routeOf(OPERATIONS[operation])
    const idempotencyKey = options.idempotencyKey ?? newKey()
    requireIdempotencyKey(idempotencyKey)
    const word = this.#parts.word
    const cap = options.maxCostUsd ?? this.#maxCostUsd
    const quoteId = options.quote?.quote_id
    const headers = {
      'idempotency-key': idempotencyKey,
      ...(cap !== undefined && { [`x-${word}-max-cost-usd`]: cap }),
      ...(quoteId && { [`x-${word}-quote-id`]: quoteId }),
      ...(route.isTask && { [`x-${word}-async`]: 'enable' }),
      [`x-${word}-tell`]: 'budget',
    }
    const wire = this.#wire(route, input, headers)
    const wanted = { wire, isPaid: true, idempotencyKey, operation, isTask: route.isTask }
    const sent = await this.#send(wanted, this.#how(options))
    if (sent.kind === 'answer') return resultOf(sent, { word, idempotencyKey })
    return created(sent.request, idempotencyKey) as Result<Operations[Id]['answer']>
  }

  /** Says what a call would cost, `expected` and `max`. Nothing is executed, held or charged. */
  async quote<Id extends Quotable>(
    operation: Id,
    input: Operations[Id]['input'],
    options: RequestOptions = {},
  ): Promise<Result<Quote>> {
    const route = routeOf(OPERATIONS[operation])
    const { word } = this.#parts
    const headers = { [`x-${word}-cost-mode`]: 'quote', ...(route.isTask && { [`x-${word}-async`]: 'enable' }) }
    // A gateway that does not take it for one would make the call: so that it has a key, and is looked up where it was cut.
    const idempotencyKey = newKey()
    const wire = this.#wire(route, input, { ...headers, 'idempotency-key': idempotencyKey })
    const heard = await this.#answered({ wire, isPaid: true, idempotencyKey, operation }, this.#how(options))
    return quoteOf(heard, word, idempotencyKey)
  }

  /** Posts that quote a post, page by page. Each page is a call that is paid for: leave the loop to stop paying. */
  quotesOf(tweetId: string, options: PageOptions = {}): Paged<QuotesPage['tweets'][number], QuotesPage> {
    return paged({
      read: (cursor) => this.call('tweet_quotes', { tweetId, ...(cursor !== undefined && { cursor }) }, options),
      itemsOf: ({ tweets }) => tweets,
      nextOf: ({ has_next_page, next_cursor }) => (has_next_page ? next_cursor : undefined),
    })
  }

  balance(options?: RequestOptions) {
    return this.#free('get_balance', {}, options)
  }

  /** What was used between two moments, by days of UTC. */
  usage({ start, end }: { readonly start: Date; readonly end?: Date }, options?: RequestOptions) {
    const query = { start_time: seconds(start), ...(end !== undefined && { end_time: seconds(end) }) }
    return this.#free('get_usage', query, options)
  }

  models(options?: RequestOptions) {
    return this.#free('list_models', {}, options)
  }

  /**
   * A `fetch` for the SDKs of the protocols: it puts an idempotency key and the cap on whatever is no free route, waits as the gateway
   * asks, and looks up what was cut before its answer began. What comes after that, such as a stream, is handed over as it comes.
   */
  readonly fetch: typeof globalThis.fetch = async (...by) => {
    const { url, method, headers, body, others, isRepeatable, signal } = await askedOf(...by)
    const { isPaid, operation } = aimOf(method, url, { baseUrl: this.#baseUrl, names: this.#names })
    const idempotencyKey = isPaid ? (headers['idempotency-key'] ?? newKey()) : undefined
    if (idempotencyKey !== undefined) requireIdempotencyKey(idempotencyKey)
    const cap = this.#maxCostUsd
    const named = { ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }) }
    const capped = isPaid && cap !== undefined ? { [`x-${this.#parts.word}-max-cost-usd`]: cap } : {}
    const wire = { url, method, headers: { ...capped, ...headers, ...named }, body, others }
    const how = { ...this.#how(signal === undefined ? {} : { signal }), isStreamed: true }
    const sent = await this.#send({ wire, isPaid, idempotencyKey, operation, isRepeatable }, how)
    if (sent.kind === 'created') throw new OutcomeUnknownError('A task was created.', { code: 'outcome_unknown' })
    const { response, text, status } = sent
    return response.bodyUsed ? new Response(text, { status, headers: response.headers }) : response
  }

  #free<Id extends FreeId>(id: Id, input: FreeRoutes[Id]['input'], options: RequestOptions = {}) {
    const wire = this.#wire(routeOf(FREE_ROUTES[id]), input, {})
    return this.#ask<FreeRoutes[Id]['answer']>({ wire, isPaid: false }, options)
  }

  async #ask<Data>(wanted: Wanted, options: RequestOptions): Promise<Result<Data>> {
    const heard = await this.#answered(wanted, this.#how(options))
    return resultOf(heard, { word: this.#parts.word, idempotencyKey: undefined })
  }

  async #answered(wanted: Wanted, how: SendOptions): Promise<Answered> {
    const sent = await this.#send(wanted, how)
    if (sent.kind === 'answer') return sent
    throw new Error('only a task is looked up as created')
  }

  /** The calls that have a key. What is not a page of the gateway's own is no news of them. */
  async #readByKey(
    key: string,
    operation: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ListedRequests> {
    const query = { idempotency_key: key, ...(operation !== undefined && { operation }) }
    const wire = this.#wire(routeOf(FREE_ROUTES.list_requests), query, {})
    const how = { ...this.#settings, ...LOOK_UP, signal, isStreamed: false }
    const heard = await this.#answered({ wire, isPaid: false }, how)
    const { data } = resultOf<unknown>(heard, { word: this.#parts.word, idempotencyKey: key })
    if (isPage(data, heard)) return data
    throw new UnexpectedAnswerError('The calls of a key could not be read.', {
      code: 'unexpected_answer',
      idempotencyKey: key,
    })
  }

  #wire(route: Route, input: object, headers: Readonly<Record<string, string>>) {
    const place = { baseUrl: this.#baseUrl, names: this.#names }
    return wireOf(route, input, place, {
      authorization: `Bearer ${this.#apiKey}`,
      accept: 'application/json',
      ...headers,
    })
  }

  #how(options: RequestOptions): SendOptions {
    const { signal, timeoutMs, maxRetries } = { ...this.#settings, signal: undefined, ...withoutGaps(options) }
    requireWhole({ timeoutMs }, 1)
    requireWhole({ maxRetries }, 0)
    return { ...this.#settings, timeoutMs, maxRetries, signal, isStreamed: false }
  }
}

/** A look is free and short, and all else waits for it: it is tried more often than a call. */
const LOOK_UP = { timeoutMs: 30_000, maxRetries: 6 }

type Free = <Id extends FreeId>(
  id: Id,
  input: FreeRoutes[Id]['input'],
  options?: RequestOptions,
) => Promise<Result<FreeRoutes[Id]['answer']>>

/** The calls of the key. */
export type Requests = {
  /** Those that have ended, the latest first. */
  readonly list: (query?: ListQuery, options?: RequestOptions) => Paged<ListedRequests['data'][number], ListedRequests>
  /** One in full: what it cost, why, and how it went. */
  readonly get: (id: string, options?: RequestOptions) => Promise<Result<FreeRoutes['get_request']['answer']>>
  /** The call of an operation that has an idempotency key now; undefined where nothing was charged for it and nothing runs. */
  readonly find: (idempotencyKey: string, operation: OperationId) => Promise<FoundRequest | undefined>
}

function createRequests(free: Free, readByKey: (key: string, operation?: string) => Promise<ListedRequests>): Requests {
  return {
    list: (query = {}, options) =>
      paged({
        read: (cursor) => free('list_requests', { ...query, ...(cursor !== undefined && { cursor }) }, options),
        itemsOf: ({ data }) => data,
        nextOf: ({ next_cursor }) => next_cursor,
      }),
    get: (id, options) => free('get_request', { id }, options),
    find: async (idempotencyKey, operation) => foundIn(await readByKey(idempotencyKey, operation), operation),
  }
}

/** The answer of a create that was lost, as it was: a task is known by the id of its call. */
function created({ id, held }: FoundRequest, idempotencyKey: string): Result<Operations['video_synthesis']['answer']> {
  return {
    data: { output: { task_id: id, task_status: 'PENDING' }, request_id: id },
    ...{ cost: null, balanceLeft: null, budgetLeft: null, held: readUsd(held?.usd) ?? null },
    requestId: id,
    idempotencyKey,
    limits: { requests: null, tokens: null },
    headers: new Headers(),
  }
}

function seconds(moment: Date): number {
  return Math.floor(moment.getTime() / 1_000)
}

/** What is given as undefined is not given. */
function withoutGaps<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
