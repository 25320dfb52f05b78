import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import {
  callOf,
  makeParty,
  moneyOf,
  openSession,
  outcomesOf,
  passTime,
  periodsOf,
  postOf,
  windowOf,
} from './session.ts'
import { connect, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const REQUESTS = { group: 'requests', seconds: 60, requestLimit: 3, tokenLimit: null }
const TOKENS = { group: 'all', seconds: 60, requestLimit: 100, tokenLimit: 100 }

async function begin(call: Call) {
  const [judgement] = await session.begin(call)
  assert.ok(judgement !== undefined)
  return judgement
}

describe('a window', () => {
  it('admits its limit and not one more, tells what is left, and ends 60 seconds after its first request', async () => {
    const party = await makeParty(pool, 100n)
    const judgements = []
    for (let n = 0; n < 4; n += 1) judgements.push(await begin(callOf(party, { windows: [REQUESTS] })))
    assert.deepEqual(
      judgements.map(({ outcome, rates }) => [outcome, rates.requests?.left]),
      [
        ['begun', 2],
        ['begun', 1],
        ['begun', 0],
        ['requests_spent', 0],
      ],
    )
    const first = judgements[0]
    const resets = new Set(judgements.map(({ rates }) => rates.requests?.resetAtMs))
    assert.equal(resets.size, 1, 'the reset does not move')
    const endsAtMs = Date.parse(`${first?.judgedAt}:00`) + 60_000
    assert.ok(Math.abs((first?.rates.requests?.resetAtMs ?? 0) - endsAtMs) < 1, 'to the millisecond')
  })

  it('still stands shortly before its end, and is a new one with its first request after it', async () => {
    const party = await makeParty(pool, 100n)
    for (let n = 0; n < 3; n += 1) await begin(callOf(party, { windows: [REQUESTS] }))
    await passTime(pool, party, 50)
    assert.equal((await begin(callOf(party, { windows: [REQUESTS] }))).outcome, 'requests_spent')
    await passTime(pool, party, 10)
    const renewed = await begin(callOf(party, { windows: [REQUESTS] }))
    assert.equal(renewed.outcome, 'begun')
    assert.equal(renewed.rates.requests?.left, 2)
    assert.equal((await windowOf(pool, party, 'requests'))?.started_at, renewed.judgedAt)
  })

  it('belongs to one credential: another of the same account has its own', async () => {
    const party = await makeParty(pool, 100n)
    const { credentialId } = await makeParty(pool, 0n)
    await pool.query('update credentials set account_id = $2 where id = $1', [credentialId, party.accountId])
    const batch = [1, 2, 3].map(() => callOf(party, { windows: [REQUESTS] }))
    const other = callOf({ ...party, credentialId }, { windows: [REQUESTS] })
    const outcomes = await outcomesOf(session.begin(...batch, other, callOf(party, { windows: [REQUESTS] })))
    assert.deepEqual(outcomes, ['begun', 'begun', 'begun', 'begun', 'requests_spent'])
  })
})

describe('the tokens of a window', () => {
  const begunWith = async (tokens: number) => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { tokens, windows: [TOKENS] })
    assert.equal((await begin(call)).outcome, 'begun')
    return { party, call }
  }

  it('are corrected from the estimate to what was used, of all kinds', async () => {
    const { party, call } = await begunWith(50)
    const used = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 4, cacheWriteTokens: 8 }
    await session.end(postOf(call, 1n, used))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 15n)
  })

  it('are given back by a void', async () => {
    const { party, call } = await begunWith(50)
    await session.end(voidOf(call))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 0n)
  })

  for (const [title, used] of [
    ['more', 90],
    ['less', 5],
  ] as const) {
    it(`are left alone by a call of the window before that used ${title} than its estimate`, async () => {
      const { party, call } = await begunWith(50)
      await passTime(pool, party, 61)
      await begin(callOf(party, { tokens: 60, windows: [TOKENS] }))
      await session.end(postOf(call, 1n, { inputTokens: used }))
      assert.equal((await windowOf(pool, party, 'all'))?.tokens, 60n)
    })
  }

  it('are corrected for every call of a batch, each by its own difference', async () => {
    const { party, call } = await begunWith(50)
    const other = callOf(party, { tokens: 40, windows: [TOKENS] })
    await begin(other)
    await session.end(postOf(call, 1n, { inputTokens: 60 }), postOf(other, 1n, { inputTokens: 10 }))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 70n)
  })
})

describe('what is left when a call has ended', () => {
  const askedOf = ({ credentialId, windows }: Call) => ({ credentialId, windows })
  const ended = (call: Call, used: number) => ({ ...postOf(call, 1n, { outputTokens: used }), asked: askedOf(call) })
  const OWN = { group: 'endpoint', seconds: 60, requestLimit: 5, tokenLimit: null }

  /** Somebody who has begun so many calls, each with 30 tokens reserved. */
  async function begun(calls: number, windows: Call['windows'] = [TOKENS]) {
    const party = await makeParty(pool, 100n)
    const all = Array.from({ length: calls }, () => callOf(party, { tokens: 30, windows }))
    const judgements = await session.begin(...all)
    assert.ok(judgements.every(({ outcome }) => outcome === 'begun'))
    return { party, all, resetAtMs: judgements[0]?.rates.tokens?.resetAtMs }
  }

  async function rates(...endings: readonly Ending[]) {
    return (await session.end(...endings)).map((settlement) => settlement.rates)
  }

  it('is told without what was given back, and a call of exactly that is admitted, and of one more is not', async () => {
    const { party, all, resetAtMs } = await begun(2)
    const [call] = all
    assert.ok(call !== undefined)
    const [left] = await rates(ended(call, 10))
    assert.deepEqual(left?.tokens, { limit: 100, left: 60, resetAtMs })
    assert.deepEqual([left?.requests?.limit, left?.requests?.left], [100, 98])
    assert.equal((await begin(callOf(party, { tokens: 61, windows: [TOKENS] }))).outcome, 'tokens_spent')
    assert.equal((await begin(callOf(party, { tokens: 60, windows: [TOKENS] }))).outcome, 'begun')
  })

  it('is nothing where more was used than the limit, and what was used beyond it stays counted', async () => {
    const { party, all } = await begun(2)
    const [call, other] = all
    assert.ok(call !== undefined && other !== undefined)
    assert.equal((await rates(ended(call, 130)))[0]?.tokens?.left, 0)
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 160n)
    assert.equal((await begin(callOf(party, { tokens: 1, windows: [TOKENS] }))).outcome, 'tokens_spent')
    assert.equal((await rates(ended(other, 0)))[0]?.tokens?.left, 0)
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 130n)
  })

  it('is told to every call of a batch as it is after the batch, to each by its own windows, and to none that does not ask', async () => {
    const { party, all, resetAtMs } = await begun(3)
    const stranger = await begun(1, [OWN, TOKENS])
    const [first, second, third] = all
    const [other] = stranger.all
    assert.ok(first !== undefined && second !== undefined && third !== undefined && other !== undefined)
    const told = await rates(ended(first, 5), postOf(second, 1n), ended(other, 7), ended(third, 20))
    const own = { limit: 100, left: 75, resetAtMs }
    assert.deepEqual(
      told.map((one) => one?.tokens ?? null),
      [own, null, { limit: 100, left: 93, resetAtMs: stranger.resetAtMs }, own],
    )
    assert.deepEqual(
      told.map((one) => one?.requests?.left ?? null),
      [97, null, 4, 97],
    )
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 25n)
  })

  it('is told of the tightest window, those that count no tokens included', async () => {
    const { all } = await begun(2, [TOKENS, OWN])
    const [call] = all
    assert.ok(call !== undefined)
    const [left] = await rates(ended(call, 1))
    assert.deepEqual([left?.requests?.limit, left?.requests?.left, left?.tokens?.left], [5, 3, 69])
  })

  for (const [title, among] of [
    ['alone', 0],
    ['in a batch', 1],
  ] as const) {
    it(`is that of the window that has begun since, which is left as it is (${title})`, async () => {
      const { party, all } = await begun(1)
      const [call] = all
      assert.ok(call !== undefined)
      await passTime(pool, party, 61)
      const next = await begin(callOf(party, { tokens: 60, windows: [TOKENS] }))
      const neighbours = (await begun(among)).all.map((one) => ended(one, 1))
      const [left] = await rates(ended(call, 5), ...neighbours)
      assert.deepEqual(left?.tokens, next.rates.tokens)
      assert.deepEqual(left?.requests, next.rates.requests)
      assert.equal((await windowOf(pool, party, 'all'))?.tokens, 60n)
    })

    it(`is everything where the window is over and none has begun (${title})`, async () => {
      const { party, all } = await begun(1)
      const [call] = all
      assert.ok(call !== undefined)
      await passTime(pool, party, 61)
      const neighbours = (await begun(among)).all.map((one) => ended(one, 1))
      const [left] = await rates(ended(call, 90), ...neighbours)
      assert.deepEqual([left?.tokens?.left, left?.requests?.left], [100, 100])
    })
  }

  it('is told of a call that had ended before as it is now', async () => {
    const { all } = await begun(1)
    const [call] = all
    assert.ok(call !== undefined)
    const first = await rates(ended(call, 10))
    assert.equal(first[0]?.tokens?.left, 90)
    assert.deepEqual(await rates(ended(call, 40)), first)
  })
})

describe('a call that is refused', () => {
  const KEY = { scope: 'idempotency', key: 'one', limit: 1, fingerprint: 'same', keepSeconds: 60, endsWithOwner: false }
  const QUOTE = { ...KEY, scope: 'quote', key: 'a quote' }
  const SLOT = { scope: 'concurrency', key: 'all', limit: 5, fingerprint: '', keepSeconds: 0, endsWithOwner: true }
  const ONLY_SLOT = { ...SLOT, scope: 'slot', limit: 1 }
  const TASK = { ...SLOT, scope: 'tasks', key: 'videos', limit: 1, endsWithOwner: false }
  /** The one that is begun first, the refused one twice, the one behind it, and one more. */
  const ROOM = { ...REQUESTS, requestLimit: 5 }

  async function everything() {
    const party = await makeParty(pool, 100n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 50n)
    const asks = {
      hold: 10n,
      allowances: [allowance],
      tokens: 10,
      windows: [ROOM, TOKENS],
      claims: [SLOT, ONLY_SLOT, TASK, KEY, QUOTE],
    }
    const state = async () => ({
      money: await moneyOf(pool, party),
      allowance: await periodsOf(pool, allowance),
      tokens: (await windowOf(pool, party, 'all'))?.tokens,
      claims: (await pool.query('select key from claims where credential_id = $1', [party.credentialId])).rowCount,
      holds: (await pool.query('select id from holds where account_id = $1', [party.accountId])).rowCount,
    })
    const requests = async () => [
      (await windowOf(pool, party, 'requests'))?.requests,
      (await windowOf(pool, party, 'all'))?.requests,
    ]
    return { party, asks, state, requests }
  }

  type Change = Partial<Awaited<ReturnType<typeof everything>>['asks']>
  type Refusals = readonly (readonly [outcome: string, change: Change, what?: string])[]

  function refuses(title: string, cost: number, refusals: Refusals): void {
    for (const [outcome, change, what] of refusals) {
      it(`${title} (${what === undefined ? '' : `${what}: `}${outcome})`, async () => {
        const { party, asks, state, requests } = await everything()
        assert.equal((await begin(callOf(party, asks))).outcome, 'begun')
        const before = await state()
        const refused = callOf(party, { ...asks, ...change })
        const judgement = await begin(refused)
        assert.equal(judgement.outcome, outcome)
        assert.deepEqual(await state(), before)
        assert.deepEqual(await requests(), [1 + cost, 1 + cost])
        if (outcome !== 'requests_spent') assert.equal(judgement.rates.requests?.left, 4 - cost, 'as it was told')

        const [again, next] = await session.begin(refused, callOf(party, { ...asks, claims: [] }))
        assert.equal(again?.outcome, outcome, 'in a batch likewise')
        assert.equal(next?.outcome, 'begun')
        assert.equal(next?.free, 80n)
        assert.equal(next?.rates.requests?.left, 3 - 2 * cost, 'it is counted before the one behind it')
        assert.equal(next?.rates.tokens?.left, 80)
      })
    }
  }

  refuses('for one reason consumes nothing of the others', 0, [
    ['tokens_spent', { tokens: 91, claims: [] }],
    ['requests_spent', { windows: [TOKENS, { ...REQUESTS, requestLimit: 1 }], claims: [] }],
    ['claim_taken', { claims: [ONLY_SLOT] }, 'a slot'],
    ['claim_taken', { claims: [TASK] }, "a task's slot"],
  ])

  refuses('costs a request', 1, [
    ['claim_taken', { claims: [SLOT, KEY] }, 'a key'],
    ['claim_differs', { claims: [SLOT, { ...KEY, fingerprint: 'other' }] }, 'a key'],
    ['claim_taken', { claims: [SLOT, QUOTE] }, 'a quote'],
    ['allowance_spent', { hold: 41n, claims: [SLOT] }],
    ['money_spent', { hold: 91n, claims: [SLOT], allowances: [] }],
  ])

  it('costs a request where its account owes money, and nothing of another account', async () => {
    const party = await makeParty(pool, 0n)
    await pool.query('update accounts set debt = 5, charged = 5 where id = $1', [party.accountId])
    const suspended = () => callOf(party, { hold: 0n, windows: [REQUESTS] })
    assert.deepEqual(await outcomesOf(session.begin(suspended(), suspended(), suspended(), suspended())), [
      ...Array(3).fill('account_suspended'),
      'requests_spent',
    ])
    const { credentialId } = await makeParty(pool, 0n)
    const foreign = callOf({ ...party, credentialId }, { hold: 0n, windows: [REQUESTS] })
    assert.equal((await begin(foreign)).outcome, 'credential_inactive')
    assert.equal(await windowOf(pool, { ...party, credentialId }, 'requests'), undefined)
  })

  it('starts a window and is refused for its requests when they are spent, whatever was wrong with it', async () => {
    const party = await makeParty(pool, 10n)
    const poor = () => callOf(party, { hold: 11n, tokens: 5, windows: [REQUESTS, TOKENS] })
    const judgements = [...(await session.begin(poor(), poor())), await begin(poor()), await begin(poor())]
    assert.deepEqual(
      judgements.map(({ outcome, rates }) => [outcome, rates.requests?.left, rates.tokens?.left]),
      [
        ['money_spent', 2, 100],
        ['money_spent', 1, 100],
        ['money_spent', 0, 100],
        ['requests_spent', 0, 100],
      ],
    )
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { windows: [REQUESTS] }))), ['requests_spent'])
    assert.equal((await windowOf(pool, party, 'requests'))?.requests, 3)
    assert.equal((await windowOf(pool, party, 'requests'))?.started_at, judgements[0]?.judgedAt)
  })

  it('as one that has begun or ended before takes no request: the same id again is the same call', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { windows: [REQUESTS] })
    assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
    assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
    await session.end(voidOf(call))
    assert.deepEqual(await outcomesOf(session.begin(call)), ['ended'])
    assert.equal((await windowOf(pool, party, 'requests'))?.requests, 1)
  })
})
