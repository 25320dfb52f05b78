import { createHash } from 'node:crypto'
import { Pool } from 'undici'
import { z } from 'zod'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { CALLS } from '../acceptance/installation.ts'
import type { History, Operation, Told } from './history.ts'
import type { Key, Person } from './people.ts'

/** What a client asks, whom for, and by which headers. */
export type Asked = {
  readonly client: string
  readonly what: string
  readonly person: Person
  readonly key: Key
  readonly path: string
  readonly body?: string
  readonly mark?: string
  readonly operation?: string
  readonly idempotencyKey?: string
  readonly quoteId?: string
  readonly isQuote?: boolean
}

/** Asks over HTTP as a caller does, never twice, and writes down what it was told. */
export type Caller = {
  readonly ask: (asked: Asked) => Promise<Operation>
  readonly inFlight: () => number
  readonly close: () => Promise<void>
}

const CONNECTIONS = 96
const PATIENCE_MS = 40_000

export function createCaller(url: string, history: History): Caller {
  const pool = new Pool(url, {
    connections: CONNECTIONS,
    pipelining: 1,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    connect: { timeout: PATIENCE_MS },
  })
  let inFlight = 0

  async function ask(asked: Asked): Promise<Operation> {
    const { client, what, person, key, mark, operation: sold, idempotencyKey, quoteId } = asked
    const operation = history.invoke({
      client,
      what,
      accountId: person.accountId,
      keyId: key.id,
      ...(mark !== undefined && { mark }),
      ...(sold !== undefined && { operation: sold }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      ...(quoteId !== undefined && { quoteId: quoteId.slice(-QUOTE_SHOWN) }),
    })
    inFlight += 1
    try {
      const told = await send(pool, asked)
      // Only what one of our processes answered says anything; HAProxy's own errors do not.
      const outcome = told.id === undefined ? 'unknown' : (told.status ?? 0) < 400 ? 'ok' : 'fail'
      return history.end(operation, outcome, told)
    } catch (error) {
      return history.end(operation, 'unknown', { error: error instanceof Error ? error.message : 'no error' })
    } finally {
      inFlight -= 1
    }
  }

  return { ask, inFlight: () => inFlight, close: () => pool.destroy() }
}

/** Enough of a quote to tell it from others. */
const QUOTE_SHOWN = 43

async function send(pool: Pool, { path, body, key, idempotencyKey, quoteId, isQuote }: Asked): Promise<Told> {
  const answer = await pool.request({
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${key.secret}`,
      'x-forwarded-for': addressOf(key),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(quoteId !== undefined && { 'x-farebox-quote-id': quoteId }),
      ...(isQuote === true && { 'x-farebox-cost-mode': 'quote' }),
    },
    ...(body !== undefined && { body }),
  })
  const text = await answer.body.text()
  const header = (name: string) => {
    const value = answer.headers[name]
    return typeof value === 'string' ? value : undefined
  }
  const number = (name: string) => (header(name) === undefined ? undefined : Number(header(name)))
  const { error, quote_id: quoted } = bodyForm.catch({}).parse(jsonOf(text))
  return withoutUndefined({
    status: answer.statusCode,
    id: header('x-request-id'),
    costNanos: amountOf(header('x-farebox-cost-usd')),
    balanceNanos: amountOf(header('x-farebox-balance-usd')),
    limit: number('x-ratelimit-limit-requests'),
    left: number('x-ratelimit-remaining-requests'),
    resetSeconds: number('x-ratelimit-reset-requests'),
    code: error?.code ?? undefined,
    priceVersion: number('x-farebox-price-version'),
    firstId: error?.first_request_id ?? undefined,
    quoteId: quoted ?? undefined,
  })
}

/** Each key is used from an address of its own, as HAProxy would tell: who fails to authenticate is limited by it. */
export function addressOf({ id }: Key): string {
  const digits = id.replaceAll('-', '').slice(-6)
  return `10.${[0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)).join('.')}`
}

const bodyForm = z.object({
  error: z.object({ code: z.string().nullish().catch(null), first_request_id: z.string().nullish() }).optional(),
  quote_id: z.string().nullish(),
})

type MaybeUndefined<T> = { [Name in keyof T]: T[Name] | undefined }

function withoutUndefined(told: MaybeUndefined<Required<Told>> | MaybeUndefined<Told>): Told {
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined))
}

function amountOf(text: string | undefined): bigint | undefined {
  return text === undefined ? undefined : usd(text)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

type Request = { readonly operation: string; readonly path: string; readonly body?: string }

/** Words by which a request is found in the journal of its upstream, whoever sent it and whatever became of it. */
export class Marks {
  readonly #byHash = new Map<string, string>()
  #next = 0

  make(): string {
    this.#next += 1
    return `m${this.#next}x`
  }

  /** A request of an operation with its mark in it, and words for the sandbox. */
  request(operation: string, mark: string, words: string): Request {
    const { path, body } = CALLS[operation]?.(`${mark} ${words}`) ?? { path: '' }
    if (body === undefined) return { operation, path }
    const upstreamBody = JSON.stringify({ model: 'rerank', ...Object(body) })
    this.#byHash.set(createHash('sha256').update(upstreamBody).digest('hex'), mark)
    return { operation, path, body: JSON.stringify(body) }
  }

  of({ query, body_sha256 }: JournalEntry): string | undefined {
    return /m\d+x/.exec(query)?.[0] ?? this.#byHash.get(body_sha256 ?? '')
  }
}
