import type { Extension } from '../../server/src/calls/call.ts'
import { freeOf } from './account.ts'
import { accountOf } from './entries.ts'
import { type Model, type OpenHold, periodOf, standingWindow, windowKey } from './ledger-model.ts'

export type ModelGrowth = { readonly outcome: string; readonly held: bigint; readonly reserved: number }

/** Raises what an open call holds to a total, all or none. What it holds already is not added again. */
export function extend(model: Model, extension: Extension, atUs: bigint, ownerId = ''): ModelGrowth {
  const hold = model.holds.get(extension.id)
  if (hold === undefined) return { outcome: 'ended', held: 0n, reserved: 0 }
  const more = { amount: above(extension.amount, hold.amount), tokens: Math.max(0, extension.tokens - hold.tokens) }
  const refusal = refusalOf(model, extension, hold, more, atUs, ownerId)
  if (refusal === null) grow(model, extension, hold, more, atUs)
  return { outcome: refusal ?? 'extended', held: hold.amount, reserved: hold.tokens }
}

type More = { readonly amount: bigint; readonly tokens: number }

function above(total: bigint, before: bigint): bigint {
  return total > before ? total - before : 0n
}

/** The first reason against it, in the order in which reasons are told. */
function refusalOf(
  model: Model,
  { windows }: Extension,
  { call, ownerId, unsettledAtUs, beganAtUs }: OpenHold,
  more: More,
  atUs: bigint,
  asker: string,
): string | null {
  const account = accountOf(model, call.accountId)
  if (ownerId !== asker || unsettledAtUs !== null) return 'disowned'
  if (more.amount === 0n && more.tokens === 0) return null
  if (!account.active) return 'account_inactive'
  if (account.debt > 0n) return 'account_suspended'
  if (model.credentials.get(call.credentialId)?.active !== true) return 'credential_inactive'
  for (const { group, seconds, tokenLimit } of windows) {
    if (tokenLimit === null || more.tokens === 0) continue
    const used = standingWindow(model, call, group, seconds, atUs)?.tokens ?? 0
    if (used + more.tokens > tokenLimit) return 'tokens_spent'
  }
  if (more.amount === 0n) return null
  for (const id of call.hold?.allowances ?? []) {
    const { amount, charged, held } = periodOf(model, id, beganAtUs)
    if (charged + held + more.amount > amount) return 'allowance_spent'
  }
  return more.amount > freeOf(account) ? 'money_spent' : null
}

function grow(model: Model, { windows }: Extension, hold: OpenHold, more: More, atUs: bigint): void {
  const { call, tokens } = hold
  for (const id of call.hold?.allowances ?? []) periodOf(model, id, hold.beganAtUs).held += more.amount
  accountOf(model, call.accountId).held += more.amount
  hold.amount += more.amount
  hold.tokens += more.tokens
  if (more.tokens === 0) return
  let hasTurned = false
  for (const { group, seconds, tokenLimit } of windows) {
    if (tokenLimit === null) continue
    const standing = standingWindow(model, call, group, seconds, atUs) ?? { startedAtUs: atUs, requests: 0, tokens: 0 }
    hasTurned ||= standing.startedAtUs > hold.reservedAtUs
    standing.tokens += more.tokens
    model.windows.set(windowKey(call.credentialId, group), standing)
  }
  if (!hasTurned) return
  hold.tokensMoved = tokens
  hold.reservedAtUs = atUs
}
