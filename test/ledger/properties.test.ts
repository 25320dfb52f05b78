import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Ending, Extension, Growth, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { NO_USAGE, voidOf } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { newAccount } from '../model/account.ts'
import * as credits from '../model/credits.ts'
import { extend } from '../model/extend.ts'
import * as oracle from '../model/ledger-model.ts'
import { brokenPromises } from '../model/promises.ts'
import { compareRows, compareWindows } from '../model/rows.ts'
import { microseconds } from './instants.ts'
import { connect, holdOf, ids, makeAccount, makeAllowance, makeCredential } from './world.ts'

/**
 * Sequences of commands against the real statements and the pure model. Whatever is run at once is replayed in the
 * model in the order in which PostgreSQL judged it, and every answer and every row must be the same.
 */
const SEQUENCES = count({ full: 2_000, reduced: 60 })

type Command =
  | {
      readonly do: 'begin'
      readonly who: number
      readonly amount: number
      readonly tokens: number
      readonly allowances: number
      readonly windows: number
      readonly claims: number
      readonly again: boolean
      readonly admission: boolean
    }
  | {
      readonly do: 'end'
      readonly which: number
      readonly amount: number | null
      readonly forgiven: boolean
      readonly tokens: number
    }
  | { readonly do: 'extend'; readonly which: number; readonly amount: number; readonly tokens: number }
  | { readonly do: 'void-unknown'; readonly who: number }
  | {
      readonly do: 'credit'
      readonly account: number
      readonly amount: number
      readonly promo: boolean
      readonly again: boolean
    }
  | { readonly do: 'activate'; readonly who: number; readonly active: boolean }
  | { readonly do: 'pass'; readonly seconds: number }

const begin = (again: boolean) =>
  fc.record({
    do: fc.constant('begin' as const),
    who: fc.nat(3),
    // Now and then more than an account has to begin with, so that short sequences run out of money too.
    amount: fc.oneof({ weight: 9, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.integer({ min: 60, max: 200 }) }),
    tokens: fc.nat(60),
    allowances: fc.nat(7),
    windows: fc.nat(3),
    claims: fc.nat(15),
    again: fc.constant(again),
    admission: again ? fc.constant(false) : fc.nat(5).map((one) => one === 0),
  })

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: begin(false) },
  { weight: 1, arbitrary: begin(true) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(40),
      amount: fc.option(fc.nat(80), { freq: 4 }),
      forgiven: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
      tokens: fc.nat(80),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('extend' as const),
      which: fc.nat(40),
      amount: fc.nat(120),
      tokens: fc.nat(120),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('void-unknown' as const), who: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('credit' as const),
      account: fc.nat(1),
      amount: fc.integer({ min: 1, max: 150 }),
      promo: fc.boolean(),
      again: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('activate' as const), who: fc.nat(5), active: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.constantFrom(1, 20, 59, 60, 61, 600) }),
  },
)

/** The first sequence of each run reaches every outcome there is: what follows is left to chance, and chance may miss one. */
const beginning: Extract<Command, { do: 'begin' }> = {
  do: 'begin',
  who: 0,
  amount: 10,
  tokens: 10,
  allowances: 1,
  windows: 0,
  claims: 0,
  again: false,
  admission: false,
}
const growing: Extract<Command, { do: 'extend' }> = { do: 'extend', which: 1, amount: 20, tokens: 20 }
const ending: Extract<Command, { do: 'end' }> = { do: 'end', which: 0, amount: 5, forgiven: false, tokens: 5 }
const activate = (who: number, active: boolean): Command => ({ do: 'activate', who, active })

const EVERY_OUTCOME: readonly Command[] = [
  beginning,
  growing,
  { ...growing, tokens: 1_000 },
  { do: 'credit', account: 0, amount: 500, promo: false, again: false },
  { ...growing, amount: 160 },
  { ...beginning, amount: 160 },
  { ...beginning, tokens: 1_000 },
  activate(0, false),
  { ...growing, amount: 30 },
  beginning,
  activate(0, true),
  activate(4, false),
  { ...growing, amount: 30 },
  beginning,
  activate(4, true),
  ending,
  { ...beginning, again: true },
  { ...growing, which: 0 },
  { ...beginning, who: 1, claims: 8 },
  { ...beginning, who: 1, claims: 14 },
  { ...beginning, who: 1, claims: 10 },
  { ...ending, which: 1, amount: null },
  { ...beginning, who: 2, allowances: 0 },
  { ...beginning, who: 2, allowances: 0, amount: 1_000 },
  { ...growing, amount: 1_000 },
  ...Array.from({ length: 7 }, () => ({ ...beginning, who: 3, amount: 0, tokens: 0, allowances: 0 })),
]

type World = {
  readonly model: oracle.Model
  readonly accounts: readonly Id[]
  readonly credentials: readonly { readonly id: Id; readonly accountId: Id }[]
  readonly allowances: readonly Id[]
  readonly begun: Call[]
  /** Which process began each of them: it alone may extend it. */
  readonly begunBy: Map<Id, ReturnType<typeof connect>>
  lastEntry: { entryId: Id; accountId: Id; amount: bigint; promo: boolean } | undefined
}

const database = await freshDatabase()

describe('begin, extend and end, against the pure model', () => {
  const one = connect(database.url)
  const other = connect(database.url)
  after(() => Promise.all([one.pools.close(), other.pools.close()]))

  for (const [title, width] of [
    ['agree on every answer and every row, one command after the other', 1],
    ['agree when commands race, replayed in the order in which they were judged', 8],
  ] as const) {
    it(title, async () => {
      let commands = 0
      const outcomes: Record<string, number> = {}
      const sequence = fc.array(fc.array(command, { minLength: 1, maxLength: width, size: 'max' }), {
        minLength: 1,
        maxLength: 60,
        size: 'max',
      })
      await fc.assert(
        fc.asyncProperty(sequence, async (rounds) => {
          const world = await makeWorld()
          for (const round of rounds) {
            commands += round.length
            await runRound(world, round, outcomes)
            assert.deepEqual(brokenPromises(world.model), [])
          }
          await compareRows(one.pools.rest, world.model)
          await compareWindows(one.pools.rest, world.model)
          assert.deepEqual(await verifyLedger(one.pools.rest, world.accounts), [])
        }),
        { numRuns: SEQUENCES, seed, endOnFailure: true, examples: [[EVERY_OUTCOME.map((step) => [step])]] },
      )
      // Every "always" has a "sometimes": a refusal that never happened was never tested.
      const expected = [
        'begun',
        'ended',
        'account_inactive',
        'credential_inactive',
        'requests_spent',
        'tokens_spent',
        'claim_taken',
        'claim_differs',
        'allowance_spent',
        'money_spent',
        'posted',
        'voided',
        'extended',
        ...['ended', 'account_inactive', 'credential_inactive', 'tokens_spent', 'allowance_spent', 'money_spent'].map(
          (why) => `not extended: ${why}`,
        ),
      ]
      assert.deepEqual(
        expected.filter((outcome) => outcomes[outcome] === undefined),
        [],
        `seed ${seed}`,
      )
      console.log(JSON.stringify({ seed, commands, outcomes }))
      recordProof('ledger-properties', title, { sequences: SEQUENCES, commands, outcomes })
    })
  }

  async function makeWorld(): Promise<World> {
    const model = oracle.createModel()
    const pool = one.pools.rest
    const accounts: Id[] = []
    for (let at = 0; at < 2; at += 1) {
      const id = await makeAccount(pool, 0n)
      model.accounts.set(id, newAccount())
      accounts.push(id)
    }
    const [first = '', second = ''] = accounts
    const credentials = []
    for (const accountId of [first, first, second, second]) {
      const id = await makeCredential(pool, accountId)
      model.credentials.set(id, { accountId, active: true })
      credentials.push({ id, accountId })
    }
    const allowances = []
    for (const [accountId, period, amount] of [
      [first, 'total', 150n],
      [first, 'day', 100n],
      [second, 'month', 120n],
    ] as const) {
      const id = await makeAllowance(pool, accountId, period, amount)
      model.allowances.set(id, { accountId, period, amount })
      allowances.push(id)
    }
    const world = { model, accounts, credentials, allowances, begun: [], begunBy: new Map(), lastEntry: undefined }
    for (const accountId of accounts)
      await applyCredit(world, { entryId: ids.next(), accountId, amount: 120n, promo: false })
    return world
  }

  async function applyCredit(world: World, credit: NonNullable<World['lastEntry']>): Promise<void> {
    const { entryId, accountId, amount, promo } = credit
    await creditAccount(one.pools.rest, {
      entryId,
      accountId,
      kind: promo ? 'promotion' : 'payment',
      amount: nanos(amount),
    })
    credits.credit(world.model, entryId, accountId, amount, promo ? credits.NEVER_US : null)
    world.lastEntry = credit
  }

  function callOf(
    world: World,
    { who, amount, tokens, allowances, windows, claims, admission }: Extract<Command, { do: 'begin' }>,
  ): Call {
    const { id: credentialId, accountId } = world.credentials[who] ?? { id: '', accountId: '' }
    return {
      id: ids.next(),
      accountId,
      credentialId,
      operation: 'probe, "quoted" \\ {x}',
      hold: admission
        ? null
        : holdOf(
            BigInt(amount),
            world.allowances.filter((id, at) => {
              // Somebody else's allowance is refused, and would otherwise drown every other outcome.
              const own = world.model.allowances.get(id)?.accountId === accountId
              return (allowances >> at) % 2 === 1 && (own || allowances === 7)
            }),
          ),
      tokens,
      windows: [
        { group: 'all', seconds: 60, requestLimit: 6, tokenLimit: 160 },
        ...(windows % 2 === 1 ? [{ group: 'rare', seconds: 20, requestLimit: 2, tokenLimit: null }] : []),
      ],
      claims: admission
        ? []
        : [
            ...(claims % 2 === 1
              ? [{ scope: 'concurrency', key: 'all', limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }]
              : []),
            ...(claims >> 1 > 3
              ? [
                  {
                    scope: 'once',
                    key: `key ${claims % 2}`,
                    limit: 1,
                    fingerprint: `${claims % 3}`,
                    keepSeconds: 60,
                    endsWithOwner: false,
                  },
                ]
              : []),
          ],
    }
  }

  function endingOf(
    world: World,
    { which, amount, forgiven, tokens }: Extract<Command, { do: 'end' }>,
  ): Ending | undefined {
    const call = world.begun[which % Math.max(1, world.begun.length)]
    if (call === undefined) return undefined
    return {
      id: call.id,
      accountId: call.accountId,
      amount: amount === null ? null : nanos(BigInt(amount)),
      forgiven: amount !== null && forgiven,
      usage: { ...NO_USAGE, executed: amount !== null, inputTokens: tokens },
      asked: { credentialId: call.credentialId, windows: call.windows },
    }
  }

  /** Runs a round at once over two connections' worth of batches, then replays it in the model. */
  async function runRound(world: World, round: readonly Command[], outcomes: Record<string, number>): Promise<void> {
    const judged: { readonly atUs: bigint; readonly place: number; readonly replay: () => void }[] = []
    const racing = round.map(async (one_, place) => {
      const process = place % 2 === 0 ? one : other
      const { calls } = process
      if (one_.do === 'begin') {
        const call = one_.again ? world.begun.at(-1) : callOf(world, one_)
        if (call === undefined) return
        if (!one_.again) world.begunBy.set(call.id, process)
        const judgement = await calls.begin(call)
        judged.push({
          atUs: microseconds(judgement.judgedAt),
          place,
          replay: () => compareBegin(world, call, judgement, outcomes),
        })
      } else if (one_.do === 'extend') {
        // Mostly one that is open when the round begins.
        const open = [...world.model.holds.values()].map(({ call }) => call)
        const among = one_.which % 8 === 0 ? world.begun : open
        const call = among[one_.which % Math.max(1, among.length)]
        if (call === undefined) return
        const { id, accountId, windows } = call
        const extension = { id, accountId, windows, amount: nanos(BigInt(one_.amount)), tokens: one_.tokens }
        const growth = await (world.begunBy.get(id) ?? process).calls.extend(extension)
        if (growth.outcome === 'unanswered') throw new Error('PostgreSQL did not answer')
        const atUs = microseconds(growth.judgedAt)
        judged.push({ atUs, place, replay: () => compareExtend(world, extension, growth, outcomes) })
      } else if (one_.do === 'end' || one_.do === 'void-unknown') {
        const ending = one_.do === 'end' ? endingOf(world, one_) : unknownEnding(world, one_.who)
        if (ending === undefined) return
        const settlement = await calls.end(ending)
        judged.push({
          atUs: microseconds(settlement.settledAt),
          place,
          replay: () => compareEnd(world, ending, settlement, outcomes, round.length === 1),
        })
      }
    })
    await Promise.all(racing)
    judged.sort((a, b) => (a.atUs < b.atUs ? -1 : a.atUs > b.atUs ? 1 : a.place - b.place))
    for (const { replay } of judged) replay()
    for (const step of round) await runAlone(world, step)
  }

  function unknownEnding(world: World, who: number): Ending {
    const { accountId } = world.credentials[who] ?? { accountId: '' }
    return { id: ids.next(), accountId, amount: null, forgiven: false, usage: NO_USAGE }
  }

  /** What changes the world around calls is run by itself, between rounds. */
  async function runAlone(world: World, step: Command): Promise<void> {
    const pool = one.pools.rest
    if (step.do === 'credit') {
      const repeated = step.again ? world.lastEntry : undefined
      await applyCredit(
        world,
        repeated ?? {
          entryId: ids.next(),
          accountId: world.accounts[step.account] ?? '',
          amount: BigInt(step.amount),
          promo: step.promo,
        },
      )
    } else if (step.do === 'activate') {
      const credential = world.credentials[step.who]
      const accountId = world.accounts[step.who - 4] ?? ''
      if (credential !== undefined) {
        await pool.query('update credentials set active = $2 where id = $1', [credential.id, step.active])
        world.model.credentials.set(credential.id, { accountId: credential.accountId, active: step.active })
      } else {
        await pool.query('update accounts set active = $2 where id = $1', [accountId, step.active])
        const account = world.model.accounts.get(accountId)
        if (account !== undefined) account.active = step.active
      }
    } else if (step.do === 'pass') await passTime(world, step.seconds)
  }

  /**
   * Time passes by moving what was written into the past, here and there alike. Calls that are open are voided first: a
   * window that was moved before their beginning would take them for its own.
   */
  async function passTime(world: World, seconds: number): Promise<void> {
    for (const { call } of [...world.model.holds.values()]) {
      const { settledAt } = await one.calls.end(voidOf(call))
      oracle.end(world.model, voidOf(call), microseconds(settledAt))
    }
    const owners = world.credentials.map(({ id }) => id)
    const pool = one.pools.rest
    await pool.query(
      'update group_windows set started_at = started_at - make_interval(secs => $2) where credential_id = any ($1)',
      [owners, seconds],
    )
    await pool.query(
      'update credentials set all_started_at = all_started_at - make_interval(secs => $2) where id = any ($1)',
      [owners, seconds],
    )
    await pool.query(
      'update claims set kept_until = kept_until - make_interval(secs => $2) where credential_id = any ($1)',
      [owners, seconds],
    )
    const us = BigInt(seconds) * 1_000_000n
    for (const window of world.model.windows.values()) window.startedAtUs -= us
    for (const places of world.model.claims.values())
      for (const place of places) if (place.keptUntilUs !== null) place.keptUntilUs -= us
  }

  function compareBegin(world: World, call: Call, judgement: Judgement, outcomes: Record<string, number>): void {
    const expected = oracle.begin(world.model, call, microseconds(judgement.judgedAt))
    assert.deepEqual(
      {
        outcome: judgement.outcome,
        free: BigInt(judgement.free),
        requestsLeft: judgement.rates.requests?.left ?? null,
        tokensLeft: judgement.rates.tokens?.left ?? null,
        holder: 'holder' in judgement ? judgement.holder : null,
      },
      expected,
    )
    outcomes[judgement.outcome] = (outcomes[judgement.outcome] ?? 0) + 1
    if (judgement.outcome === 'begun' && call.hold !== null && !world.begun.includes(call)) world.begun.push(call)
  }

  function compareExtend(world: World, extension: Extension, growth: Growth, outcomes: Record<string, number>): void {
    const expected = extend(world.model, extension, microseconds(growth.judgedAt))
    const { outcome, held, reserved } = growth
    assert.deepEqual({ outcome, held: BigInt(held), reserved }, expected)
    const word = outcome === 'extended' ? outcome : `not extended: ${outcome}`
    outcomes[word] = (outcomes[word] ?? 0) + 1
  }

  function compareEnd(
    world: World,
    ending: Ending,
    settlement: Settlement,
    outcomes: Record<string, number>,
    isAlone: boolean,
  ): void {
    const expected = oracle.end(world.model, ending, microseconds(settlement.settledAt))
    const { outcome, charged, overrun, free } = settlement
    assert.deepEqual(
      { outcome, charged: BigInt(charged), overrun: BigInt(overrun) },
      { outcome: expected.outcome, charged: expected.charged, overrun: expected.overrun },
    )
    // What is free, and what is left of windows, is told after the whole batch, which only a batch of one lets the model follow.
    if (isAlone) {
      assert.equal(BigInt(free), expected.free)
      const { requests, tokens } = settlement.rates ?? { requests: null, tokens: null }
      assert.deepEqual({ requestsLeft: requests?.left ?? null, tokensLeft: tokens?.left ?? null }, expected.left)
    }
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
})
