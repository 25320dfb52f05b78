import type { Answered } from './attempt.ts'
import type { Quote } from './contract.ts'
import { asRecord, asText, isJson, parse } from './error-body.ts'
import { errorOf, UnexpectedAnswerError } from './errors.ts'
import { readUsd, type Usd } from './money.ts'

/** What a request gave, and what it cost. */
export type Result<Data> = {
  readonly data: Data
  /** What it was charged, exact; null where the answer does not say: of what is free, and of a task that has not ended. */
  readonly cost: Usd | null
  /** What is held for a task until it ends: the most that it can cost. */
  readonly held: Usd | null
  /** What the account has left to spend; null where the answer does not say. */
  readonly balanceLeft: Usd | null
  /** What is left of the key's budget; null where it has none, or where the answer does not say. */
  readonly budgetLeft: Usd | null
  /** By which the request is looked up and reported. */
  readonly requestId: string
  /** The key that made it safe to repeat; null for what is free. */
  readonly idempotencyKey: string | null
  readonly limits: { readonly requests: Limit | null; readonly tokens: Limit | null }
  readonly headers: Headers
}

/** The tightest limit that applies. */
export type Limit = { readonly limit: number; readonly remaining: number; readonly resetAt: Date }

type Read = { readonly word: string; readonly idempotencyKey: string | undefined }

/** Reads an answer: first its status, then its content type, then its body. */
export function resultOf<Data>(heard: Answered, { word, idempotencyKey }: Read): Result<Data> {
  const { status, headers, text } = heard
  if (status < 200 || status >= 300) throw errorOf(heard, idempotencyKey)
  const body = isJson(headers) ? parse(text) : undefined
  if (body === undefined && status !== 204) throw unexpected(heard, idempotencyKey)
  const money = (name: string) => readUsd(headers.get(`x-${word}-${name}-usd`)) ?? null
  return {
    // The contract says what it is, and the gateway's tests hold every answer against it.
    data: body as Data,
    cost: money('cost') ?? money('task-cost'),
    held: money('held'),
    balanceLeft: money('balance'),
    budgetLeft: money('budget'),
    requestId: headers.get('x-request-id') ?? '',
    idempotencyKey: idempotencyKey ?? null,
    limits: { requests: limitOf(headers, 'requests'), tokens: limitOf(headers, 'tokens') },
    headers,
  }
}

/** An answer to the wish for a quote that is none is that of a call: the gateway has not understood it. */
export function quoteOf(heard: Answered, word: string, idempotencyKey: string): Result<Quote> {
  const result = resultOf<Quote>(heard, { word, idempotencyKey: undefined })
  const { quote_id, max } = asRecord(result.data)
  if (asText(quote_id) !== undefined && asText(asRecord(max).usd) !== undefined) return result
  throw new UnexpectedAnswerError(
    'The answer is no quote: the call may have been made and charged. Check names.provider, the word in the names of headers.',
    {
      code: 'unexpected_answer',
      status: heard.status,
      requestId: result.requestId,
      cost: costUnderAnyWord(heard.headers),
      idempotencyKey,
      body: heard.text.slice(0, BODY_SHOWN),
    },
  )
}

function costUnderAnyWord(headers: Headers): Usd | undefined {
  const [, cost] = [...headers].find(([name]) => /^x-\w+-cost-usd$/.test(name)) ?? []
  return readUsd(cost)
}

const BODY_SHOWN = 1_048_576

function unexpected({ status, headers, text, cost }: Answered, idempotencyKey: string | undefined) {
  const type = headers.get('content-type') ?? 'no content type'
  const what = isJson(headers) ? 'JSON that can not be read' : type
  return new UnexpectedAnswerError(`The answer is ${what}, where JSON was expected.`, {
    code: 'unexpected_answer',
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    cost,
    idempotencyKey,
    body: text.slice(0, BODY_SHOWN),
  })
}

function limitOf(headers: Headers, of: 'requests' | 'tokens'): Limit | null {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    headers.get(`x-ratelimit-${name}-${of}`),
  )
  if (!limit || !remaining || !reset) return null
  return { limit: Number(limit), remaining: Number(remaining), resetAt: new Date(Number(reset) * 1_000) }
}
