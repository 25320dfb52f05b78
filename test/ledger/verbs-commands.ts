import fc from 'fast-check'

/** Every verb of the ledger as a command. Numbers choose among what a sequence has made so far. */
export type Command =
  | { readonly do: 'credit'; readonly account: number; readonly amount: number; readonly again: boolean }
  | {
      readonly do: 'grant'
      readonly account: number
      readonly amount: number
      readonly expiresInSeconds: number | null
      readonly again: boolean
    }
  | {
      readonly do: 'begin'
      readonly who: number
      readonly owner: number
      /** Null for all that is free. */
      readonly amount: number | null
      readonly allowances: number
      readonly claims: number
      readonly again: boolean
    }
  | {
      readonly do: 'end'
      readonly which: number
      /** Among the open calls, or among all that were ever begun: then most have ended. */
      readonly open: boolean
      readonly amount: number | null
      readonly forgiven: boolean
    }
  | {
      readonly do: 'extend'
      readonly which: number
      readonly open: boolean
      readonly owner: number
      /** To what it is to hold; null for as much as it and the account have. */
      readonly amount: number | null
    }
  | { readonly do: 'end-unknown'; readonly who: number; readonly amount: number | null }
  | {
      readonly do: 'reverse-payment'
      readonly which: number
      readonly most: number
      readonly dispute: boolean
      readonly again: boolean
    }
  | { readonly do: 'win-dispute'; readonly which: number; readonly again: boolean }
  | { readonly do: 'reverse-charge'; readonly which: number; readonly most: number; readonly again: boolean }
  | { readonly do: 'forgive'; readonly which: number }
  /** Puts the running period of an allowance into a credential's row. */
  | { readonly do: 'meter'; readonly who: number; readonly which: number }
  | { readonly do: 'expire'; readonly afterSeconds: number }
  | { readonly do: 'die'; readonly owner: number }
  | { readonly do: 'live'; readonly owner: number }
  | { readonly do: 'sweep' }
  | { readonly do: 'resolve'; readonly which: number; readonly amount: number | null }
  | { readonly do: 'overdue'; readonly afterSeconds: number }
  | { readonly do: 'pass'; readonly seconds: number }

export const OVERDUE_SECONDS = 86_400

const some = fc.nat(1_000)
const perhaps = (amount: fc.Arbitrary<number>) => fc.option(amount, { freq: 3 })
const seldom = fc.nat(5).map((one) => one === 0)
/** The first account has most of it, so that much happens to one. */
const account = fc.constantFrom(0, 0, 0, 0, 0, 1)
const owner = fc.nat(1)

const WEIGHTED: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<Command>])[] = [
  [3, fc.record({ do: fc.constant('credit'), account, amount: fc.integer({ min: 1, max: 90 }), again: seldom })],
  [
    5,
    fc.record({
      do: fc.constant('grant'),
      account,
      amount: fc.integer({ min: 1, max: 60 }),
      expiresInSeconds: fc.constantFrom(null, 30, 30, 2_000, 2_000, 4_000, 60_000),
      again: seldom,
    }),
  ],
  [
    16,
    fc.record({
      do: fc.constant('begin'),
      who: fc.constantFrom(0, 0, 0, 1, 1, 2),
      owner,
      amount: perhaps(fc.nat(40)),
      allowances: fc.nat(7),
      claims: fc.nat(11),
      again: seldom,
    }),
  ],
  [
    9,
    fc.record({
      do: fc.constant('end'),
      which: some,
      open: fc.nat(4).map((one) => one > 0),
      amount: perhaps(fc.nat(60)),
      forgiven: seldom,
    }),
  ],
  [
    7,
    fc.record({
      do: fc.constant('extend'),
      which: some,
      open: fc.nat(9).map((one) => one > 0),
      owner: fc.constantFrom(0, 0, 0, 1),
      amount: perhaps(fc.nat(90)),
    }),
  ],
  [
    1,
    fc.record({
      do: fc.constant('end-unknown'),
      who: fc.nat(2),
      amount: perhaps(fc.integer({ min: 1, max: 60 })),
    }),
  ],
  [
    5,
    fc.record({
      do: fc.constant('reverse-payment'),
      which: some,
      most: fc.integer({ min: 1, max: 100 }),
      dispute: fc.boolean(),
      again: seldom,
    }),
  ],
  [3, fc.record({ do: fc.constant('win-dispute'), which: some, again: seldom })],
  [
    4,
    fc.record({
      do: fc.constant('reverse-charge'),
      which: some,
      most: fc.integer({ min: 1, max: 50 }),
      again: seldom,
    }),
  ],
  [2, fc.record({ do: fc.constant('forgive'), which: some })],
  [4, fc.record({ do: fc.constant('meter'), who: fc.nat(2), which: fc.nat(2) })],
  [6, fc.record({ do: fc.constant('expire'), afterSeconds: fc.constantFrom(0, 61, 3_601) })],
  [4, fc.record({ do: fc.constant('die'), owner })],
  [1, fc.record({ do: fc.constant('live'), owner })],
  [4, fc.record({ do: fc.constant('sweep') })],
  [3, fc.record({ do: fc.constant('resolve'), which: some, amount: perhaps(fc.nat(60)) })],
  [3, fc.record({ do: fc.constant('overdue'), afterSeconds: fc.constantFrom(0, 90_001) })],
  // No sum of these is the time that anything lasts: what is due never depends on a millisecond.
  [2, fc.record({ do: fc.constant('pass'), seconds: fc.constantFrom(1, 61, 3_601, 50_003) })],
]

export const command: fc.Arbitrary<Command> = fc.oneof(
  ...WEIGHTED.map(([weight, arbitrary]) => ({ weight, arbitrary })),
)

const hold = (amount: number | null, claims = 0): Command => {
  return { do: 'begin', who: 0, owner: 0, amount, allowances: 0, claims, again: false }
}
const end = (amount: number | null, open = true): Command => {
  return { do: 'end', which: 0, open, amount, forgiven: false }
}
const grant = (amount: number, expiresInSeconds: number | null): Command => {
  return { do: 'grant', account: 0, amount, expiresInSeconds, again: false }
}
const reversal = (most: number, dispute = false): Command => {
  return { do: 'reverse-payment', which: 0, most, dispute, again: false }
}
const giveBack = (most: number, again = false): Command => ({ do: 'reverse-charge', which: 0, most, again })
const win = (again: boolean): Command => ({ do: 'win-dispute', which: 0, again })
const extend = (amount: number | null, open = true): Command => {
  return { do: 'extend', which: 0, open, owner: 0, amount }
}
const ORPHANED: readonly Command[] = [{ do: 'die', owner: 0 }, { do: 'sweep' }]

/**
 * What chance brings about too seldom for a short run, begun with an account that has paid 60: credit lapses in a call
 * that is orphaned, and its end spends some of it, pays debt and gives up the rest; a release gives up no more than it
 * released; debt takes promotional credit; a charge that is given back pays debt, or comes
 * in parts; evidence comes after the deadline and after a void; a charge spends two grants; a call that has grown, and holds credit that lapsed,
 * pays debt with what it releases; one grows no more when its process is taken for dead, when its account owes, and when it has ended.
 */
export const RARE: readonly (readonly Command[])[] = [
  [
    ...[grant(30, 30), grant(20, 60_000), hold(null), { do: 'expire', afterSeconds: 61 } as const, ...ORPHANED],
    ...[reversal(60), end(10)],
  ],
  [
    ...[grant(30, 30), hold(10), hold(null), { do: 'expire', afterSeconds: 61 } as const],
    ...[{ do: 'credit', account: 0, amount: 40, again: false } as const, end(null)],
  ],
  [hold(20), end(20), hold(40), reversal(60), grant(30, null), end(null)],
  [hold(60), end(60), reversal(60), giveBack(30)],
  [grant(10, null), hold(40), end(30), giveBack(15), giveBack(10)],
  [
    ...[hold(40), ...ORPHANED, { do: 'overdue', afterSeconds: 90_001 } as const, end(10, false)],
    ...[hold(30), ...ORPHANED, { do: 'resolve', which: 0, amount: 10 } as const],
  ],
  [hold(20), ...ORPHANED, { do: 'resolve', which: 0, amount: null }, end(15, false)],
  [
    ...[grant(30, 30), hold(10), extend(null), { do: 'expire', afterSeconds: 61 } as const, reversal(60), extend(90)],
    ...[end(10), extend(20, false)],
  ],
  [hold(20), reversal(60), extend(40)],
  [hold(20), extend(40), extend(30), ...ORPHANED, extend(50), { do: 'resolve', which: 0, amount: 35 }],
  [
    ...[grant(10, 2_000), grant(10, 4_000), hold(40, 7), end(15), giveBack(5), giveBack(5, true)],
    ...[{ do: 'forgive', which: 0 } as const, { do: 'forgive', which: 0 } as const],
    ...[reversal(50, true), win(false), win(true), win(false)],
  ],
  [grant(30, 30), hold(10), { do: 'pass', seconds: 61 }, end(5)],
]
