import type { Answered, Cut } from './attempt.ts'
import { asText, errorIn } from './error-body.ts'
import { fixOf } from './fixes.ts'
import { readUsd, type Usd } from './money.ts'
import { retryAfterOf } from './retry.ts'

export type ErrorDetails = {
  readonly code: string
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly cost?: Usd | undefined
  readonly idempotencyKey?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly members?: Readonly<Record<string, unknown>>
  readonly body?: string
  readonly cause?: unknown
}

/** Everything that goes wrong between a program and the gateway. `code` says what it is, `fix` what to do about it. */
export class FareboxError extends Error {
  /** The gateway's code, such as `insufficient_balance`, or one of the client's own. Codes are never renamed. */
  readonly code: string
  /** What to do, in a sentence. */
  readonly fix: string
  /** The page where it is mended, of what was refused for money, a right or a limit; null where the gateway names none. */
  readonly fixUrl: string | null
  /** The status of the answer; null where there was none. */
  readonly status: number | null
  readonly requestId: string | null
  /** What was charged; null where nobody has said, which is no zero. */
  readonly cost: Usd | null
  /** The key of the call. The same call with the same key is executed once at the most. */
  readonly idempotencyKey: string | null
  readonly retryAfterMs: number | null
  /** What else the gateway said, such as `needed_usd`. */
  readonly members: Readonly<Record<string, unknown>>
  /** The beginning of the body of the answer. */
  readonly body: string

  constructor(message: string, details: ErrorDetails) {
    super(message, { cause: details.cause })
    this.name = new.target.name
    this.code = details.code
    this.fix = fixOf(details.code, details.members)
    this.fixUrl = asText(details.members?.fix_url) ?? null
    this.status = details.status ?? null
    this.requestId = details.requestId ?? null
    this.cost = details.cost ?? null
    this.idempotencyKey = details.idempotencyKey ?? null
    this.retryAfterMs = details.retryAfterMs ?? null
    this.members = details.members ?? {}
    this.body = details.body ?? ''
  }
}

/** 400, 404, 413, 422 and their like: the request has to be another one. */
export class InvalidRequestError extends FareboxError {}
/** 401: no credential, or not a valid one. */
export class CredentialError extends FareboxError {}
/** 403: the credential may not do this. */
export class ForbiddenError extends FareboxError {}
/** 409 that no wait mends, such as a quote that has been used. */
export class ConflictError extends FareboxError {}
/** 429, after as many waits as were allowed. */
export class RateLimitError extends FareboxError {}
/** 5xx, after as many repetitions as were safe. */
export class ServerError extends FareboxError {}
/** No answer came. Where a call was paid for, it was looked up, and there was none: the same call with the same key is safe. */
export class ConnectionError extends FareboxError {}
/** A call with this key has completed and was charged (`cost`). Its answer is not kept, and can't be had again. */
export class CompletedError extends FareboxError {}
/** Nobody can say yet what came of the call, and whether it will be charged. It must not be made again with another key. */
export class OutcomeUnknownError extends FareboxError {}
/** The answer is not what the contract says: another content type, or no JSON. `body` has it, and `cost` what it cost. */
export class UnexpectedAnswerError extends FareboxError {}

/** 402: refused before any spend. */
export class BudgetError extends FareboxError {
  /** The most that the call could have cost. */
  readonly needed: Usd | null = readUsd(String(this.members.needed_usd)) ?? null
  /** What was left of the balance or the budget. */
  readonly left: Usd | null = readUsd(String(this.members.left_usd)) ?? null
  /** The cap that was sent. */
  readonly cap: Usd | null = readUsd(String(this.members.cap_usd)) ?? null
}

const BODY_SHOWN = 2_000

/** The error that an answer stands for. */
export function errorOf(heard: Answered, idempotencyKey: string | undefined): FareboxError {
  const { status, headers, text, cost } = heard
  const { code = `status_${status}`, message, members } = errorIn(status, headers, text)
  const details = {
    code,
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    cost,
    idempotencyKey,
    retryAfterMs: retryAfterOf(headers),
    members,
    body: text.slice(0, BODY_SHOWN),
  }
  const said = message ?? `The answer has the status ${status}.`
  if (code === 'outcome_unknown') return new OutcomeUnknownError(said, firstOf(details, members))
  if (code === 'idempotency_completed') return new CompletedError(said, firstOf(details, members))
  return new (classOf(status))(said, details)
}

/** Of a key that was used before, what matters is the first call. */
function firstOf(
  details: ErrorDetails,
  { first_request_id, cost_usd }: ErrorDetails['members'] & object,
): ErrorDetails {
  const requestId = typeof first_request_id === 'string' ? first_request_id : details.requestId
  return { ...details, requestId, cost: readUsd(String(cost_usd)) }
}

function classOf(status: number): typeof FareboxError {
  if (status === 401) return CredentialError
  if (status === 402) return BudgetError
  if (status === 403) return ForbiddenError
  if (status === 409) return ConflictError
  if (status === 429) return RateLimitError
  return status >= 500 || status === 408 ? ServerError : status >= 400 ? InvalidRequestError : UnexpectedAnswerError
}

/** No answer, after all that was safe to try. */
export function connectionError({ cause, headers }: Cut, idempotencyKey: string | undefined): ConnectionError {
  return new ConnectionError(`The gateway could not be asked: ${wordsOf(cause)}`, {
    code: 'connection_failed',
    requestId: headers?.get('x-request-id') ?? undefined,
    idempotencyKey,
    cause,
  })
}

export function wordsOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
