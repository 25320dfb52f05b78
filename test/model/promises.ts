import { type Account, freeOf, promoOf, sum, unspentOf } from './account.ts'
import { leftOf } from './credits.ts'
import { correctionsOf } from './entries.ts'
import type { Model } from './ledger-model.ts'

/** The promises, as sentences about the model's state. An empty list means that all hold. */
export function brokenPromises(model: Model): string[] {
  return [
    ...[...model.accounts].flatMap(([id, account]) => [...brokenSums(id, account), ...brokenBooks(model, id, account)]),
    ...brokenAllowances(model),
    ...brokenCorrections(model),
    ...brokenCalls(model),
  ]
}

/** The sentences of those promises that do not hold. */
function unless(promises: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(promises).flatMap(([promise, holds]) => (holds ? [] : [promise]))
}

function brokenSums(id: string, account: Account): string[] {
  const { credited, debt, charged, held, lapsed, grants } = account
  const amounts = [credited, debt, charged, held, lapsed, ...grants.map(({ remaining }) => remaining)]
  return unless({
    [`account ${id} spends no more than it has`]: charged + held <= credited + debt,
    [`account ${id} in debt has nothing free`]: debt === 0n || freeOf(account) === 0n,
    [`account ${id} has no negative sum`]: amounts.every((amount) => amount >= 0n),
    [`account ${id} has no more promotional credit than is unspent`]: promoOf(account) <= unspentOf(account),
    [`account ${id} holds what has lapsed`]: lapsed <= held,
  })
}

function brokenBooks(model: Model, id: string, { credited, debt, charged, held, ...rest }: Account): string[] {
  const promo = promoOf({ credited, debt, charged, held, ...rest })
  const open = [...model.holds.values()].filter(({ call }) => call.accountId === id)
  const ended = [...model.ended.values()].filter(({ accountId }) => accountId === id)
  const entries = [...model.entries.values()].filter(({ accountId }) => accountId === id)
  const of = (column: 'credited' | 'debt' | 'charged' | 'promo') => sum(entries.map((entry) => entry[column]))
  return unless({
    [`account ${id} holds its open holds, unsettled ones too`]: held === sum(open.map(({ amount }) => amount)),
    [`account ${id} was charged its charges less what was given back`]:
      charged === sum(ended.map(({ amount }) => amount)) + of('charged'),
    [`account ${id} was credited its entries`]: credited === of('credited'),
    [`account ${id} is in debt by its entries`]: debt === of('debt'),
    [`account ${id} has spent its promotional credit once`]: promo === of('promo') - sum(ended.map((one) => one.promo)),
  })
}

function brokenAllowances({ periods }: Model): string[] {
  return [...periods].flatMap(([key, { amount, charged, held }]) =>
    unless({ [`allowance ${key} is kept`]: charged + held <= amount && charged >= 0n && held >= 0n }),
  )
}

function brokenCorrections(model: Model): string[] {
  const payments = [...model.entries].filter(([, { kind }]) => kind === 'payment')
  return [
    ...payments.flatMap(([id]) => unless({ [`payment ${id} is reversed once`]: leftOf(model, id) >= 0n })),
    ...[...model.ended].flatMap(([id, { amount }]) => {
      const given = -sum(correctionsOf(model, id).map(([, { charged }]) => charged))
      return unless({ [`charge ${id} is given back once`]: given <= amount })
    }),
  ]
}

function brokenCalls(model: Model): string[] {
  const places = [...model.claims].flatMap(([set, all]) => all.map((place) => ({ set, ...place })))
  return [
    ...[...model.holds.keys()].flatMap((id) => unless({ [`call ${id} is open or has ended`]: !model.ended.has(id) })),
    ...places.flatMap(({ set, callId, keptUntilUs, endsWithOwner }) => {
      const hold = model.holds.get(callId)
      const isKept = keptUntilUs !== null && (model.ended.get(callId)?.amount ?? 0n) > 0n
      const isOpen = keptUntilUs === null && hold !== undefined && (hold.unsettledAtUs === null || !endsWithOwner)
      return unless({ [`claim ${set} has its call ${callId}`]: isKept || isOpen })
    }),
  ]
}
