import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { beginFitting, isUsual, type UsualCall } from '../../server/src/calls/fast-begin.ts'
import { endFitting } from '../../server/src/calls/fast-end.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import {
  callOf,
  makeParty,
  moneyOf,
  openSession,
  outcomesOf,
  type Party,
  periodsOf,
  postOf,
  type Session,
  unfailed,
  whileLocked,
  windowOf,
} from './session.ts'
import { connect, ids, makeAllowance } from './world.ts'

/**
 * The statement for calls that fit waits for the accounts too, and what it read before it waited is old: whatever it decides by has to be as the one before left it.
 * What does not fit then is left alone, so that the judging function finds everything as it was.
 */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const ALL = { group: 'all', seconds: 60, requestLimit: 2, tokenLimit: 100 }
const SLOT = { scope: 'concurrency', key: 'all', limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

type Asks = { readonly hold?: bigint; readonly tokens?: number; readonly own?: Id }

/** A call of the usual kind. */
function usual(party: Party, { hold = 10n, tokens = 5, own }: Asks = {}): UsualCall {
  const call: Call = {
    ...callOf(party, { tokens, windows: [ALL], claims: [SLOT] }),
    hold: { amount: nanos(hold), terms: '{}', allowances: own === undefined ? [] : [own], own },
  }
  assert.ok(isUsual(call))
  return call
}

async function makeMetered(amount = 50n, period: 'day' | 'total' = 'total') {
  const party = await makeParty(pool, 100n)
  const own = await makeAllowance(pool, party.accountId, period, amount)
  await pool.query('select meter_budget(credential => $1, allowance => $2)', [party.credentialId, own])
  return { party, own }
}

type Change = (holder: Session) => Promise<unknown>
const late = ({ accountId }: Party) => ({ url: database.url, observer: pool, accountId })

type Calls = readonly [UsualCall, ...UsualCall[]]

const beginsLate = (calls: Calls, change: Change): Promise<readonly (Judgement | undefined)[]> =>
  whileLocked(late(calls[0]), change, (waiter) => waiter.beginFitting(...calls))

const endsLate = (calls: Calls, change: Change, amount = 4n): Promise<readonly (Settlement | undefined)[]> =>
  whileLocked(late(calls[0]), change, (waiter) =>
    waiter.endFitting(...calls.map((call) => [call, postOf(call, amount, { inputTokens: 5 })] as const)),
  )

const two = (make: () => UsualCall): Calls => [make(), make()]

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

/** All that a refused call could have changed. */
async function stateOf({ accountId, credentialId }: Party) {
  const { rows } = await pool.query(
    `select a.held, a.charged, to_jsonb(k) as credential, (select count(*) from holds where account_id = a.id) as holds
     from accounts a join credentials k on k.account_id = a.id where a.id = $1 and k.id = $2`,
    [accountId, credentialId],
  )
  return rows
}

describe('a begin of calls that fit, which waits for its account', () => {
  const cases: readonly (readonly [title: string, change: (party: Party, own: Id) => Change])[] = [
    ['money that is held meanwhile is not there', (party) => (holder) => holder.begin(callOf(party, { hold: 95n }))],
    [
      'the last requests of a window are taken meanwhile',
      (party) => (holder) => holder.begin(usual(party, { tokens: 0 }), usual(party, { tokens: 0 })),
    ],
    [
      'the tokens of a window are reserved meanwhile',
      (party) => (holder) => holder.begin(usual(party, { tokens: 96 })),
    ],
    [
      'the places among the calls at once are taken meanwhile',
      (party) => (holder) => holder.begin(callOf(party, { claims: [SLOT] }), callOf(party, { claims: [SLOT] })),
    ],
    ['its budget is spent meanwhile', (party, own) => (holder) => holder.begin(usual(party, { hold: 45n, own }))],
    [
      'its budget is lowered meanwhile',
      (_, own) => (holder) => holder.query('select change_allowance(allowance => $1, new_amount => 9)', [own]),
    ],
    [
      'its key is revoked meanwhile',
      (party) => (holder) => holder.query('update credentials set active = false where id = $1', [party.credentialId]),
    ],
    [
      'its account is closed meanwhile',
      (party) => (holder) => holder.query('update accounts set active = false where id = $1', [party.accountId]),
    ],
    [
      'debt arises meanwhile',
      (party) => async (holder) => {
        await holder.begin(callOf(party, { hold: 60n }))
        await holder.query(
          "select reverse_payment(gen_random_uuid(), id, 100) from entries where account_id = $1 and kind = 'payment'",
          [party.accountId],
        )
      },
    ],
    [
      'its budget goes to another period meanwhile',
      (party) => (holder) =>
        holder.query(
          `update credentials set budget_starts_at = budget_starts_at - interval '1 day', budget_ends_at = clock_timestamp() - interval '1 day' where id = $1`,
          [party.credentialId],
        ),
    ],
  ]
  for (const [title, change] of cases) {
    it(`begins nothing and changes nothing where ${title}`, async () => {
      const { party, own } = await makeMetered()
      const calls = two(() => usual(party, { own }))
      const none = calls.map(() => undefined)
      assert.deepEqual(await beginsLate(calls, change(party, own)), none)
      const known = calls.map(({ id }) => id)
      assert.equal((await pool.query('select from holds where id = any ($1)', [known])).rowCount, 0)
      const state = await stateOf(party)
      // Whoever comes next without waiting finds the same, and leaves the same.
      assert.deepEqual(await session.beginFitting(...two(() => usual(party, { own }))), none)
      assert.deepEqual(await stateOf(party), state)
    })
  }

  it('begins after the wait where nothing is in the way', async () => {
    const { party, own } = await makeMetered()
    const calls = two(() => usual(party, { own }))
    const begun = await beginsLate(calls, (holder) => holder.query('select'))
    assert.deepEqual(
      begun.map((judgement) => judgement?.outcome),
      calls.map(() => 'begun'),
    )
    assert.deepEqual(await periodsOf(pool, own), [{ charged: 0n, held: 20n }])
    await agrees(party)
  })

  it('holds nothing of an id that was voided meanwhile, and nothing twice of one that was begun', async () => {
    const { party, own } = await makeMetered()
    const voided = usual(party, { own })
    assert.deepEqual(await beginsLate([voided], (holder) => holder.end(voidOf(voided))), [undefined])
    assert.equal((await moneyOf(pool, party)).held, 0n)
    assert.equal(await windowOf(pool, party, 'all'), undefined)
    const begun = usual(party, { own })
    assert.deepEqual(await beginsLate([begun], (holder) => holder.begin(begun)), [undefined])
    assert.equal((await moneyOf(pool, party)).held, 10n)
    assert.deepEqual(await periodsOf(pool, own), [{ charged: 0n, held: 10n }])
    await agrees(party)
  })

  it('holds nothing of two of which one was voided meanwhile: they are judged together', async () => {
    const { party, own } = await makeMetered()
    const calls = two(() => usual(party, { own }))
    assert.deepEqual(await beginsLate(calls, (holder) => holder.end(voidOf(calls[0]))), [undefined, undefined])
    assert.equal((await moneyOf(pool, party)).held, 0n)
    assert.deepEqual(await outcomesOf(session.begin(...calls)), ['ended', 'begun'])
    await agrees(party)
  })

  it('fits into nothing of a budget that was lowered below what was spoken for, when some of that comes free', async () => {
    const { party, own } = await makeMetered()
    const call = usual(party, { hold: 40n, own })
    await session.beginFitting(call)
    await pool.query('select change_allowance(allowance => $1, new_amount => 30)', [own])
    await session.end(postOf(call, 25n))
    assert.deepEqual(await session.beginFitting(usual(party, { hold: 6n, own })), [undefined])
    assert.equal((await session.beginFitting(usual(party, { hold: 5n, own })))[0]?.outcome, 'begun')
    await agrees(party)
  })

  it('counts with what was taken and released meanwhile, and begins after the wait', async () => {
    const { party, own } = await makeMetered()
    const [first, second] = [usual(party, { hold: 30n, own }), usual(party, { hold: 20n, own, tokens: 50 })]
    await session.begin(first)
    const [judgement] = await beginsLate([second], (holder) => holder.end(postOf(first, 25n, { inputTokens: 40 })))
    assert.equal(judgement?.outcome, 'begun')
    assert.equal(judgement?.free, 55n)
    assert.deepEqual([judgement?.rates.requests?.left, judgement?.rates.tokens?.left], [0, 10])
    assert.deepEqual(await periodsOf(pool, own), [{ charged: 25n, held: 20n }])
    await agrees(party)
  })
})

/** As the process that runs the call does it. */
const EXTENDED = `select extend_calls(owner_id_in => owner_id, accounts_in => array[account_id], call_ids => array[id], call_accounts => array[account_id],
  call_amounts => '{40}', call_tokens => '{30}', ask_windows_to => '{1}', ask_groups => '{all}', ask_seconds => '{60}', ask_token_limits => '{100}')
  from holds where id = $1`

describe('an end of calls that fit, which waits for its account', () => {
  async function begun() {
    const { party, own } = await makeMetered(50n, 'day')
    const calls = two(() => usual(party, { own }))
    for (const judgement of await session.beginFitting(...calls)) assert.equal(judgement?.outcome, 'begun')
    return { party, own, calls }
  }

  it('ends nothing that was ended meanwhile', async () => {
    const { party, own, calls } = await begun()
    const [first, second] = await endsLate(calls, (holder) => holder.end(postOf(calls[0], 7n)))
    assert.equal(first, undefined)
    assert.equal(second?.charged, 4n)
    const charged = 11n
    assert.deepEqual(await periodsOf(pool, own), [{ charged, held: 0n }])
    assert.equal((await moneyOf(pool, party)).charged, charged)
    await agrees(party)
  })

  it('is refused by PostgreSQL as a whole where the call was extended meanwhile, and then judged', async () => {
    // A constraint is checked before PostgreSQL finds that the row is another by now: what was held when the wait began is less than what is released.
    const { party, own, calls } = await begun()
    await assert.rejects(
      endsLate(calls, (holder) => holder.query(EXTENDED, [calls[0].id]), 33n),
      /violates check constraint "accounts_held_check"/,
    )
    const [settlement] = await session.end(...calls.map((call) => postOf(call, 33n, { inputTokens: 5 })))
    const charged = 43n
    assert.deepEqual([settlement?.charged, settlement?.overrun], [33n, 0n])
    assert.deepEqual(await periodsOf(pool, own), [{ charged, held: 0n }])
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 10n)
    await agrees(party)
  })

  it('leaves calls alone of an account that has promotional credit or debt by then', async () => {
    for (const sql of [
      `select credit_account($2, $1, 'promotion', 50)`,
      "select reverse_payment($2, id, 100) from entries where account_id = $1 and kind = 'payment'",
    ]) {
      const { party, calls } = await begun()
      assert.deepEqual(
        await endsLate(calls, (holder) => holder.query(sql, [party.accountId, ids.next()])),
        calls.map(() => undefined),
      )
      assert.equal((await moneyOf(pool, party)).held, 20n)
      await session.end(...calls.map((call) => postOf(call, 4n)))
      await agrees(party)
    }
  })

  it('leaves the tokens of a window alone that was begun meanwhile', async () => {
    const { party, calls } = await begun()
    const { credentialId } = party
    for (const sql of [
      "update holds set begun_at = begun_at - interval '61 seconds' where credential_id = $1",
      "update credentials set all_started_at = all_started_at - interval '61 seconds' where id = $1",
    ])
      await pool.query(sql, [credentialId])
    await endsLate(calls, (holder) => holder.begin(callOf(party, { tokens: 30, windows: [ALL] })))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 30n)
    await agrees(party)
  })

  it('charges the period in which the call began, though that was put elsewhere meanwhile', async () => {
    const { party, own, calls } = await begun()
    const day = "interval '1 day'"
    for (const sql of [
      `update holds set begun_at = begun_at - ${day} where credential_id = $1`,
      `update credentials set budget_starts_at = budget_starts_at - ${day}, budget_ends_at = budget_ends_at - ${day} where id = $1`,
    ])
      await pool.query(sql, [party.credentialId])
    const settlements = await endsLate(calls, (holder) =>
      holder.query('select meter_budget(credential => $1, allowance => $2)', [party.credentialId, own]),
    )
    for (const settlement of settlements) assert.equal(settlement?.charged, 4n)
    assert.deepEqual(await periodsOf(pool, own), [
      { charged: 8n, held: 0n },
      { charged: 0n, held: 0n },
    ])
    await agrees(party)
  })

  it('gives no place among the calls at once back that nobody had any more', async () => {
    const { party, calls } = await begun()
    await endsLate(calls, (holder) => holder.query('select mark_unsettled(array[$1::uuid], null)', [calls[0].id]))
    await agrees(party)
  })
})

describe('a batch of calls that fit, of several accounts', () => {
  for (const statement of ['begin', 'end'] as const) {
    it(`locks them in the order of their ids in ${statement}`, async () => {
      const parties = [await makeParty(pool, 100n), await makeParty(pool, 100n), await makeParty(pool, 100n)]
      const [first, ...others] = parties.toSorted((a, b) => (a.accountId < b.accountId ? -1 : 1))
      assert.ok(first !== undefined)
      const batch = [...others.toReversed(), first].flatMap((party) => two(() => usual(party)))
      if (statement === 'end') await session.begin(...batch)
      const witness = await openSession(database.url)
      const free = () =>
        witness.query('select id from accounts where id = any ($1) order by id for no key update nowait', [
          others.map(({ accountId }) => accountId),
        ])
      try {
        const answers = await whileLocked(
          late(first),
          async () =>
            assert.equal((await free()).length, others.length, 'who waits for the first has none of the others'),
          (waiter): Promise<readonly ({ readonly outcome: string } | undefined)[]> =>
            statement === 'begin'
              ? waiter.beginFitting(...batch)
              : waiter.endFitting(...batch.map((call) => [call, voidOf(call)] as const)),
        )
        assert.deepEqual(
          new Set(answers.map((one) => one?.outcome)),
          new Set([statement === 'begin' ? 'begun' : 'voided']),
        )
      } finally {
        await witness.close()
      }
      await Promise.all(parties.map(agrees))
    })
  }
})

describe('a later migration', () => {
  it('has all calls judged, those of connections too that have begun and ended some by the statements', async () => {
    const query = createMoneyQuery(pools.money)
    const party = await makeParty(pool, 100n)
    const begin = async (call: UsualCall) => unfailed(await beginFitting(query, ids.next(), [call]))
    const end = async (call: UsualCall) => unfailed(await endFitting(query, [{ ...call, ending: voidOf(call), call }]))
    const say = (word: boolean) =>
      pool.query(
        `create or replace function calls_may_fit() returns boolean language sql stable parallel safe return ${word}`,
      )
    const call = usual(party)
    assert.equal((await begin(call))[0]?.outcome, 'begun')
    await say(false)
    try {
      assert.deepEqual(await begin(usual(party)), [undefined])
      assert.deepEqual(await end(call), [undefined])
      assert.equal((await moneyOf(pool, party)).held, 10n)
    } finally {
      await say(true)
    }
    assert.equal((await end(call))[0]?.outcome, 'voided')
    await agrees(party)
  })
})
