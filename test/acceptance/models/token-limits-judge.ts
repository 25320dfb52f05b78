import assert from 'node:assert/strict'
import type { Seen, Step } from './token-limits-seen.ts'

/** What a caller asked for and was told. */
export type Asked = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly id: string
  readonly isStream: boolean
  /** The output limit times the number of choices; undefined where none was sent. */
  readonly output: number | undefined
}

export type Limits = { readonly requestsPerMinute: number; readonly tokensPerMinute: number }

/** How often something happened that has to happen at times. */
export type Counts = Record<
  | 'admitted'
  | 'refused_for_now'
  | 'refused_for_good'
  | 'given_back'
  | 'used_beyond_the_reserve'
  | 'left_beyond_the_limit'
  | 'ended_in_another_window'
  | 'told_at_their_end'
  | 'told_at_their_beginning',
  number
>

type Rates = { readonly requests: number; readonly tokens: number; readonly resetSeconds: number }
/** Of a call that was begun: beside it, so many requests may have been counted after it in the same transaction. */
type RatesAtBegin = Rates & { readonly countedBeside: number }

const WINDOW_US = 60_000_000

/** Replays what PostgreSQL wrote of a key's window and holds it against what calls reserved and used, and what callers were told. */
export function judge(steps: readonly Step[], asked: readonly Asked[], limits: Limits, counts: Counts): void {
  const { requestsPerMinute, tokensPerMinute } = limits
  const calls = new Map<string, { reserved: number; begunAtUs: number; used: number | undefined }>()
  const atBegin = new Map<string, RatesAtBegin>()
  const atEnd = new Map<string, Rates>()
  /** Everything that was ever left. */
  const seenLeft = new Set([tokensPerMinute])
  let window: Seen | undefined

  const left = (tokens: number) => Math.max(0, tokensPerMinute - tokens)
  const ratesOf = ({ requests, tokens, startedAtUs }: Seen): Rates => {
    seenLeft.add(left(tokens))
    return { requests: requestsPerMinute - requests, tokens: left(tokens), resetSeconds: secondsOf(startedAtUs) }
  }

  for (const { began, ended, window: written } of steps) {
    const passedUs = (window?.startedAtUs ?? 0) - (written?.startedAtUs ?? 0)
    if (began.length + ended.length === 0 && written !== undefined && window !== undefined && passedUs > 0) {
      // Time was made to pass.
      for (const call of calls.values()) call.begunAtUs -= passedUs
      window = written
      continue
    }
    for (const { id, reserved, atUs } of began) calls.set(id, { reserved, begunAtUs: atUs, used: undefined })
    for (const { id, used } of ended) {
      const call = calls.get(id)
      if (call === undefined) continue
      call.used = used
      if (used < call.reserved) counts.given_back += 1
      if (used > call.reserved) counts.used_beyond_the_reserve += 1
      if (window !== undefined && call.begunAtUs < window.startedAtUs) counts.ended_in_another_window += 1
    }
    const requestsBefore = written?.startedAtUs === window?.startedAtUs ? (window?.requests ?? 0) : 0
    window = written ?? window
    if (window === undefined) continue
    // What can never be admitted counts as a request, and reserves nothing.
    const countedBeside = began.length === 0 ? 0 : window.requests - requestsBefore - began.length
    assert.ok(countedBeside >= 0, 'every call that is begun counts as a request')
    const { startedAtUs, tokens } = window
    const own = [...calls.values()].filter(({ begunAtUs }) => begunAtUs >= startedAtUs)
    const sum = own.reduce((total, { reserved, used }) => total + (used ?? reserved), 0)
    assert.equal(tokens, sum, 'a window has what is reserved and what was used, and nothing else')
    if (began.length > 0) {
      counts.admitted += began.length
      assert.ok(tokens <= tokensPerMinute, `${tokens} of ${tokensPerMinute} at an admission`)
    } else if (tokens > tokensPerMinute) counts.left_beyond_the_limit += 1

    let after = window
    for (const { id, reserved } of began.toReversed()) {
      atBegin.set(id, { ...ratesOf(after), countedBeside })
      after = { ...after, tokens: after.tokens - reserved, requests: after.requests - 1 }
    }
    for (const { id, atUs } of ended) {
      const isOver = startedAtUs + WINDOW_US <= atUs
      atEnd.set(id, ratesOf(isOver ? { startedAtUs: atUs, requests: 0, tokens: 0 } : window))
    }
  }

  for (const told of asked) {
    const { isStream, output } = told
    if (told.status === 429) {
      requireReason(told, tokensPerMinute, seenLeft, counts)
      continue
    }
    if (isStream) requireBegun(ratesTold(told), atBegin.get(told.id))
    else assert.deepEqual(ratesTold(told), atEnd.get(told.id), `as of the end: ${told.status} ${told.text}`)
    counts[isStream ? 'told_at_their_beginning' : 'told_at_their_end'] += 1
    const reserved = calls.get(told.id)?.reserved ?? 0
    if (output !== undefined) assert.ok(reserved > output, `${reserved} reserved for ${output} of output`)
  }
}

const secondsOf = (startedAtUs: number) => Math.ceil((startedAtUs + WINDOW_US) / 1_000_000)

function ratesTold({ headers }: Asked): Rates {
  const number = (name: string) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN)
  assert.equal(number('reset-tokens'), number('reset-requests'))
  return {
    requests: number('remaining-requests'),
    tokens: number('remaining-tokens'),
    resetSeconds: number('reset-requests'),
  }
}

/** What was counted after the call in its own transaction is not told to it, and nobody knows the order. */
function requireBegun(told: Rates, begun: RatesAtBegin | undefined): void {
  assert.ok(begun !== undefined, 'it was begun')
  const { countedBeside, ...rates } = begun
  assert.deepEqual({ ...told, requests: rates.requests }, rates, 'as of the beginning')
  const unseen = told.requests - rates.requests
  assert.ok(unseen >= 0 && unseen <= countedBeside, `${unseen} requests of ${countedBeside} counted beside it`)
}

/** Who is refused needs more than is left, and what is left was so at some moment. */
function requireReason(told: Asked, limit: number, seenLeft: ReadonlySet<number>, counts: Counts): void {
  const { code, message, details } = Object(JSON.parse(told.text).error)
  const text = String(message)
  const needed = Number(/may use up to ([\d,]+) tokens/.exec(text)?.[1]?.replaceAll(',', ''))
  const { tokens } = ratesTold(told)
  assert.ok(seenLeft.has(tokens), `${tokens} were never left`)
  assert.ok(needed > tokens, text)
  const isForGood = needed > limit
  const reason = code ?? Object(details).error_code
  assert.equal(reason, isForGood ? 'quota_exceeded' : 'rate_limit_exceeded', text)
  counts[isForGood ? 'refused_for_good' : 'refused_for_now'] += 1
}
