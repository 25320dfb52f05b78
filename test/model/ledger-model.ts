import type { Call, Ending } from '../../server/src/calls/call.ts'

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
  readonly entries: Map<string, { accountId: string; amount: bigint }>
}

type Period = 'day' | 'month' | 'total'
type Account = { active: boolean; credited: bigint; debt: bigint; charged: bigint; held: bigint; promo: bigint }
type Place = { callId: string; fingerprint: string; keepSeconds: number; keptUntilUs: bigint | null }
type OpenHold = { call: Call; amount: bigint; beganAtUs: bigint }
type Ended = { outcome: 'posted' | 'voided'; accountId: string; amount: bigint; promo: bigint; overrun: bigint }

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
  }
}

/** Adds money once for each entry. Debt is paid first. */
export function credit(model: Model, entryId: string, accountId: string, amount: bigint, promo = false): void {
  if (model.entries.has(entryId)) return
  model.entries.set(entryId, { accountId, amount })
  const account = accountOf(model, accountId)
  account.credited += amount
  if (promo) account.promo += amount
  payDebt(account)
}

export function begin(model: Model, call: Call, atUs: bigint): ModelJudgement {
  const account = model.accounts.get(call.accountId)
  const repeated = call.hold !== null && model.holds.has(call.id)
  const refusal = repeated ? null : refusalOf(model, call, account, atUs)
  if (refusal === null && !repeated) take(model, call, atUs)
  return {
    outcome: refusal?.outcome ?? 'begun',
    free: account === undefined ? 0n : freeOf(account),
    holder: refusal?.holder ?? null,
    ...tightest(model, call, atUs),
  }
}

type Refusal = { readonly outcome: string; readonly holder?: string | null }

/** The first reason against a call, in the order in which reasons are told; null where there is none. */
function refusalOf(model: Model, call: Call, account: Account | undefined, atUs: bigint): Refusal | null {
  if (call.hold !== null && model.ended.has(call.id)) return { outcome: 'ended' }
  if (account === undefined) return { outcome: 'account_unknown' }
  if (!account.active) return { outcome: 'account_inactive' }
  if (account.debt > 0n) return { outcome: 'account_suspended' }
  const credential = model.credentials.get(call.credentialId)
  if (!credential?.active || credential.accountId !== call.accountId) return { outcome: 'credential_inactive' }
  return windowRefusal(model, call, atUs) ?? claimRefusal(model, call, atUs) ?? moneyRefusal(model, call, account, atUs)
}

function windowRefusal(model: Model, call: Call, atUs: bigint): Refusal | null {
  for (const { group, seconds, requestLimit, tokenLimit } of call.windows) {
    const { requests, tokens } = standingWindow(model, call, group, seconds, atUs) ?? { requests: 0, tokens: 0 }
    if (requests + 1 > requestLimit) return { outcome: 'requests_spent' }
    if (tokenLimit !== null && tokens + call.tokens > tokenLimit) return { outcome: 'tokens_spent' }
  }
  return null
}

function claimRefusal(model: Model, call: Call, atUs: bigint): Refusal | null {
  for (const { scope, key, limit, fingerprint } of call.claims) {
    const places = standingPlaces(model, setKey(call.credentialId, scope, key), atUs)
    if (places.length < limit) continue
    const holder = limit === 1 ? places[0] : undefined
    const differs = holder !== undefined && holder.fingerprint !== fingerprint
    return { outcome: differs ? 'claim_differs' : 'claim_taken', holder: holder?.callId ?? null }
  }
  return null
}

function moneyRefusal(model: Model, call: Call, account: Account, atUs: bigint): Refusal | null {
  if (call.hold === null) return null
  for (const id of call.hold.allowances) {
    const allowance = model.allowances.get(id)
    if (allowance?.accountId !== call.accountId) return { outcome: 'allowance_spent' }
    const { amount, charged, held } = periodOf(model, id, atUs)
    if (charged + held + call.hold.amount > amount) return { outcome: 'allowance_spent' }
  }
  return call.hold.amount > freeOf(account) ? { outcome: 'money_spent' } : null
}

function take(model: Model, call: Call, atUs: bigint): void {
  for (const { group, seconds, tokenLimit } of call.windows) {
    const standing = standingWindow(model, call, group, seconds, atUs) ?? { startedAtUs: atUs, requests: 0, tokens: 0 }
    standing.requests += 1
    if (tokenLimit !== null) standing.tokens += call.tokens
    model.windows.set(windowKey(call.credentialId, group), standing)
  }
  for (const { scope, key, fingerprint, keepSeconds } of call.claims) {
    const set = setKey(call.credentialId, scope, key)
    const place = { callId: call.id, fingerprint, keepSeconds, keptUntilUs: null }
    model.claims.set(set, [...standingPlaces(model, set, atUs), place])
  }
  if (call.hold === null) return
  for (const id of call.hold.allowances) periodOf(model, id, atUs).held += call.hold.amount
  accountOf(model, call.accountId).held += call.hold.amount
  model.holds.set(call.id, { call, amount: call.hold.amount, beganAtUs: atUs })
}

export type ModelSettlement = {
  readonly outcome: 'posted' | 'voided'
  readonly charged: bigint
  readonly overrun: bigint
  readonly free: bigint
}

export function end(model: Model, ending: Ending, atUs: bigint): ModelSettlement {
  const account = accountOf(model, ending.accountId)
  const before = model.ended.get(ending.id)
  const after = before ?? settle(model, account, ending, atUs)
  return { outcome: after.outcome, charged: after.amount, overrun: after.overrun, free: freeOf(account) }
}

function settle(model: Model, account: Account, ending: Ending, atUs: bigint): Ended {
  const hold = model.holds.get(ending.id)
  const asked = ending.amount ?? 0n
  const charge = hold === undefined || ending.forgiven ? 0n : smaller(asked, hold.amount)
  const promo = smaller(charge, account.promo)
  const outcome = hold !== undefined && ending.amount !== null && !ending.forgiven ? 'posted' : 'voided'
  const ended = { outcome, accountId: ending.accountId, amount: charge, promo, overrun: asked - charge } as const
  model.ended.set(ending.id, ended)
  if (hold === undefined) return ended

  model.holds.delete(ending.id)
  account.held -= hold.amount
  account.charged += charge
  account.promo -= promo
  payDebt(account)
  for (const id of hold.call.hold?.allowances ?? []) {
    const period = periodOf(model, id, hold.beganAtUs)
    period.held -= hold.amount
    period.charged += charge
  }
  correctTokens(model, hold, ending)
  endClaims(model, hold.call, charge > 0n, atUs)
  return ended
}

/** Tokens were admitted on an estimate; the window is corrected if it still stands. */
function correctTokens(model: Model, { call, beganAtUs }: OpenHold, { usage }: Ending): void {
  const used = usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  for (const { group, tokenLimit } of call.windows) {
    const window = model.windows.get(windowKey(call.credentialId, group))
    if (tokenLimit === null || window === undefined || window.startedAtUs > beganAtUs) continue
    window.tokens = Math.max(0, window.tokens + used - call.tokens)
  }
}

/** Slots end with their call; keys and quotes outlive a charged one and are free again after an uncharged one. */
function endClaims(model: Model, call: Call, charged: boolean, atUs: bigint): void {
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

/** The promises, as sentences about the model's state. An empty list means that all hold. */
export function brokenPromises(model: Model): string[] {
  const broken: string[] = []
  for (const [id, { credited, debt, charged, held, promo }] of model.accounts) {
    if (charged + held > credited + debt) broken.push(`account ${id} spent more than it has`)
    if (charged < 0n || held < 0n || debt < 0n || promo < 0n) broken.push(`account ${id} has a negative sum`)
    const open = [...model.holds.values()].filter(({ call }) => call.accountId === id)
    if (held !== open.reduce((sum, { amount }) => sum + amount, 0n))
      broken.push(`account ${id} holds other than its open holds`)
    const ended = [...model.ended.values()].filter(({ accountId }) => accountId === id)
    if (charged !== ended.reduce((sum, { amount }) => sum + amount, 0n))
      broken.push(`account ${id} was charged other than its charges`)
  }
  for (const [key, { amount, charged, held }] of model.periods) {
    if (charged + held > amount) broken.push(`allowance ${key} is exceeded`)
  }
  for (const id of model.holds.keys()) if (model.ended.has(id)) broken.push(`call ${id} is open and has ended`)
  return broken
}

function tightest(model: Model, call: Call, atUs: bigint): { requestsLeft: number | null; tokensLeft: number | null } {
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

function standingWindow(model: Model, { credentialId }: Call, group: string, seconds: number, atUs: bigint) {
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

function accountOf(model: Model, id: string): Account {
  const account = model.accounts.get(id)
  if (account === undefined) throw new Error(`no account ${id}`)
  return account
}

export function freeOf({ credited, debt, charged, held }: Account): bigint {
  return credited + debt - charged - held
}

function payDebt(account: Account): void {
  const free = freeOf(account)
  account.debt -= smaller(account.debt, free)
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

const windowKey = (credentialId: string, group: string) => `${credentialId} ${group}`
const setKey = (credentialId: string, scope: string, key: string) => `${credentialId} ${scope} ${key}`
