import { createHash } from 'node:crypto'
import { Pool } from 'undici'
import { z } from 'zod'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { CALLS } from '../acceptance/installation.ts'
import type { History, Operation, Told } from './history.ts'
import { FOLLOW_OPERATION, FOLLOW_PATH } from './linked-accounts.ts'
import { listen } from './listen.ts'
import { addressOf, type Key, type Person } from './people.ts'
import type { Question, Speech } from './speech.ts'
import { streamedSpeechOf } from './speeches.ts'
import { sendByTool } from './tool-call.ts'
import { ASYNC, bodyOf, upstreamBodyOf, VIDEO_OPERATION, VIDEO_PATH, type Video } from './videos.ts'

/** What a client asks, whom for, and by which headers. */
export type Asked = {
  readonly client: string
  readonly what: string
  readonly person: Person
  readonly key: Key
  readonly path: string
  readonly body?: string
  /** POST with a body and GET without, where it is left out. */
  readonly method?: 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly mark?: string
  readonly operation?: string
  readonly idempotencyKey?: string
  readonly quoteId?: string
  readonly isQuote?: boolean
  readonly question?: Question
  readonly video?: Video
  /** The task that is asked about. */
  readonly subject?: string
  /** When the caller hangs up on a stream, whatever has come by then. */
  readonly cutAfterMs?: number
  /** Whether it is asked as a tool of an agent. */
  readonly isByTool?: boolean
}

/** Asks over HTTP as a caller does, never twice, and writes down what it was told. */
export type Caller = {
  readonly ask: (asked: Asked) => Promise<Operation>
  readonly inFlight: () => number
  readonly close: () => Promise<void>
}

const CONNECTIONS = 96
const PATIENCE_MS = 40_000

/** Where the tools are that agents use: of whichever gateways there are. */
type ToolUrl = () => string | undefined

export function createCaller(url: string, history: History, toolUrl: ToolUrl = () => undefined): Caller {
  const pool = new Pool(url, {
    connections: CONNECTIONS,
    pipelining: 1,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    connect: { timeout: PATIENCE_MS },
  })
  let inFlight = 0

  async function ask(asked: Asked): Promise<Operation> {
    const {
      client,
      what,
      person,
      key,
      mark,
      operation: sold,
      idempotencyKey,
      quoteId,
      question,
      video,
      subject,
    } = asked
    const operation = history.invoke({
      client,
      what,
      accountId: person.accountId,
      keyId: key.id,
      ...(mark !== undefined && { mark }),
      ...(sold !== undefined && { operation: sold }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      ...(quoteId !== undefined && { quoteId: quoteId.slice(-QUOTE_SHOWN) }),
      ...(question !== undefined && { question }),
      ...(video !== undefined && { video }),
      ...(subject !== undefined && { subject }),
      ...(asked.isByTool === true && { isByTool: true }),
    })
    const hangUp = new AbortController()
    const { cutAfterMs } = asked
    const timer = cutAfterMs === undefined ? undefined : setTimeout(() => hangUp.abort(), cutAfterMs)
    const cut = () => (hangUp.signal.aborted ? { isCut: true } : {})
    inFlight += 1
    try {
      const tools = asked.isByTool === true ? toolUrl() : undefined
      const { told, outcome } =
        tools === undefined
          ? await send(pool, asked, hangUp.signal)
          : await sendByTool(tools, asked, AbortSignal.any([hangUp.signal, AbortSignal.timeout(PATIENCE_MS)]))
      return history.end(operation, outcome, { ...told, ...cut() })
    } catch (error) {
      return history.end(operation, 'unknown', {
        error: error instanceof Error ? error.message : 'no error',
        ...cut(),
      })
    } finally {
      clearTimeout(timer)
      inFlight -= 1
    }
  }

  return { ask, inFlight: () => inFlight, close: () => pool.destroy() }
}

/** Enough of a quote to tell it from others. */
const QUOTE_SHOWN = 43

type Answered = { readonly told: Told; readonly outcome: 'ok' | 'fail' | 'unknown' }

async function send(pool: Pool, asked: Asked, signal: AbortSignal): Promise<Answered> {
  const { path, body, key, idempotencyKey, quoteId, isQuote, headers } = asked
  const answer = await pool.request({
    path,
    signal,
    method: asked.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${key.secret}`,
      'x-forwarded-for': addressOf(key),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(quoteId !== undefined && { 'x-farebox-quote-id': quoteId }),
      ...(isQuote === true && { 'x-farebox-cost-mode': 'quote' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  })
  const header = (name: string) => {
    const value = answer.headers[name]
    return typeof value === 'string' ? value : undefined
  }
  const number = (name: string) => (header(name) === undefined ? undefined : Number(header(name)))
  const [status, id] = [answer.statusCode, header('x-request-id')]
  const head = withoutUndefined({
    status,
    id,
    costNanos: amountOf(header('x-farebox-cost-usd')),
    balanceNanos: amountOf(header('x-farebox-balance-usd')),
    limit: number('x-ratelimit-limit-requests'),
    left: number('x-ratelimit-remaining-requests'),
    resetSeconds: number('x-ratelimit-reset-requests'),
    priceVersion: number('x-farebox-price-version'),
  })
  const speech = streamedSpeechOf(asked.operation)
  if (speech !== undefined && id !== undefined && header('content-type')?.startsWith('text/event-stream')) {
    const { told, outcome } = await listen(answer.body, speech, id)
    return { told: { ...head, ...told }, outcome }
  }
  const { error, quote_id: quoted, output } = bodyForm.catch({}).parse(jsonOf(await answer.body.text()))
  const told = withoutUndefined({
    ...head,
    code: error?.code ?? error?.details?.reason ?? undefined,
    firstId: error?.first_request_id ?? error?.details?.first_request_id ?? undefined,
    quoteId: quoted ?? undefined,
    ...(output !== undefined && {
      taskId: output.task_id,
      taskState: output.task_status,
      taskCostNanos: amountOf(header('x-farebox-task-cost-usd')),
      servedBy: header('x-served-by'),
    }),
  })
  // Only what one of our processes answered says anything; HAProxy's own errors do not.
  return { told, outcome: id === undefined ? 'unknown' : status < 400 ? 'ok' : 'fail' }
}

const firstForm = z.object({ first_request_id: z.string().nullish() })

/** One protocol has a status for a code, and ours in the first of its details. */
const detailsForm = z
  .tuple([z.object({ reason: z.string(), metadata: firstForm.optional() })], z.unknown())
  .transform(([{ reason, metadata }]) => ({ reason, first_request_id: metadata?.first_request_id }))

/** Where a protocol has a place for what is ours to add, it is there. */
const bodyForm = z.object({
  error: firstForm
    .extend({
      code: z.string().nullish().catch(null),
      details: z
        .union([detailsForm, firstForm.extend({ reason: z.undefined().optional() })])
        .nullish()
        .catch(null),
    })
    .optional(),
  quote_id: z.string().nullish(),
  output: z.object({ task_id: z.string(), task_status: z.string() }).optional().catch(undefined),
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

type Request = Pick<Asked, 'operation' | 'path' | 'body' | 'question' | 'video' | 'headers'>

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
    this.#remember(JSON.stringify({ model: 'rerank', ...Object(body) }), mark)
    return { operation, path, body: JSON.stringify(body) }
  }

  /** A question to a model, with its mark in it. */
  question(speech: Speech, mark: string, asked: Question): Request {
    const question = { ...asked, words: `a short story ${mark} ${asked.words}` }
    const body = JSON.stringify(speech.body(question))
    this.#remember(speech.upstreamBody(body, question), mark)
    const { operation: whole, streamOperation = whole } = speech
    return { operation: question.isStream ? streamOperation : whole, path: speech.path(question), body, question }
  }

  /** Somebody whom a user is to follow, who has the number of the mark. */
  follow(mark: string): Request {
    const body = JSON.stringify({ target_user_id: mark.replaceAll(/\D/g, '') })
    this.#remember(body, mark)
    return { operation: FOLLOW_OPERATION, path: FOLLOW_PATH, body }
  }

  /** A video that is to be made, with its mark in it. */
  video(mark: string, video: Video): Request {
    const body = bodyOf(mark, video)
    this.#remember(upstreamBodyOf(body), mark)
    return { operation: VIDEO_OPERATION, path: VIDEO_PATH, body, video, headers: ASYNC }
  }

  #remember(upstreamBody: string | Buffer, mark: string): void {
    this.#byHash.set(createHash('sha256').update(upstreamBody).digest('hex'), mark)
  }

  of({ query, body_sha256 }: JournalEntry): string | undefined {
    return /m\d+x/.exec(query)?.[0] ?? this.#byHash.get(body_sha256 ?? '')
  }
}
