import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Account, freeOf, promoOf, type Sums, sumsOf } from '../model/account.ts'
import type { Model } from '../model/ledger-model.ts'
import { brokenPromises } from '../model/promises.ts'
import { compareAccounts, compareRows } from '../model/rows.ts'
import { type Command, command, RARE } from './verbs-commands.ts'
import { run } from './verbs-run.ts'
import { forgetWorld, makeWorld } from './verbs-world.ts'
import { connect, emptyTables } from './world.ts'

/**
 * Sequences of every verb against PostgreSQL and the pure model: after each step the promises hold, the answers are the
 * same and so is the account's row; after each sequence every row is.
 */
const SEQUENCES = count({ full: 2_000, reduced: 70 })
const STEPS_MAX = 70

/** Every "always" has a "sometimes": what never happened was never tested. */
const MUST_HAPPEN = [
  ...['payment', 'payment again', 'promotion', 'promotion again'],
  ...['begun', 'ended', 'money_spent', 'account_suspended', 'allowance_spent', 'claim_taken'],
  ...['posted', 'voided', 'posted before', 'voided before', 'extended', 'extended before'],
  ...['ended', 'disowned', 'account_suspended', 'money_spent', 'allowance_spent'].map((why) => `not extended: ${why}`),
  ...['payment_reversal', 'dispute', 'nothing left to reverse', 'payment reversed before'],
  ...['won', 'won before', 'won again', 'charge given back', 'charge given back before', 'nothing left to give back'],
  ...['forgiven', 'nothing to forgive', 'expired', 'nothing expired', 'died', 'lives', 'orphaned', 'nothing orphaned'],
  ...['resolved by a charge', 'resolved as void', 'not unsettled', 'overdue', 'nothing overdue', 'passed'],
  ...['a budget stands with its credential', 'a budget of somebody else does not'],
  ...['debt arises', 'a release pays debt', 'a credit pays debt', 'a charge given back pays debt'],
  ...[
    'credit lapses',
    'a charge spends what lapsed',
    'a release takes what lapsed',
    'an unsettled call holds what lapsed',
  ],
  ...[
    'a release pays debt before it takes what lapsed',
    'debt takes promotional credit',
    'promotional credit comes back',
  ],
  ...['a release takes no more of what lapsed than it released', 'cash comes back after promotional credit'],
  ...['a charge spends two grants', 'a charge spends a grant in part', 'an expired grant is spent before it is taken'],
  ...['a late settlement after a void', 'a late settlement after the deadline', 'an unsettled call is settled late'],
  ...['orphaning frees a slot', 'orphaning keeps a task slot', 'a kept claim is freed by forgiveness'],
]

const database = await freshDatabase()

describe('every verb of the ledger, against the pure model', () => {
  const { pools } = connect(database.url)
  after(() => pools.close())

  it('agrees on every answer and every row, whatever the order', async () => {
    let commands = 0
    let sequences = 0
    const happened: Record<string, number> = {}
    const sequence = fc.noBias(fc.array(command, { minLength: 10, maxLength: STEPS_MAX, size: 'max' }))
    await fc.assert(
      fc.asyncProperty(sequence, async (steps) => {
        if (sequences++ % 50 === 49) await forgetAll()
        const world = await makeWorld(pools)
        for (const step of steps) {
          const before = structuredClone(world.model)
          const outcome = await run(world, step)
          for (const one of [outcome, ...noteworthy(step, before, world.model)])
            if (one !== undefined) happened[one] = (happened[one] ?? 0) + 1
          assert.deepEqual(brokenPromises(world.model), [])
          await compareAccounts(pools.rest, world.model)
        }
        commands += steps.length
        await compareRows(pools.rest, world.model)
        assert.deepEqual(await verifyLedger(pools.rest, world.accounts), [])
        await forgetWorld(world)
      }),
      { numRuns: SEQUENCES, seed, examples: RARE.map((steps) => [[...steps]]), endOnFailure: true },
    )
    assert.deepEqual(
      MUST_HAPPEN.filter((one) => happened[one] === undefined),
      [],
      JSON.stringify(happened),
    )
    recordProof('ledger-verbs', 'agrees on every answer and every row, whatever the order', {
      sequences: SEQUENCES,
      commands,
      happened,
    })
  })

  /** Queries for the rows that break a promise read whole tables: those of sequences that are done slow them down. */
  async function forgetAll(): Promise<void> {
    const own = ['allowances', 'kept_periods', 'holds', 'charges', 'claims', 'usage_totals', 'usage_sums', 'usage_tail']
    await emptyTables(pools.rest, 'accounts', 'credentials', ...own)
  }
})

/** What happened in a step beyond its outcome, by looking at the model before and after. */
function* noteworthy(step: Command, before: Model, after: Model): Generator<string> {
  for (const [id, account] of after.accounts) {
    const earlier = before.accounts.get(id)
    if (earlier !== undefined) yield* noteworthyMoney(step, earlier, account)
  }
  yield* noteworthyCalls(step, before, after)
}

function* noteworthyMoney(step: Command, before: Account, after: Account): Generator<string> {
  const [old, now] = [sumsOf(before), sumsOf(after)]
  const change = (column: keyof Sums) => now[column] - old[column]
  const released = change('held') < 0n
  const grantsSpent = before.grants.filter(({ remaining }, place) => (after.grants[place]?.remaining ?? 0n) < remaining)
  if (change('debt') > 0n) yield 'debt arises'
  if (change('debt') < 0n && released) yield 'a release pays debt'
  if (change('debt') < 0n && (step.do === 'credit' || step.do === 'grant')) yield 'a credit pays debt'
  if (change('debt') < 0n && step.do === 'reverse-charge') yield 'a charge given back pays debt'
  if (change('lapsed') > 0n) yield 'credit lapses'
  if (change('lapsed') < 0n && released && change('charged') > 0n) yield 'a charge spends what lapsed'
  if (change('credited') < 0n && released) yield 'a release takes what lapsed'
  if (change('credited') < 0n && released && after.lapsed > 0n && freeOf(after) > 0n)
    yield 'a release takes no more of what lapsed than it released'
  if (change('credited') < 0n && change('debt') < 0n && released)
    yield 'a release pays debt before it takes what lapsed'
  if (step.do === 'grant' && change('credited') > 0n && change('promo') < change('credited'))
    yield 'debt takes promotional credit'
  if (change('promo') < 0n && step.do === 'reverse-payment') yield 'a reversed payment takes promotional credit'
  if (change('promo') > 0n && change('charged') < 0n) yield 'promotional credit comes back'
  if (change('charged') > 0n && grantsSpent.length > 1) yield 'a charge spends two grants'
  if (change('charged') > 0n && grantsSpent.some((_, place) => (after.grants[place]?.remaining ?? 0n) > 0n))
    yield 'a charge spends a grant in part'
  if (change('charged') > 0n && grantsSpent.some(({ expiresAtUs }) => expiresAtUs < BigInt(Date.now()) * 1000n))
    yield 'an expired grant is spent before it is taken'
  if (promoOf(after) > 0n && after.debt > 0n) yield 'an account in debt holds promotional credit'
}

function* noteworthyCalls(step: Command, before: Model, after: Model): Generator<string> {
  const late = [...after.entries].filter(([id, { kind }]) => kind === 'late_settlement' && !before.entries.has(id))
  for (const [, { overrun }] of late)
    yield overrun < 0n ? 'a late settlement after the deadline' : 'a late settlement after a void'
  const places = (model: Model, scope: string) =>
    [...model.claims].filter(([set]) => set.includes(` ${scope} `)).reduce((all, [, one]) => all + one.length, 0)
  for (const [id, { promo }] of after.ended) {
    const parts = [...after.entries.values()].filter(({ corrects, charged }) => corrects === id && charged < 0n)
    if (step.do === 'reverse-charge' && promo > 0n && parts.length > 1 && parts.at(-1)?.promo === 0n)
      yield 'cash comes back after promotional credit'
  }
  for (const [id, hold] of before.holds) {
    if (hold.unsettledAtUs !== null && step.do === 'end' && after.ended.get(id)?.outcome === 'posted')
      yield 'an unsettled call is settled late'
  }
  const lapsing = [...after.holds.values()].filter(({ call, unsettledAtUs }) => {
    return unsettledAtUs !== null && (after.accounts.get(call.accountId)?.lapsed ?? 0n) > 0n
  })
  if (lapsing.length > 0) yield 'an unsettled call holds what lapsed'
  if (step.do === 'sweep' && places(after, 'concurrency') < places(before, 'concurrency')) {
    yield 'orphaning frees a slot'
  }
  if (step.do === 'sweep' && places(after, 'task') > 0 && [...after.holds.values()].some((one) => one.unsettledAtUs))
    yield 'orphaning keeps a task slot'
  if (step.do === 'forgive' && places(after, 'once') < places(before, 'once'))
    yield 'a kept claim is freed by forgiveness'
}
