import { expireGrants, freeOf, type Grant, inOrderOfExpiry, payDebt, smaller, sum } from './account.ts'
import { correctionsOf, enter } from './entries.ts'
import { endClaims, type Model, periodOf } from './ledger-model.ts'

/** The verbs that change money beside calls. Each happens once for its id: the same id again answers as the first time. */

export const NEVER_US = 2n ** 62n

/** Adds money; promotional credit where it expires. Debt is paid first. False where it was added before. */
export function credit(
  model: Model,
  entryId: string,
  accountId: string,
  amount: bigint,
  expiresAtUs: bigint | null = null,
): boolean {
  if (model.entries.has(entryId)) return false
  const kind = expiresAtUs === null ? 'payment' : 'promotion'
  enter(model, accountId, { id: entryId, kind }, (account) => {
    account.credited += amount
    const grants: Grant[] = expiresAtUs === null ? [] : [{ id: entryId, remaining: amount, expiresAtUs }]
    account.grants.push(...grants)
    payDebt(account, grants)
  })
  return true
}

/** Takes a payment back, never more than is left of it: first what is free, the remainder is debt. */
export function reversePayment(
  model: Model,
  reversalId: string,
  paymentId: string,
  most: bigint,
  kind: 'payment_reversal' | 'dispute',
): bigint {
  const payment = model.entries.get(paymentId)
  if (payment?.kind !== 'payment') throw new Error(`there is no payment ${paymentId}`)
  const known = entryOf(model, reversalId, paymentId)
  if (known !== undefined) return -known.credited
  const reversed = atLeastNothing(smaller(most, leftOf(model, paymentId)))
  enter(model, payment.accountId, { id: reversalId, kind, corrects: paymentId }, (account) => {
    // The customer owes all of it, and pays at once what is free.
    account.credited -= reversed
    account.debt += reversed
    payDebt(account)
  })
  return reversed
}

/** The entry of that id, which must be about the same thing. */
function entryOf(model: Model, id: string, corrects: string) {
  const known = model.entries.get(id)
  if (known !== undefined && known.corrects !== corrects) throw new Error(`entry ${id} is about something else`)
  return known
}

function atLeastNothing(amount: bigint): bigint {
  return amount > 0n ? amount : 0n
}

/** What of a payment has not been reversed, disputes that were won left aside. */
export function leftOf(model: Model, paymentId: string): bigint {
  const lost = correctionsOf(model, paymentId).filter(([id]) => correctionsOf(model, id).length === 0)
  return (model.entries.get(paymentId)?.credited ?? 0n) + sum(lost.map(([, { credited }]) => credited))
}

/** What an account has paid in all, less what was reversed: money of its own, not promotional. */
export function paidOf(model: Model, accountId: string): bigint {
  const own = [...model.entries].filter(([, entry]) => entry.accountId === accountId && entry.kind === 'payment')
  return sum(own.map(([id]) => leftOf(model, id)))
}

export function winDispute(model: Model, entryId: string, disputeId: string): bigint {
  const dispute = model.entries.get(disputeId)
  if (dispute?.kind !== 'dispute') throw new Error(`there is no dispute ${disputeId}`)
  const known = entryOf(model, entryId, disputeId)
  if (known !== undefined) return known.credited
  const won = correctionsOf(model, disputeId).length > 0 ? 0n : -dispute.credited
  enter(model, dispute.accountId, { id: entryId, kind: 'dispute_won', corrects: disputeId }, (account) => {
    account.credited += won
    payDebt(account)
  })
  return won
}

/** Takes promotional credit that has expired, of every account. How many grants those were. */
export function expire(model: Model, atUs: bigint): number {
  let grants = 0
  for (const [accountId, account] of model.accounts) {
    const isTaken = freeOf(account) > 0n
    if (!account.grants.some(({ remaining, expiresAtUs }) => remaining > 0n && expiresAtUs <= atUs)) continue
    const take = () => {
      grants += expireGrants(account, atUs)
    }
    if (isTaken) enter(model, accountId, { kind: 'expiry' }, take)
    else take()
  }
  return grants
}

/**
 * Gives a charge back, never more than it was; to the allowances that it was counted against as well. What promotional
 * credit paid comes first, and is promotional credit again until the last of the grants expires.
 */
export function reverseCharge(
  model: Model,
  reversalId: string,
  chargeId: string,
  most: bigint,
  kind: 'charge_reversal' | 'forgiveness' = 'charge_reversal',
): bigint {
  const charge = model.ended.get(chargeId)
  if (charge === undefined) return 0n
  const known = entryOf(model, reversalId, chargeId)
  if (known !== undefined) return -known.charged
  const givenBefore = -sum(correctionsOf(model, chargeId).map(([, { charged }]) => charged))
  const given = atLeastNothing(smaller(most, charge.amount - givenBefore))
  if (given === 0n && kind === 'forgiveness') return 0n
  const promoLeft = charge.promo - smaller(charge.promo, givenBefore)
  const overrun = kind === 'forgiveness' ? given : 0n
  enter(model, charge.accountId, { id: reversalId, kind, overrun, corrects: chargeId }, (account) => {
    account.charged -= given
    const last = inOrderOfExpiry(account).slice(-1)
    for (const grant of last) grant.remaining += smaller(given, promoLeft)
    payDebt(account, last)
  })
  for (const id of charge.call?.hold?.allowances ?? []) periodOf(model, id, charge.beganAtUs).charged -= given
  return given
}

/** Gives back a charge whose caller got nothing, once a call: it ended uncharged, and its keys are free again. */
export function forgiveCharge(model: Model, chargeId: string, most: bigint): bigint {
  const given = reverseCharge(model, chargeId, chargeId, most, 'forgiveness')
  const call = model.ended.get(chargeId)?.call
  if (call !== undefined) endClaims(model, call, false, 0n)
  return given
}
