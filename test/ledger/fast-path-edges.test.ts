import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Attribution, Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { Failed } from '../../server/src/calls/failed.ts'
import { isUsual, type UsualCall } from '../../server/src/calls/fast-begin.ts'
import { isUsualEnding } from '../../server/src/calls/fast-end.ts'
import { createFastPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery, Unanswered } from '../../server/src/calls/money-query.ts'
import { skewedClock, systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { watched } from './fast-path-world.ts'
import {
  callOf,
  makeParty,
  moneyOf,
  openSession,
  type Party,
  passTime,
  periodsOf,
  postOf,
  whileLocked,
  windowOf,
} from './session.ts'
import { connect, ids, makeAllowance, makeCredential } from './world.ts'

/**
 * What generated calls seldom or never ask of the statements for calls that fit: limits that differ, ids of two days, keys and budgets of somebody else.
 */
const database = await freshDatabase()
const { pools, ownerId } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const ALL = { group: 'all', seconds: 60, requestLimit: 8, tokenLimit: 100 }
const SLOT = { scope: 'concurrency', key: 'all', limit: 8, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

type Asks = {
  readonly id?: Id
  readonly tokens?: number
  readonly own?: Id
  readonly window?: Partial<typeof ALL>
  readonly places?: number
  readonly attribution?: Attribution
}

function usual(
  party: Party,
  { id = ids.next(), tokens = 5, own, window, places = 8, attribution }: Asks = {},
): UsualCall {
  const call: Call = {
    ...callOf(party, { id, tokens, windows: [{ ...ALL, ...window }], claims: [{ ...SLOT, limit: places }] }),
    hold: { amount: nanos(10n), terms: '{}', allowances: own === undefined ? [] : [own], own },
    attribution,
  }
  assert.ok(isUsual(call))
  return call
}

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

/** Leaves all of them to the judging function, and nothing behind. */
async function leavesAlone(...calls: readonly UsualCall[]): Promise<void> {
  const accounts = [...new Set(calls.map(({ accountId }) => accountId))]
  const heldBefore = await Promise.all(accounts.map(async (accountId) => (await moneyOf(pool, { accountId })).held))
  assert.deepEqual(
    await session.beginFitting(...calls),
    calls.map(() => undefined),
  )
  assert.deepEqual(
    await Promise.all(accounts.map(async (accountId) => (await moneyOf(pool, { accountId })).held)),
    heldBefore,
  )
}

const two = (make: () => UsualCall): readonly [UsualCall, UsualCall] => [make(), make()]

describe('a begin of calls that fit', () => {
  it('begins nothing that is beyond a limit by itself, in a window that has not begun', async () => {
    const party = await makeParty(pool, 100n)
    await leavesAlone(usual(party, { tokens: 101 }))
    await leavesAlone(usual(party, { window: { requestLimit: 0 } }))
    await leavesAlone(usual(party, { places: 0 }))
    assert.equal(await windowOf(pool, party, 'all'), undefined)
  })

  it("begins nothing by a key of another account, whoever's money it would be", async () => {
    const [party, stranger] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    await leavesAlone(usual({ ...party, credentialId: stranger.credentialId }))
    assert.equal(await windowOf(pool, stranger, 'all'), undefined)
  })

  it('begins nothing of a budget while another one stands with the key', async () => {
    const party = await makeParty(pool, 100n)
    const [roomy, own] = [
      await makeAllowance(pool, party.accountId, 'total', 90n),
      await makeAllowance(pool, party.accountId, 'total', 5n),
    ]
    await pool.query('select meter_budget(credential => $1, allowance => $2)', [party.credentialId, roomy])
    await leavesAlone(usual(party, { own }))
    assert.deepEqual(await periodsOf(pool, roomy), [{ charged: 0n, held: 0n }])
  })

  it('begins them when it has waited, not when it was sent: tokens of a window that began meanwhile are given back', async () => {
    const party = await makeParty(pool, 100n)
    const calls = two(() => usual(party, { tokens: 20 }))
    await whileLocked(
      { url: database.url, observer: pool, ...party },
      (holder) => holder.begin(callOf(party, { tokens: 7, windows: [ALL] })),
      (waiter) => waiter.beginFitting(...calls),
    )
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 47n)
    await session.end(...calls.map(voidOf))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 7n)
    await agrees(party)
  })

  it('notes whose calls they are, and who runs them', async () => {
    const party = await makeParty(pool, 100n)
    const attribution = { model: 'm', endUser: { id: ids.next(), label: 'Ann' }, tags: [] }
    const calls = two(() => usual(party, { attribution }))
    await session.beginFitting(...calls)
    await session.begin({ ...usual(party, { attribution }), windows: [] })
    const { rows } = await pool.query(
      'select asked_model, end_user, end_user_label, owner_id, count(*)::integer from holds where account_id = $1 group by 1, 2, 3, 4',
      [party.accountId],
    )
    assert.equal(rows.length, 1, 'all alike, by the statement and by the judging function')
    assert.deepEqual([rows[0]?.end_user, rows[0]?.end_user_label], [attribution.endUser.id, 'Ann'])
  })
})

describe('an end of calls that fit', () => {
  it('leaves calls alone that have reserved tokens in two windows', async () => {
    const party = await makeParty(pool, 100n)
    const calls = two(() => usual(party, { tokens: 20 }))
    await session.beginFitting(...calls)
    await passTime(pool, party, 61)
    await session.begin(callOf(party, { tokens: 3, windows: [ALL] }))
    for (const { id, accountId, windows } of calls)
      await session.extend({ id, accountId, windows, amount: nanos(10n), tokens: 30 })
    const endings = calls.map((call) => postOf(call, 4n, { inputTokens: 25 }))
    assert.deepEqual(
      await session.endFitting(...calls.map((call, at) => [call, endings[at] ?? assert.fail()] as const)),
      calls.map(() => undefined),
    )
    await session.end(...endings)
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 13n)
    await agrees(party)
  })

  it('ends them when it has waited, not when it was sent', async () => {
    const party = await makeParty(pool, 100n)
    const calls = two(() => usual(party))
    await session.beginFitting(...calls)
    let at: unknown
    await whileLocked(
      { url: database.url, observer: pool, ...party },
      async (holder) => {
        const [row] = await holder.query('select clock_timestamp()::text as at')
        at = row?.at
      },
      (waiter) => waiter.endFitting(...calls.map((call) => [call, voidOf(call)] as const)),
    )
    const { rowCount } = await pool.query('select from charges where account_id = $1 and ended_at > $2', [
      party.accountId,
      at,
    ])
    assert.equal(rowCount, 2)
  })
})

describe('calls that fit, of which one is of another day', () => {
  it('are known again each by the day of its id', async () => {
    const tomorrow = createIds({ clock: skewedClock(systemClock, 86_400_000) })
    const party = await makeParty(pool, 100n)
    for (const [first, second] of [
      [ids.next(), tomorrow.next()],
      [tomorrow.next(), ids.next()],
    ] as const) {
      const calls = [usual(party, { id: first }), usual(party, { id: second })] as const
      await session.end(voidOf(calls[1]))
      await leavesAlone(...calls)
    }
  })
})

describe('two calls of a key that are not alike', () => {
  const tighter: readonly (readonly [what: string, asks: Asks])[] = [
    ['requests', { window: { requestLimit: 1 } }],
    ['tokens', { window: { tokenLimit: 9 } }],
    ['calls at once', { places: 1 }],
  ]
  for (const [what, asks] of tighter) {
    it(`fit only into the tighter of their limits of ${what}`, async () => {
      const party = await makeParty(pool, 100n)
      await leavesAlone(usual(party), usual(party, asks))
      await leavesAlone(usual(party, asks), usual(party))
    })
  }

  for (const isMoved of [true, false]) {
    it(`are charged each to the period that it began in, while that of ${isMoved ? 'today' : 'yesterday'} stands with the key`, async () => {
      const party = await makeParty(pool, 100n)
      const own = await makeAllowance(pool, party.accountId, 'day', 50n)
      const meter = () =>
        pool.query('select meter_budget(credential => $1, allowance => $2)', [party.credentialId, own])
      await meter()
      const [before, since] = [usual(party, { own }), usual(party, { own })]
      assert.equal((await session.beginFitting(before))[0]?.outcome, 'begun')
      const day = "interval '1 day'"
      for (const sql of [
        `update holds set begun_at = begun_at - ${day} where credential_id = $1`,
        `update credentials set budget_starts_at = budget_starts_at - ${day}, budget_ends_at = budget_ends_at - ${day} where id = $1`,
      ])
        await pool.query(sql, [party.credentialId])
      if (isMoved) await meter()
      const begun = isMoved ? await session.beginFitting(since) : await session.begin(since)
      assert.equal(begun[0]?.outcome, 'begun')
      const ended = await session.endFitting([before, postOf(before, 3n)], [since, postOf(since, 4n)])
      assert.deepEqual(
        ended.map((one) => one?.charged),
        [3n, 4n],
      )
      assert.deepEqual(await periodsOf(pool, own), [
        { charged: 3n, held: 0n },
        { charged: 4n, held: 0n },
      ])
      await agrees(party)
    })
  }
})

describe('what is no usual call, and no usual ending', () => {
  const party = { accountId: ids.next(), credentialId: ids.next() }
  const call = usual(party)
  const other = ids.next()
  const unusual: readonly (readonly [what: string, call: Call])[] = [
    ['a task', { ...call, task: { model: 'm', prompt: Buffer.of() } }],
    ['a window of another group', { ...call, windows: [{ ...ALL, group: 'deep_research' }] }],
    ['a window that counts no tokens', { ...call, windows: [{ ...ALL, tokenLimit: null }] }],
    ['two windows', { ...call, windows: [ALL, { ...ALL, group: 'deep_research' }] }],
    ['an idempotency key', { ...call, claims: [{ ...SLOT, scope: 'idempotency' }] }],
    ['a place in a set of its own', { ...call, claims: [{ ...SLOT, key: 'video' }] }],
    ['a budget that keys share', { ...call, hold: { ...call.hold, allowances: [other] } }],
    ['two budgets', { ...call, hold: { ...call.hold, allowances: [other, ids.next()], own: other } }],
  ]
  for (const [what, one] of unusual) it(`a call with ${what}`, () => assert.equal(isUsual(one), false))

  it('an ending with a task, a loss or another window', () => {
    const ending = postOf(call, 4n)
    assert.ok(isUsualEnding(ending))
    assert.ok(isUsualEnding({ ...ending, asked: call }))
    assert.ok(!isUsualEnding({ ...ending, task: { state: 'CANCELED' } }))
    assert.ok(!isUsualEnding({ ...ending, loss: { nanos: nanos(1n), claim: null, route: 'sandbox' } }))
    for (const window of [
      { ...ALL, group: 'deep_research' },
      { ...ALL, tokenLimit: null },
    ])
      assert.ok(!isUsualEnding({ ...ending, asked: { ...call, windows: [window] } }))
  })

  it('the end of a call for another account than its own, which is refused', async () => {
    const [own, stranger] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const path = createFastPath({ clock: systemClock, log: silentLog })
    const query = createMoneyQuery(pools.money)
    const mine = usual(own)
    await path.begin(query, ownerId, [mine])
    const [answer] = await path.end(query, [{ ...postOf(mine, 4n), accountId: stranger.accountId }])
    assert.ok(answer instanceof Error)
    assert.equal((await moneyOf(pool, own)).held, 10n)
  })
})

describe('a key whose call did not fit', () => {
  it('is sent to the judging function for two seconds, and then to the statement again', async () => {
    let nowMs = 0
    const path = createFastPath({ clock: { ...systemClock, monotonicMs: () => nowMs }, log: silentLog })
    const { query, take } = watched(createMoneyQuery(pools.money))
    const party = await makeParty(pool, 100n)
    const names = async (asks: Asks) => {
      await path.begin(query, ownerId, [usual(party, asks)])
      return (await take()).map(({ name }) => name)
    }
    assert.deepEqual(await names({ tokens: 101 }), ['begin_fitting_calls', 'begin_attributed_calls'])
    nowMs = 1_999
    assert.deepEqual(await names({}), ['begin_attributed_calls'])
    nowMs = 2_000
    assert.deepEqual(await names({}), ['begin_fitting_calls'])
  })
})

describe('a later migration', () => {
  it('has two calls of an account judged, too', async () => {
    const party = await makeParty(pool, 100n)
    const calls = [usual(party), usual(party)]
    await session.beginFitting(...calls)
    const say = (word: boolean) =>
      pool.query(
        `create or replace function calls_may_fit() returns boolean language sql stable parallel safe return ${word}`,
      )
    await say(false)
    try {
      await leavesAlone(usual(party), usual(party))
      assert.deepEqual(await session.endFitting(...calls.map((call) => [call, voidOf(call)] as const)), [
        undefined,
        undefined,
      ])
    } finally {
      await say(true)
    }
    await agrees(party)
  })
})

describe('keys of an account, of which one is refused', () => {
  it('are begun but for that one, and hold what they ask for', async () => {
    const party = await makeParty(pool, 100n)
    const other = { ...party, credentialId: await makeCredential(pool, party.accountId) }
    await pool.query('update credentials set active = false where id = $1', [party.credentialId])
    const [refused, begun] = await session.beginFitting(usual(party), usual(other))
    assert.deepEqual([refused, begun?.outcome, begun?.free], [undefined, 'begun', 90n])
    assert.equal((await moneyOf(pool, party)).held, 10n)
    await agrees(party)
  })
})

describe('two calls of an account', () => {
  it('fit into its money only together', async () => {
    const party = await makeParty(pool, 19n)
    const other = { ...party, credentialId: await makeCredential(pool, party.accountId) }
    await leavesAlone(usual(party), usual(other))
  })
})

describe('a budget', () => {
  it('is put to its key by nobody while somebody else has the account', async () => {
    const party = await makeParty(pool, 100n)
    const own = await makeAllowance(pool, party.accountId, 'total', 50n)
    const values = [party.credentialId, own]
    await whileLocked(
      { url: database.url, observer: pool, ...party },
      (holder) => holder.begin(callOf(party, { hold: 10n, allowances: [own] })),
      (waiter) => waiter.query('select meter_budget(credential => $1, allowance => $2)', values),
    )
    assert.deepEqual(await periodsOf(pool, own), [{ charged: 0n, held: 10n }])
    await agrees(party)
  })
})

describe('statements beside each other, of which one fails', () => {
  const FIT = 'begin_fitting_calls'
  const JUDGE = 'begin_attributed_calls'
  const [lost, refused] = [new Unanswered('lost'), new Error('refused')]

  /** A usual call and a keyed one, each of its own account, over a query of which some statements fail: once, and some after PostgreSQL has carried them out. */
  async function stage(failures: Readonly<Record<string, Error>>, carriedOut = false) {
    const [one, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const real = createMoneyQuery(pools.money)
    const path = createFastPath({ clock: systemClock, log: silentLog })
    const sent: string[] = []
    const query: typeof real = async (statement) => {
      const error = sent.includes(statement.name) ? undefined : failures[statement.name]
      sent.push(statement.name)
      if (error === undefined || carriedOut) {
        const rows = await real(statement)
        if (error === undefined) return rows
      }
      throw error
    }
    const key = { ...SLOT, scope: 'idempotency', limit: 1, keepSeconds: 60 }
    const keyed = callOf(other, { hold: 10n, claims: [key] })
    const batch: readonly Call[] = [usual(one), keyed]
    const begin = async (...some: readonly Call[]) => {
      const judgements = await path.begin(query, ownerId, some)
      return judgements.map((judgement) => (judgement instanceof Failed ? judgement.error : judgement.outcome))
    }
    const end = async (...some: readonly Call[]) => {
      const settlements = await path.end(
        query,
        some.map((call) => postOf(call, 4n)),
      )
      return settlements.map((answer) => {
        if (answer instanceof Failed) return answer.error
        return answer instanceof Error ? answer : answer.charged
      })
    }
    return { batch, one, other, begin, end, sent, agree: () => Promise.all([agrees(one), agrees(other)]) }
  }

  it('leave nobody unanswered but whose outcome is unknown, and that one is judged next', async () => {
    const { batch, begin, sent, agree } = await stage({ [FIT]: lost })
    assert.deepEqual(await begin(...batch), [lost, 'begun'])
    assert.deepEqual(await begin(...batch.slice(0, 1)), ['begun'])
    assert.deepEqual(sent, [FIT, JUDGE, JUDGE])
    await agree()
  })

  it('hold once what was carried out though its answer was lost', async () => {
    const { batch, one, begin, agree } = await stage({ [FIT]: lost }, true)
    assert.deepEqual(await begin(...batch), [lost, 'begun'])
    assert.deepEqual(await begin(...batch.slice(0, 1)), ['begun'])
    assert.equal((await moneyOf(pool, one)).held, 10n)
    await agree()
  })

  for (const carriedOut of [true, false]) {
    it(`charge once at an end that ${carriedOut ? 'was carried out and its answer lost' : 'was lost'}, and the others beside it at once`, async () => {
      const { batch, one, begin, end, agree } = await stage({ end_fitting_calls: lost }, carriedOut)
      await begin(...batch)
      assert.deepEqual(await end(...batch), [lost, 4n])
      assert.deepEqual(await end(...batch.slice(0, 1)), [4n])
      assert.deepEqual([(await moneyOf(pool, one)).charged, (await moneyOf(pool, one)).held], [4n, 0n])
      await agree()
    })
  }

  it('leave what fits begun, where it is the judging function that did not answer', async () => {
    const { batch, begin, agree } = await stage({ [JUDGE]: lost })
    assert.deepEqual(await begin(...batch), ['begun', lost])
    await agree()
  })

  it('leave what seemed to fit to the judging function, where PostgreSQL refused it', async () => {
    const { batch, begin, sent, agree } = await stage({ [FIT]: refused })
    assert.deepEqual(await begin(...batch), ['begun', 'begun'])
    assert.deepEqual(sent, [FIT, JUDGE, JUDGE])
    await agree()
  })
})
