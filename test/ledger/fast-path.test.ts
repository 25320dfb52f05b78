import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Ending, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { NO_USAGE, voidOf } from '../../server/src/calls/calls.ts'
import { extendBatch } from '../../server/src/calls/extend-batch.ts'
import { createFastPath, judgedPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount, expirePromotions } from '../../server/src/ledger/credit.ts'
import { reverseCharge, reversePayment } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { makeTwin, nameCall, pass, passDay, rowsOf, type Twin, toldOf, watched, wrongTimes } from './fast-path-world.ts'
import { unfailed } from './session.ts'
import { connect, emptyTables, ids } from './world.ts'

/**
 * The statement for calls that fit never decides otherwise than the judging function. Two of everything: calls of one go by the statement where they fit, those of the
 * other are all judged, and every answer and every row has to be the same.
 */
const SEQUENCES = count({ full: 5_000, reduced: 35 })

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

type Spec = {
  readonly who: number
  readonly amount: number
  readonly tokens: number
  readonly budget: 'own' | 'none' | 'five' | 'both'
  readonly slot: boolean
  readonly odd: 'none' | 'key' | 'window' | 'admission'
  readonly tag: number
}

type Command =
  | { readonly do: 'begin'; readonly calls: readonly Spec[]; readonly twice: boolean; readonly late: boolean }
  | {
      readonly do: 'end'
      readonly which: readonly number[]
      readonly amount: number | null
      readonly forgiven: boolean
      readonly tokens: number
      readonly asks: boolean
      readonly twice: boolean
    }
  | { readonly do: 'extend'; readonly which: number; readonly amount: number; readonly tokens: number }
  | { readonly do: 'credit' | 'grant' | 'reverse'; readonly account: number; readonly amount: number }
  | { readonly do: 'lower'; readonly who: number; readonly amount: number }
  | { readonly do: 'activate'; readonly who: number; readonly active: boolean }
  | { readonly do: 'orphan' | 'give back'; readonly which: number }
  | { readonly do: 'budget'; readonly who: number }
  | { readonly do: 'pass'; readonly seconds: number }
  | { readonly do: 'expire' | 'day' | 'meter' }

const ODD: readonly Spec['odd'][] = ['key', 'window', 'admission']
const seldom = (one: number) => fc.nat(one).map((n) => n === 0)
const spec: fc.Arbitrary<Spec> = fc.record({
  who: fc.nat(2),
  amount: fc.constantFrom(0, 1, 5, 20, 20, 40, 90),
  tokens: fc.constantFrom(0, 5, 10, 30, 60),
  budget: fc.nat(19).map((n) => (n < 13 ? 'own' : n < 18 ? 'none' : n === 18 ? 'five' : 'both')),
  slot: fc.boolean(),
  odd: fc.nat(29).map((n) => ODD[n] ?? 'none'),
  tag: fc.nat(1),
})
const account = fc.nat(1)
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant('begin' as const),
      calls: fc.array(spec, { minLength: 1, maxLength: 5 }),
      twice: seldom(12),
      late: seldom(12),
    }),
  },
  {
    weight: 11,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.array(fc.nat(14), { minLength: 1, maxLength: 6 }),
      amount: fc.option(fc.constantFrom(0, 3, 15, 35, 70), { freq: 5 }),
      forgiven: seldom(8),
      tokens: fc.constantFrom(0, 4, 20, 80),
      asks: fc.boolean(),
      twice: seldom(12),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('extend' as const),
      which: fc.nat(40),
      amount: fc.nat(120),
      tokens: fc.nat(60),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('credit', 'grant', 'reverse'),
      account,
      amount: fc.constantFrom(5, 30, 200, 500),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('lower' as const),
      who: fc.nat(1),
      amount: fc.constantFrom(0, 30, 90, 300),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('activate' as const), who: fc.nat(2), active: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('orphan', 'give back'), which: fc.nat(40) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('budget' as const), who: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.constantFrom(30, 61) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('expire', 'day', 'meter', 'meter') }) },
)

const ALL = { group: 'all', seconds: 60, requestLimit: 8, tokenLimit: 200 }
const OTHER = { group: 'deep_research', seconds: 60, requestLimit: 5, tokenLimit: null }
const SLOT = { scope: 'concurrency', key: 'all', limit: 4, fingerprint: '', keepSeconds: 0, endsWithOwner: true }
const KEY = { scope: 'idempotency', key: 'k', limit: 1, fingerprint: '', keepSeconds: 60, endsWithOwner: false }

function callOf(twin: Twin, { who, amount, tokens, budget, slot, odd, tag }: Spec): Call {
  const { id: credentialId, accountId, own } = twin.credentials[who] ?? assert.fail()
  const five = accountId === twin.accounts[0] && (budget === 'five' || budget === 'both') ? twin.shared : []
  const mine = own !== undefined && (budget === 'own' || budget === 'both') ? [own] : []
  return nameCall(twin, {
    id: ids.next(),
    accountId,
    credentialId,
    operation: tag === 0 ? 'chat' : 'rerank',
    hold:
      odd === 'admission'
        ? null
        : { amount: nanos(BigInt(amount)), terms: `${amount}`, allowances: [...mine, ...five], own },
    tokens,
    windows: odd === 'window' ? [ALL, OTHER] : [ALL],
    claims: [...(slot ? [SLOT] : []), ...(odd === 'key' ? [KEY] : [])],
    ...(tag === 1 && { attribution: { model: 'm', endUser: null, tags: [{ name: 'team', value: 'search' }] } }),
  })
}

type Answers = readonly (Judgement | Settlement | Error)[]

async function run(twin: Twin, command: Command): Promise<Answers> {
  const { query, path, ownerId, calls } = twin
  switch (command.do) {
    case 'begin': {
      const batch = command.calls.map((one) => callOf(twin, one))
      const first = batch[0] ?? assert.fail()
      const late = command.late && first.hold !== null ? unfailed(await path.end(query, [voidOf(first)])) : []
      const begun = unfailed(await path.begin(query, ownerId, batch))
      const isOpen = batch.filter(({ hold }) => hold !== null)
      assert.deepEqual(
        await wrongTimes(
          twin,
          isOpen,
          begun.filter((_, at) => batch[at]?.hold !== null),
        ),
        [],
      )
      // Another object, as if its answer had been lost to a process that does not know it any more.
      const again =
        command.twice && first.hold !== null ? unfailed(await path.begin(query, ownerId, [{ ...first }])) : []
      return [...late, ...begun, ...again]
    }
    case 'end': {
      const picked = [
        ...new Set(command.which.flatMap((which) => calls.filter(({ hold }) => hold !== null).at(-1 - which) ?? [])),
      ]
      if (picked.length === 0) return []
      const endings = picked.map((call) => endingOf(call, command))
      const ended = unfailed(await path.end(query, endings))
      assert.deepEqual(await wrongTimes(twin, picked, ended), [])
      for (const [at, one] of ended.entries())
        if (!(one instanceof Error) && one.endedNow && one.charged > 0n) twin.charged.push(picked[at]?.id ?? '')
      return command.twice ? [...ended, ...unfailed(await path.end(query, endings))] : ended
    }
    case 'extend': {
      const call = calls.at(-1 - command.which)
      if (call === undefined) return []
      const { id, accountId, windows } = call
      const extension = { id, accountId, windows, amount: nanos(BigInt(command.amount)), tokens: command.tokens }
      await extendBatch(query, ownerId, [extension])
      return []
    }
    default:
      await change(twin, command)
      return []
  }
}

function endingOf(call: Call, { amount, forgiven, tokens, asks }: Extract<Command, { do: 'end' }>): Ending {
  const { id, accountId, credentialId, windows } = call
  return {
    id,
    accountId,
    amount: amount === null ? null : nanos(BigInt(amount)),
    forgiven: forgiven && amount !== null,
    usage: {
      ...NO_USAGE,
      executed: amount !== null,
      failed: tokens === 4,
      inputTokens: tokens,
      outputTokens: tokens % 3,
      value: nanos(BigInt(amount ?? 0)),
    },
    ...(asks && { asked: { credentialId, windows } }),
    ...(amount !== null && { route: 'sandbox' }),
  }
}

async function change(twin: Twin, command: Exclude<Command, { do: 'begin' | 'end' | 'extend' }>): Promise<void> {
  const { accounts, credentials, calls, ownerId, payments } = twin
  switch (command.do) {
    case 'credit':
    case 'grant': {
      const accountId = accounts[command.account] ?? ''
      const amount = nanos(BigInt(command.amount))
      const entryId = ids.next()
      if (command.do === 'credit') payments.push(entryId)
      const kind =
        command.do === 'credit'
          ? { kind: 'payment' as const }
          : { kind: 'promotion' as const, expiresAt: new Date(Date.now() + 3_600_000) }
      await creditAccount(pool, { entryId, accountId, amount, ...kind })
      return
    }
    case 'reverse': {
      const paymentId = payments.at(command.account)
      if (paymentId !== undefined)
        await reversePayment(pool, {
          reversalId: ids.next(),
          paymentId,
          kind: 'payment_reversal',
          most: nanos(BigInt(command.amount)),
        })
      return
    }
    case 'lower': {
      const own = credentials[command.who]?.own
      await pool.query('select change_allowance(allowance => $1, new_amount => $2)', [own, command.amount])
      return
    }
    case 'activate':
      await pool.query('update credentials set active = $2 where id = $1', [
        credentials[command.who]?.id,
        command.active,
      ])
      return
    case 'orphan':
      await pool.query('select mark_unsettled(array[$1::uuid], $2)', [calls.at(-1 - command.which)?.id, ownerId])
      return
    case 'give back': {
      const { charged } = twin
      const chargeId = charged[command.which % charged.length]
      if (chargeId !== undefined) await reverseCharge(pool, ids.next(), chargeId, nanos(4n))
      return
    }
    case 'budget': {
      const key = credentials[command.who] ?? assert.fail()
      ;[key.own, key.spare] = [key.spare, key.own]
      return
    }
    case 'pass':
      return pass(twin, command.seconds)
    case 'day':
      return passDay(twin)
    case 'expire':
      await pool.query(
        "update promotions set expires_at = clock_timestamp() - interval '1 second' where account_id = any ($1)",
        [accounts],
      )
      await expirePromotions(pool)
      return
    case 'meter':
      for (const { id, own } of credentials)
        if (own !== undefined && twin.path !== judgedPath)
          await pool.query('select meter_budget(credential => $1, allowance => $2)', [id, own])
      return
  }
}

const FAST = /^(begin|end)_fitting_calls/

const HAPPENS = [
  ...['begin_fitting_calls', 'end_fitting_calls'],
  ...['begin: all fit', 'begin: some fit', 'begin: none fits', 'end: all fit'],
]
const SELDOM = [
  'begin_attributed_calls_with_budgets',
  'end: some fit',
  'end: none fits',
  'given back',
  'another budget',
]

describe('calls that fit, by one statement', () => {
  it('are begun and ended as the judging functions would: every answer and every row is the same', async () => {
    const happened: Record<string, number> = {}
    const note = (what: string) => {
      happened[what] = (happened[what] ?? 0) + 1
    }
    let [steps, sequences] = [0, 0]
    const failed: unknown[] = []
    const log = {
      ...silentLog,
      error: (...what: unknown[]) => failed.push(what),
      warn: (...what: unknown[]) => failed.push(what),
    }
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 6, maxLength: 26, size: 'max' }), async (commands) => {
        if (sequences++ % 50 === 49)
          await emptyTables(
            pool,
            'accounts',
            'credentials',
            'allowances',
            'kept_periods',
            'holds',
            'charges',
            'claims',
            'usage_tail',
          )
        let nowMs = 0
        const clock = { ...systemClock, monotonicMs: () => nowMs }
        const watch = watched(createMoneyQuery(pools.money))
        const fast = await makeTwin({ pool, query: watch.query, path: createFastPath({ clock, log }) }, 300n)
        const judged = await makeTwin({ pool, query: createMoneyQuery(pools.money), path: judgedPath }, 300n)
        for (const one of commands) {
          // Nobody is sent to the judging functions because of what was before.
          nowMs += 10_000
          const answers = await run(fast, one)
          const seen = await watch.take()
          for (const { name } of seen) note(name)
          const tried = seen.filter(({ name }) => FAST.test(name))
          const isJudged = seen.some(({ name }) => name.includes('attributed'))
          const fitted = tried.reduce((sum, { rows }) => sum + rows, 0)
          if (tried.length > 0) note(`${one.do}: ${isJudged ? (fitted > 0 ? 'some fit' : 'none fits') : 'all fit'}`)
          const isWhole = seen.length === 1
          assert.deepEqual(
            toldOf(answers, fast.names, isWhole),
            toldOf(await run(judged, one), judged.names, isWhole),
            `the answers to ${JSON.stringify(one)}`,
          )
        }
        steps += commands.length
        if (fast.charged.length > 0 && commands.some((one) => one.do === 'give back')) note('given back')
        if (new Set(fast.calls.map(({ hold }) => hold?.own)).size > 3) note('another budget')
        assert.deepEqual(await rowsOf(fast), await rowsOf(judged))
        assert.deepEqual(await verifyLedger(pool, [...fast.accounts, ...judged.accounts]), [])
        assert.deepEqual(failed, [])
      }),
      { numRuns: SEQUENCES, seed, endOnFailure: true },
    )
    for (const what of HAPPENS) assert.ok(happened[what] !== undefined, `never: ${what}`)
    for (const what of SELDOM) sometimes(happened[what] !== undefined, what)
    recordProof('fast-path', 'are begun and ended as the judging functions would', {
      sequences: SEQUENCES,
      steps,
      happened,
    })
  })
})
