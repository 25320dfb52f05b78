import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import {
  callOf,
  makeParty,
  moneyOf,
  openSession,
  outcomesOf,
  type Party,
  passTime,
  periodsOf,
  postOf,
  type Session,
  whileLocked,
  windowOf,
} from './session.ts'
import { connect, makeAllowance } from './world.ts'

/**
 * Everything that a call touches is touched under its account's lock, and read after it: whoever waited for the lock must
 * judge by what the one before left behind, never by what was there when the wait began.
 */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const BALANCE = 100n
const WINDOW = { group: 'all', seconds: 60, requestLimit: 1, tokenLimit: null }
const TOKENS = { group: 'tokens', seconds: 60, requestLimit: 100, tokenLimit: 100 }
const KEY = {
  scope: 'idempotency',
  key: 'one',
  limit: 1,
  fingerprint: 'same',
  keepSeconds: 3_600,
  endsWithOwner: false,
}
const SLOT = { scope: 'concurrency', key: 'all', limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

/** Runs calls to their begin, with nobody in the way. */
async function begun<Calls extends readonly Call[]>(...calls: Calls): Promise<Calls> {
  const session = await openSession(database.url)
  try {
    assert.deepEqual(await outcomesOf(session.begin(...calls)), Array(calls.length).fill('begun'))
  } finally {
    await session.close()
  }
  return calls
}

async function onlyOf<T>(batch: Promise<readonly T[]>): Promise<T> {
  const [one, ...others] = await batch
  assert.ok(one !== undefined && others.length === 0)
  return one
}

type Change = (holder: Session) => Promise<unknown>

const late = (party: Party) => ({ url: database.url, observer: pool, accountId: party.accountId })

/** What comes of a call whose begin waits while another session changes the world. */
const beginsLate = (call: Call, change: Change): Promise<Judgement> =>
  whileLocked(late(call), change, (waiter) => onlyOf(waiter.begin(call)))

/** The same in a word, where the tables themselves may have to refuse it. */
const outcomeOfLateBegin = (call: Call, change: Change): Promise<string> =>
  whileLocked(late(call), change, (waiter) => onlyOf(outcomesOf(waiter.begin(call))))

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

describe('a begin that waits for its account judges by what the lock holder left', () => {
  it('of the balance: money that is held meanwhile is not there', async () => {
    const party = await makeParty(pool, BALANCE)
    const other = callOf(party, { hold: 60n })
    const outcome = await outcomeOfLateBegin(callOf(party, { hold: 60n }), (holder) => holder.begin(other))
    assert.equal(outcome, 'money_spent')
    assert.equal((await moneyOf(pool, party)).held, 60n)
    await agrees(party)
  })

  it('of the balance: money that is charged meanwhile is not there, and what was released is', async () => {
    const party = await makeParty(pool, BALANCE)
    const [other] = await begun(callOf(party, { hold: 90n }))
    const judgement = await beginsLate(callOf(party, { hold: 50n }), (holder) => holder.end(postOf(other, 50n)))
    assert.equal(judgement.outcome, 'begun')
    assert.equal(judgement.free, 0n)
    assert.deepEqual(await moneyOf(pool, party), { credited: BALANCE, debt: 0n, charged: 50n, held: 50n, promo: 0n })
    await agrees(party)
  })

  it('of an allowance: what is held of it meanwhile is not there', async () => {
    const party = await makeParty(pool, BALANCE)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 50n)
    const other = callOf(party, { hold: 40n, allowances: [allowance] })
    const call = callOf(party, { hold: 30n, allowances: [allowance] })
    const outcome = await outcomeOfLateBegin(call, (holder) => holder.begin(other))
    assert.equal(outcome, 'allowance_spent')
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 0n, held: 40n }])
    await agrees(party)
  })

  it('of an allowance: what is charged meanwhile is gone, and what was released is there', async () => {
    const party = await makeParty(pool, BALANCE)
    const allowance = await makeAllowance(pool, party.accountId, 'day', 50n)
    const [other] = await begun(callOf(party, { hold: 50n, allowances: [allowance] }))
    const call = callOf(party, { hold: 20n, allowances: [allowance] })
    assert.equal(await outcomeOfLateBegin(call, (holder) => holder.end(postOf(other, 30n))), 'begun')
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 30n, held: 20n }])

    const refused = await beginsLate(callOf(party, { hold: 20n, allowances: [allowance] }), (holder) =>
      holder.end(postOf(call, 5n)),
    )
    assert.equal(refused.outcome, 'allowance_spent')
    assert.equal('left' in refused && refused.left, 15n)
    await agrees(party)
  })

  it('of a window: the last request that is taken meanwhile is taken', async () => {
    const party = await makeParty(pool, BALANCE)
    const other = callOf(party, { windows: [WINDOW] })
    const judgement = await beginsLate(callOf(party, { windows: [WINDOW] }), (holder) => holder.begin(other))
    assert.equal(judgement.outcome, 'requests_spent')
    assert.equal(judgement.rates.requests?.left, 0)
    assert.equal((await windowOf(pool, party, 'all'))?.requests, 1)
  })

  it('of a window that has run out: it is begun anew once, by whoever comes first', async () => {
    const party = await makeParty(pool, BALANCE)
    await begun(callOf(party, { windows: [WINDOW] }))
    await passTime(pool, party, 61)
    const other = callOf(party, { windows: [WINDOW] })
    let renewedAt: string | undefined
    const judgement = await beginsLate(callOf(party, { windows: [WINDOW] }), async (holder) => {
      renewedAt = (await onlyOf(holder.begin(other))).judgedAt
    })
    assert.equal(judgement.outcome, 'requests_spent')
    assert.deepEqual(await windowOf(pool, party, 'all'), { requests: 1, tokens: 0n, started_at: renewedAt })
  })

  it('of the tokens of a window: by what they were corrected to', async () => {
    const party = await makeParty(pool, BALANCE)
    const [small, large] = await begun(
      callOf(party, { tokens: 10, windows: [TOKENS] }),
      callOf(party, { tokens: 80, windows: [TOKENS] }),
    )
    const asks = { tokens: 20, windows: [TOKENS] }
    const refused = await beginsLate(callOf(party, asks), (holder) =>
      holder.end(postOf(small, 1n, { inputTokens: 15 })),
    )
    assert.equal(refused.outcome, 'tokens_spent')
    assert.equal(refused.rates.tokens?.left, 5)
    const admitted = await beginsLate(callOf(party, asks), (holder) =>
      holder.end(postOf(large, 1n, { outputTokens: 65 })),
    )
    assert.equal(admitted.outcome, 'begun')
    assert.equal(admitted.rates.tokens?.left, 0)
  })

  it('of a claim: a key that is taken meanwhile is taken, by the one that took it', async () => {
    const party = await makeParty(pool, BALANCE)
    const other = callOf(party, { claims: [KEY] })
    const judgement = await beginsLate(callOf(party, { claims: [KEY] }), (holder) => holder.begin(other))
    assert.equal(judgement.outcome, 'claim_taken')
    assert.equal('holder' in judgement && judgement.holder, other.id)
    assert.equal((await moneyOf(pool, party)).held, 1n)
  })

  it('of a claim: a key that is given back meanwhile is free, one that is kept is not', async () => {
    const party = await makeParty(pool, BALANCE)
    const [first] = await begun(callOf(party, { claims: [KEY] }))
    const second = callOf(party, { claims: [KEY] })
    assert.equal(await outcomeOfLateBegin(second, (holder) => holder.end(voidOf(first))), 'begun')
    const third = callOf(party, { claims: [KEY] })
    assert.equal(await outcomeOfLateBegin(third, (holder) => holder.end(postOf(second, 1n))), 'claim_taken')
  })

  it('of slots: there is never one more than the limit, and one that is left is free', async () => {
    const party = await makeParty(pool, BALANCE)
    const [first] = await begun(callOf(party, { claims: [SLOT] }))
    const asks = { claims: [SLOT] }
    assert.equal(
      await outcomeOfLateBegin(callOf(party, asks), (holder) => holder.begin(callOf(party, asks))),
      'claim_taken',
    )
    assert.equal(await outcomeOfLateBegin(callOf(party, asks), (holder) => holder.end(postOf(first, 1n))), 'begun')
  })

  it('of its own id: one that was voided meanwhile holds nothing', async () => {
    const party = await makeParty(pool, BALANCE)
    const call = callOf(party, { hold: 60n, claims: [KEY], windows: [WINDOW] })
    assert.equal(await outcomeOfLateBegin(call, (holder) => holder.end(voidOf(call))), 'ended')
    assert.equal((await moneyOf(pool, party)).held, 0n)
    assert.equal(await windowOf(pool, party, 'all'), undefined)
    await agrees(party)
  })

  it('of its own id: one that was begun and posted meanwhile holds nothing', async () => {
    const party = await makeParty(pool, BALANCE)
    const call = callOf(party, { hold: 60n })
    const outcome = await outcomeOfLateBegin(call, async (holder) => {
      await holder.begin(call)
      await holder.end(postOf(call, 25n))
    })
    assert.equal(outcome, 'ended')
    assert.deepEqual(await moneyOf(pool, party), { credited: BALANCE, debt: 0n, charged: 25n, held: 0n, promo: 0n })
    await agrees(party)
  })

  it('of its own id: one that was begun meanwhile by the same statement sent twice takes everything once', async () => {
    const party = await makeParty(pool, BALANCE)
    const allowance = await makeAllowance(pool, party.accountId, 'month', BALANCE)
    const call = callOf(party, { hold: 40n, allowances: [allowance], claims: [KEY], windows: [WINDOW] })
    const judgement = await beginsLate(call, (holder) => holder.begin(call))
    assert.equal(judgement.outcome, 'begun')
    assert.equal(judgement.free, 60n)
    assert.equal((await moneyOf(pool, party)).held, 40n)
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 0n, held: 40n }])
    assert.equal((await windowOf(pool, party, 'all'))?.requests, 1)
    await agrees(party)
  })

  const changes: readonly (readonly [title: string, sql: string, outcome: string])[] = [
    [
      'a key that is revoked meanwhile',
      'update credentials set active = false where account_id = $1',
      'credential_inactive',
    ],
    ['an account that is closed meanwhile', 'update accounts set active = false where id = $1', 'account_inactive'],
    [
      'a payment that is reversed meanwhile',
      "select reverse_payment(gen_random_uuid(), id, 1000000) from entries where account_id = $1 and kind = 'payment'",
      'money_spent',
    ],
  ]
  for (const [title, sql, expected] of changes) {
    it(`of who may spend: ${title} starts no call`, async () => {
      const party = await makeParty(pool, BALANCE)
      const outcome = await outcomeOfLateBegin(callOf(party), (holder) => holder.query(sql, [party.accountId]))
      assert.equal(outcome, expected)
      assert.equal((await moneyOf(pool, party)).held, 0n)
    })
  }

  it('of the clock: a call that waited begins after the wait, and so does the window that it opens', async () => {
    const party = await makeParty(pool, BALANCE)
    let releasedAt: unknown
    const { judgedAt } = await beginsLate(callOf(party, { windows: [WINDOW] }), async (holder) => {
      releasedAt = (await holder.query('select clock_timestamp()::text as at'))[0]?.at
    })
    const { rows } = await pool.query('select $1::timestamptz > $2::timestamptz as later', [judgedAt, releasedAt])
    assert.deepEqual(rows, [{ later: true }])
    assert.equal((await windowOf(pool, party, 'all'))?.started_at, judgedAt)
  })
})

describe('an end that waits for its account', () => {
  const endsLate = (call: Call, change: Change, ending = postOf(call, 40n)): Promise<Settlement> =>
    whileLocked(late(call), change, (waiter) => onlyOf(waiter.end(ending)))

  const outcomeOfLateEnd = (call: Call, change: Change): Promise<string> =>
    whileLocked(late(call), change, (waiter) => onlyOf(outcomesOf(waiter.end(postOf(call, 40n)))))

  it('answers as the first time when the call was posted meanwhile, and charges once', async () => {
    const party = await makeParty(pool, BALANCE)
    const [call] = await begun(callOf(party, { hold: 60n }))
    assert.equal(await outcomeOfLateEnd(call, (holder) => holder.end(postOf(call, 40n))), 'posted')
    const { charged, overrun, endedNow } = await endsLate(call, async () => {}, postOf(call, 50n))
    assert.deepEqual({ charged, overrun, endedNow }, { charged: 40n, overrun: 0n, endedNow: false })
    assert.deepEqual(await moneyOf(pool, party), { credited: BALANCE, debt: 0n, charged: 40n, held: 0n, promo: 0n })
    await agrees(party)
  })

  it('charges nothing when the call was voided meanwhile', async () => {
    const party = await makeParty(pool, BALANCE)
    const [call] = await begun(callOf(party, { hold: 60n }))
    assert.equal(await outcomeOfLateEnd(call, (holder) => holder.end(voidOf(call))), 'voided')
    assert.deepEqual(await moneyOf(pool, party), { credited: BALANCE, debt: 0n, charged: 0n, held: 0n, promo: 0n })
    await agrees(party)
  })

  it('ends the hold that was made meanwhile, instead of leaving a tombstone beside it', async () => {
    const party = await makeParty(pool, BALANCE)
    const call = callOf(party, { hold: 60n })
    const settlement = await endsLate(call, (holder) => holder.begin(call), voidOf(call))
    assert.equal(settlement.outcome, 'voided')
    assert.equal(settlement.free, BALANCE)
    assert.equal((await moneyOf(pool, party)).held, 0n)
    await agrees(party)
  })

  it('spends promotional credit only where another has left some', async () => {
    const party = await makeParty(pool, BALANCE)
    await pool.query('select credit_account($1, $2, $3, 50)', [callOf(party).id, party.accountId, 'promotion'])
    const [call, other] = await begun(callOf(party, { hold: 60n }), callOf(party, { hold: 60n }))
    await endsLate(call, (holder) => holder.end(postOf(other, 30n)))
    const { rows } = await pool.query('select promo from charges where id = $1', [call.id])
    assert.deepEqual(rows, [{ promo: 20n }])
    assert.equal((await moneyOf(pool, party)).promo, 0n)
    await agrees(party)
  })

  it('leaves the tokens of a window alone that was begun meanwhile', async () => {
    const party = await makeParty(pool, BALANCE)
    const [call] = await begun(callOf(party, { hold: 60n, tokens: 10, windows: [TOKENS] }))
    await passTime(pool, party, 61)
    const other = callOf(party, { tokens: 30, windows: [TOKENS] })
    await endsLate(call, (holder) => holder.begin(other), postOf(call, 40n, { inputTokens: 90 }))
    assert.equal((await windowOf(pool, party, 'tokens'))?.tokens, 30n)
  })
})

describe('a batch of several accounts', () => {
  for (const statement of ['begin', 'end'] as const) {
    it(`locks them in the order of their ids in ${statement}, whatever the order of its calls`, async () => {
      const parties = [await makeParty(pool, BALANCE), await makeParty(pool, BALANCE), await makeParty(pool, BALANCE)]
      const [first, ...others] = parties.toSorted((a, b) => (a.accountId < b.accountId ? -1 : 1))
      assert.ok(first !== undefined)
      const calls = [...others.toReversed(), first].map((party) => callOf(party))
      const witness = await openSession(database.url)
      const free = async () =>
        await witness.query('select id from accounts where id = any ($1) order by id for no key update nowait', [
          others.map(({ accountId }) => accountId),
        ])
      try {
        const outcomes = await whileLocked(
          late(first),
          async () =>
            assert.equal((await free()).length, others.length, 'who waits for the first has none of the others'),
          (waiter) => outcomesOf(statement === 'begin' ? waiter.begin(...calls) : waiter.end(...calls.map(voidOf))),
        )
        assert.deepEqual(new Set(outcomes), new Set([statement === 'begin' ? 'begun' : 'voided']))
      } finally {
        await witness.close()
      }
    })
  }

  it('holds up none of the accounts that it does not name', async () => {
    const [hot, quiet] = [await makeParty(pool, BALANCE), await makeParty(pool, BALANCE)]
    const bystander = await openSession(database.url)
    try {
      await whileLocked(
        late(hot),
        async () => assert.deepEqual(await outcomesOf(bystander.begin(callOf(quiet))), ['begun']),
        (waiter) => waiter.begin(callOf(hot)),
      )
      await until(async () => (await moneyOf(pool, hot)).held === 1n, PATIENCE_MS)
    } finally {
      await bystander.close()
    }
  })
})
