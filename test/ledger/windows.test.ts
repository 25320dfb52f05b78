import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call } from '../../server/src/calls/call.ts'
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
const TOKENS = { group: 'tokens', seconds: 60, requestLimit: 100, tokenLimit: 100 }

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
    assert.equal((await windowOf(pool, party, 'tokens'))?.tokens, 15n)
  })

  it('are given back by a void', async () => {
    const { party, call } = await begunWith(50)
    await session.end(voidOf(call))
    assert.equal((await windowOf(pool, party, 'tokens'))?.tokens, 0n)
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
      assert.equal((await windowOf(pool, party, 'tokens'))?.tokens, 60n)
    })
  }

  it('are corrected for every call of a batch, each by its own difference', async () => {
    const { party, call } = await begunWith(50)
    const other = callOf(party, { tokens: 40, windows: [TOKENS] })
    await begin(other)
    await session.end(postOf(call, 1n, { inputTokens: 60 }), postOf(other, 1n, { inputTokens: 10 }))
    assert.equal((await windowOf(pool, party, 'tokens'))?.tokens, 70n)
  })
})

describe('a call that is refused for one reason consumes nothing of the others', () => {
  const KEY = { scope: 'idempotency', key: 'one', limit: 1, fingerprint: 'same', keepSeconds: 60, endsWithOwner: false }
  const SLOT = { scope: 'slot', key: 'streams', limit: 5, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

  async function everything() {
    const party = await makeParty(pool, 100n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 50n)
    const asks = { hold: 10n, allowances: [allowance], tokens: 10, windows: [REQUESTS, TOKENS], claims: [SLOT, KEY] }
    const state = async () => ({
      money: await moneyOf(pool, party),
      allowance: await periodsOf(pool, allowance),
      windows: [await windowOf(pool, party, 'requests'), await windowOf(pool, party, 'tokens')],
      claims: (await pool.query('select key from claims where credential_id = $1', [party.credentialId])).rowCount,
      holds: (await pool.query('select id from holds where account_id = $1', [party.accountId])).rowCount,
    })
    return { party, asks, state }
  }

  const refusals: readonly (readonly [
    outcome: string,
    change: Partial<Awaited<ReturnType<typeof everything>>['asks']>,
  ])[] = [
    ['tokens_spent', { tokens: 91, claims: [] }],
    ['requests_spent', { windows: [TOKENS, { ...REQUESTS, requestLimit: 1 }], claims: [] }],
    ['claim_taken', {}],
    ['claim_differs', { claims: [SLOT, { ...KEY, fingerprint: 'other' }] }],
    ['allowance_spent', { hold: 41n, claims: [SLOT] }],
    ['money_spent', { hold: 91n, claims: [SLOT], allowances: [] }],
  ]
  for (const [outcome, change] of refusals) {
    it(`(${outcome})`, async () => {
      const { party, asks, state } = await everything()
      assert.equal((await begin(callOf(party, asks))).outcome, 'begun')
      const before = await state()
      const refused = callOf(party, { ...asks, ...change })
      assert.equal((await begin(refused)).outcome, outcome)
      assert.deepEqual(await state(), before)

      const [again, next] = await session.begin(refused, callOf(party, { ...asks, claims: [] }))
      assert.equal(again?.outcome, outcome, 'in a batch likewise')
      assert.equal(next?.outcome, 'begun')
      assert.equal(next?.free, 80n)
      assert.equal(next?.rates.requests?.left, 1, 'the refused call took no request from the one behind it')
      assert.equal(next?.rates.tokens?.left, 80)
    })
  }
})
