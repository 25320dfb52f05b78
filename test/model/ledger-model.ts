import type { Call, Ending } from '../../server/src/calls/call.ts'
import { type Account, freeOf, payDebt, smaller, spend, takeLapsed } from './account.ts'
import { accountOf, type Entry, enter } from './entries.ts'

/**
 * The rules of money, limits and claims as a state machine in memory: no database, no batches, no time of its own. It is
 * the oracle of the tests: whatever PostgreSQL does, replayed here in the order in which it judged, must come out the
 * same. It shares types with the server, and no code.
 */
export type Model = {
  readonly accounts: Map<string, Account>
  readonly credentials: Map<string, { accountId: string; active: boolean }>
  readonly allowances: Map<string, { accountId: string; period: Period; amount: bigint }>
  readonly periods: Map<string, { amount: bigint; charged: bigint; held: bigint }>
  readonly windows: Map<string, { startedAtUs: bigint; requests: number; tokens: number }>
  readonly claims: Map<string, Place[]>
  readonly holds: Map<string, OpenHold>
  readonly ended: Map<string, Ended>
  readonly entries: Map<string, Entry>
  readonly owners: Map<string, { lives: boolean }>
}

type Period = 'day' | 'month' | 'total'
type Place = {
  readonly callId: string
  readonly fingerprint: string
  readonly keepSeconds: number
  readonly endsWithOwner: boolean
  keptUntilUs: bigint | null
}
export type OpenHold = {
  readonly call: Call
  readonly ownerId: string
  amount: bigint
  /** What it has reserved of its token windows: in all, and of that in windows that were over when it grew. */
  tokens: number
  tokensMoved: number
  /** When it last began to reserve in a window. */
  reservedAtUs: bigint
  readonly beganAtUs: bigint
  unsettledAtUs: bigint | null
}
type Ended = {
  readonly outcome: 'posted' | 'voided'
  readonly accountId: string
  readonly amount: bigint
  readonly promo: bigint
  readonly overrun: bigint
  /** Undefined where nothing was held by this id. */
  readonly call: Call | undefined
  readonly beganAtUs: bigint
}

export type ModelJudgement = {
  readonly outcome: string
  readonly free: bigint
  readonly requestsLeft: number | null
  readonly tokensLeft: number | null
  readonly holder: string | null
}

export function createModel(): Model {
  return {
    accounts: new Map(),
    credentials: new Map(),
    allowances: new Map(),
    periods: new Map(),
    windows: new Map(),
    claims: new Map(),
    holds: new Map(),
    ended: new Map(),
    entries: new Map(),
    owners: new Map(),
  }
}

export function begin(model: Model, call: Call, atUs: bigint, ownerId = ''): ModelJudgement {
  const account = model.accounts.get(call.accountId)
  const repeated = call.hold !== null && model.holds.has(call.id)
  const refusal = repeated ? null : refusalOf(model, call, account, atUs)
  if (refusal === null && !repeated) take(model, call, atUs, ownerId)
  if (refusal?.costsRequest === true) countRequest(model, call, atUs)
  return {
    outcome: refusal?.outcome ?? 'begun',
    free: account === undefined ? 0n : freeOf(account),
    holder: refusal?.holder ?? null,
    ...tightest(model, call, atUs),
  }
}

type Refusal = {
  readonly outcome: string
  readonly holder?: string | null
  /** Whether it counts as a request in the windows of the call: where it is about money, or about a key or quote. */
  readonly costsRequest?: boolean
}

/** The first reason against a call, in the order in which reasons are told; null where there is none. */
function refusalOf(model: Model, call: Call, account: Account | undefined, atUs: bigint): Refusal | null {
  if (call.hold !== null && model.ended.has(call.id)) return { outcome: 'ended' }
  if (account === undefined) return { outcome: 'account_unknown' }
  if (!account.active) return { outcome: 'account_inactive' }
  const credential = model.credentials.get(call.credentialId)
  if (!credential?.active || credential.accountId !== call.accountId) return { outcome: 'credential_inactive' }
  return (
    windowRefusal(model, call, atUs) ??
    suspension(call, account) ??
    claimRefusal(model, call, atUs) ??
    moneyRefusal(model, call, account, atUs)
  )
}

function windowRefusal(model: Model, call: Call, atUs: bigint): Refusal | null {
  for (const { group, seconds, requestLimit, tokenLimit } of call.windows) {
    const { requests, tokens } = standingWindow(model, call, group, seconds, atUs) ?? { requests: 0, tokens: 0 }
    if (requests + 1 > requestLimit) return { outcome: 'requests_spent' }
    if (tokenLimit !== null && call.tokens > 0 && tokens + call.tokens > tokenLimit) return { outcome: 'tokens_spent' }
  }
  return null
}

function suspension(call: Call, account: Account): Refusal | null {
  return account.debt > 0n && call.hold !== null ? { outcome: 'account_suspended', costsRequest: true } : null
}

function claimRefusal(model: Model, call: Call, atUs: bigint): Refusal | null {
  for (const { scope, key, limit, fingerprint, keepSeconds } of call.claims) {
    const places = standingPlaces(model, setKey(call.credentialId, scope, key), atUs)
    if (places.length < limit) continue
    const holder = limit === 1 ? places[0] : undefined
    const differs = holder !== undefined && holder.fingerprint !== fingerprint
    const outcome = differs ? 'claim_differs' : 'claim_taken'
    return { outcome, holder: holder?.callId ?? null, costsRequest: keepSeconds > 0 }
  }
  return null
}

function moneyRefusal(model: Model, call: Call, account: Account, atUs: bigint): Refusal | null {
  if (call.hold === null) return null
  for (const id of call.hold.allowances) {
    const allowance = model.allowances.get(id)
    if (allowance?.accountId !== call.accountId) return { outcome: 'allowance_spent', costsRequest: true }
    const { amount, charged, held } = periodOf(model, id, atUs)
    if (charged + held + call.hold.amount > amount) return { outcome: 'allowance_spent', costsRequest: true }
  }
  return call.hold.amount > freeOf(account) ? { outcome: 'money_spent', costsRequest: true } : null
}

function countRequest(model: Model, call: Call, atUs: bigint, tokens = 0): void {
  for (const { group, seconds, tokenLimit } of call.windows) {
    const standing = standingWindow(model, call, group, seconds, atUs) ?? { startedAtUs: atUs, requests: 0, tokens: 0 }
    standing.requests += 1
    if (tokenLimit !== null) standing.tokens += tokens
    model.windows.set(windowKey(call.credentialId, group), standing)
  }
}

function take(model: Model, call: Call, atUs: bigint, ownerId: string): void {
  countRequest(model, call, atUs, call.tokens)
  for (const { scope, key, fingerprint, keepSeconds, endsWithOwner } of call.claims) {
    const set = setKey(call.credentialId, scope, key)
    const place = { callId: call.id, fingerprint, keepSeconds, endsWithOwner, keptUntilUs: null }
    model.claims.set(set, [...standingPlaces(model, set, atUs), place])
  }
  if (call.hold === null) return
  for (const id of call.hold.allowances) periodOf(model, id, atUs).held += call.hold.amount
  accountOf(model, call.accountId).held += call.hold.amount
  const { id, tokens } = call
  const times = { beganAtUs: atUs, reservedAtUs: atUs, unsettledAtUs: null }
  model.holds.set(id, { call, ownerId, amount: call.hold.amount, tokens, tokensMoved: 0, ...times })
}

export type ModelSettlement = {
  readonly outcome: 'posted' | 'voided'
  readonly charged: bigint
  readonly overrun: bigint
  readonly free: bigint
  /** Of the windows that the ending asks for. */
  readonly left: Left
}

/** An id that has ended answers as the first time. What is to be posted after a void is the operator's loss. */
export function end(model: Model, { usage, asked, ...ending }: Ending, atUs: bigint): ModelSettlement {
  const before = model.ended.get(ending.id)
  const tokensUsed = usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  if (before?.outcome === 'voided') enterLate(model, ending, before)
  const { outcome, amount, overrun } = before ?? settle(model, { ...ending, tokensUsed }, atUs)
  const left = asked === undefined ? NOTHING_ASKED : tightest(model, asked, atUs)
  return { outcome, charged: amount, overrun, free: freeOf(accountOf(model, ending.accountId)), left }
}

/** The first evidence that comes after a void corrects its overrun to what was used. */
function enterLate(model: Model, { id, accountId, amount }: Omit<Ending, 'usage'>, { overrun }: Ended): void {
  const used = amount ?? 0n
  if (used === overrun || model.entries.has(id)) return
  enter(model, accountId, { id, kind: 'late_settlement', overrun: used - overrun, corrects: id }, () => {})
}

type Settled = Omit<Ending, 'usage' | 'amount'> & { readonly amount: bigint | null; readonly tokensUsed: number }

export function settle(model: Model, ending: Settled, atUs: bigint): Ended {
  const { id, accountId, amount, forgiven } = ending
  const hold = model.holds.get(id)
  const { call, beganAtUs = atUs } = hold ?? {}
  const asked = amount ?? 0n
  const charge = hold === undefined || forgiven ? 0n : smaller(asked, hold.amount)
  const outcome = hold !== undefined && amount !== null && !forgiven ? 'posted' : 'voided'
  const promo = hold === undefined ? 0n : release(model, hold, charge)
  const ended = { outcome, accountId, amount: charge, promo, overrun: asked - charge, call, beganAtUs } as const
  model.ended.set(id, ended)
  if (hold === undefined) return ended

  model.holds.delete(id)
  for (const allowanceId of hold.call.hold?.allowances ?? []) {
    const period = periodOf(model, allowanceId, beganAtUs)
    period.held -= hold.amount
    period.charged += charge
  }
  correctTokens(model, hold, ending.tokensUsed)
  endClaims(model, hold.call, charge > 0n, atUs)
  return ended
}

/** Charges, then pays debt with what the call releases, then takes of it what expired meanwhile. Answers the promotional part. */
function release(model: Model, { call: { accountId }, amount }: OpenHold, charge: bigint): bigint {
  const account = accountOf(model, accountId)
  account.held -= amount
  const promo = spend(account, charge)
  let released = amount - charge
  if (account.debt > 0n && released > 0n)
    enter(model, accountId, { kind: 'debt_payment' }, () => {
      released -= payDebt(account)
    })
  if (account.lapsed > 0n && released > 0n)
    enter(model, accountId, { kind: 'expiry' }, () => takeLapsed(account, released))
  return promo
}

/** Tokens were reserved; what was used beyond what counts in windows that are over takes their place, if the window still stands. */
function correctTokens(model: Model, { call, reservedAtUs, tokens, tokensMoved }: OpenHold, used: number): void {
  for (const { group, tokenLimit } of call.windows) {
    const window = model.windows.get(windowKey(call.credentialId, group))
    if (tokenLimit === null || window === undefined || window.startedAtUs > reservedAtUs) continue
    window.tokens = Math.max(0, window.tokens + Math.max(0, used - tokensMoved) - (tokens - tokensMoved))
  }
}

/** Slots end with their call; keys and quotes outlive a charged one and are free again after an uncharged one. */
export function endClaims(model: Model, call: Call, charged: boolean, atUs: bigint): void {
  for (const { scope, key } of call.claims) {
    const set = setKey(call.credentialId, scope, key)
    const places = model.claims.get(set) ?? []
    const kept = places.flatMap((place) => {
      if (place.callId !== call.id) return [place]
      if (place.keepSeconds === 0 || !charged) return []
      return [{ ...place, keptUntilUs: atUs + BigInt(place.keepSeconds) * 1_000_000n }]
    })
    model.claims.set(set, kept)
  }
}

type Left = { readonly requestsLeft: number | null; readonly tokensLeft: number | null }

const NOTHING_ASKED: Left = { requestsLeft: null, tokensLeft: null }

function tightest(model: Model, call: Pick<Call, 'credentialId' | 'windows'>, atUs: bigint): Left {
  const left = call.windows.map(({ group, seconds, requestLimit, tokenLimit }) => {
    const { requests, tokens } = standingWindow(model, call, group, seconds, atUs) ?? { requests: 0, tokens: 0 }
    return {
      requests: Math.max(0, requestLimit - requests),
      tokens: tokenLimit === null ? null : Math.max(0, tokenLimit - tokens),
    }
  })
  const tokens = left.flatMap((one) => one.tokens ?? [])
  return {
    requestsLeft: left.length === 0 ? null : Math.min(...left.map((one) => one.requests)),
    tokensLeft: tokens.length === 0 ? null : Math.min(...tokens),
  }
}

export function standingWindow(
  model: Model,
  { credentialId }: Pick<Call, 'credentialId'>,
  group: string,
  seconds: number,
  atUs: bigint,
) {
  const window = model.windows.get(windowKey(credentialId, group))
  return window !== undefined && atUs < window.startedAtUs + BigInt(seconds) * 1_000_000n ? window : undefined
}

function standingPlaces(model: Model, set: string, atUs: bigint): Place[] {
  return (model.claims.get(set) ?? []).filter(({ keptUntilUs }) => keptUntilUs === null || keptUntilUs > atUs)
}

/** The counters of an allowance in the period of a moment, made when first touched. */
export function periodOf(model: Model, allowanceId: string, atUs: bigint) {
  const allowance = model.allowances.get(allowanceId)
  if (allowance === undefined) throw new Error(`no allowance ${allowanceId}`)
  const day = new Date(Number(atUs / 1000n)).toISOString().slice(0, 10)
  const start = { day, month: day.slice(0, 7), total: 'always' }[allowance.period]
  const key = `${allowanceId} ${start}`
  const known = model.periods.get(key)
  if (known !== undefined) return known
  const fresh = { amount: allowance.amount, charged: 0n, held: 0n }
  model.periods.set(key, fresh)
  return fresh
}

export const windowKey = (credentialId: string, group: string) => `${credentialId} ${group}`
const setKey = (credentialId: string, scope: string, key: string) => `${credentialId} ${scope} ${key}`
