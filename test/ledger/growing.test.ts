import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { resolveCall, resolveOverdue } from '../../server/src/calls/orphans.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import {
  callOf,
  extensionOf,
  makeParty,
  moneyOf,
  openSession,
  outcomesOf,
  type Party,
  passTime,
  periodsOf,
  postOf,
  windowOf,
} from './session.ts'
import { connect, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { url } = database
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(() => Promise.all([session.close(), pools.close()]))

const TOKENS = { group: 'tokens', seconds: 60, requestLimit: 100, tokenLimit: 100 }
const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])
const heldBy = async (party: Party) => (await moneyOf(pool, party)).held
const tokensOf = async (party: Party) => Number((await windowOf(pool, party, 'tokens'))?.tokens)

async function begun(party: Party, asks: Parameters<typeof callOf>[1]) {
  const call = callOf(party, asks)
  assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
  return call
}

describe('an extension', () => {
  it('raises what a call holds to a total, and the same or a smaller one again adds nothing', async () => {
    const party = await makeParty(pool, 100n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 90n)
    const call = await begun(party, { hold: 10n, tokens: 5, windows: [TOKENS], allowances: [allowance] })
    for (const [amount, tokens] of [
      [40n, 30],
      [40n, 30],
      [20n, 10],
    ] as const) {
      const [growth] = await session.extend(extensionOf(call, amount, tokens))
      assert.deepEqual([growth?.outcome, growth?.held, growth?.reserved], ['extended', 40n, 30])
    }
    assert.equal(await heldBy(party), 40n)
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 0n, held: 40n }])
    assert.equal(await tokensOf(party), 30)
    await agrees(party)
    const [settlement] = await session.end(postOf(call, 35n, { outputTokens: 12 }))
    assert.deepEqual([settlement?.charged, settlement?.overrun, settlement?.free], [35n, 0n, 65n])
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 35n, held: 0n }])
    assert.equal(await tokensOf(party), 12)
    await agrees(party)
  })

  it('is all or none: what refuses it consumes nothing of the others, and says what is left', async () => {
    const party = await makeParty(pool, 100n)
    const [wide, tight] = [
      await makeAllowance(pool, party.accountId, 'total', 90n),
      await makeAllowance(pool, party.accountId, 'day', 30n),
    ]
    const call = await begun(party, { hold: 10n, tokens: 10, windows: [TOKENS], allowances: [wide, tight] })
    const [byAllowance] = await session.extend(extensionOf(call, 31n, 20))
    assert.ok(byAllowance?.outcome === 'allowance_spent')
    assert.deepEqual([byAllowance.allowanceId, byAllowance.left, byAllowance.held], [tight, 20n, 10n])
    const [byTokens] = await session.extend(extensionOf(call, 20n, 101))
    assert.ok(byTokens?.outcome === 'tokens_spent')
    assert.deepEqual([byTokens.group, byTokens.left, byTokens.reserved], ['tokens', 90, 10])
    const plain = await begun(party, { hold: 10n })
    const [byMoney] = await session.extend(extensionOf(plain, 91n))
    assert.ok(byMoney?.outcome === 'money_spent')
    assert.deepEqual([byMoney.left, byMoney.held], [80n, 10n])
    assert.equal(await heldBy(party), 20n)
    assert.equal(await tokensOf(party), 10)
    assert.deepEqual(await periodsOf(pool, tight), [{ charged: 0n, held: 10n }])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 30n, 100), extensionOf(plain, 70n))), [
      'extended',
      'extended',
    ])
    assert.equal(await heldBy(party), 100n, 'to the last nano')
    await agrees(party)
  })

  it('is judged in the order of arrival, each against what the ones before it in the batch have left', async () => {
    const [party, other] = [await makeParty(pool, 100n), await makeParty(pool, 50n)]
    const allowance = await makeAllowance(pool, party.accountId, 'month', 80n)
    const asks = { hold: 10n, tokens: 10, windows: [TOKENS], allowances: [allowance] }
    const [a, b, c] = [await begun(party, asks), await begun(party, asks), await begun(other, { hold: 1n })]
    const batch = [extensionOf(a, 60n, 60), extensionOf(c, 50n), extensionOf(b, 21n, 30), extensionOf(b, 20n, 41)]
    assert.deepEqual(await outcomesOf(session.extend(...batch.slice(0, 3))), [
      'extended',
      'extended',
      'allowance_spent',
    ])
    assert.deepEqual(await outcomesOf(session.extend(batch[3] ?? assert.fail())), ['tokens_spent'])
    assert.deepEqual([await heldBy(party), await heldBy(other), await tokensOf(party)], [70n, 50n, 70])
    const [d, e] = [await begun(party, { hold: 5n }), await begun(party, { hold: 5n })]
    const both = [extensionOf(d, 20n), extensionOf(e, 11n), extensionOf(c, 50n)]
    assert.deepEqual(await outcomesOf(session.extend(...both)), ['extended', 'money_spent', 'extended'])
    assert.equal(await heldBy(party), 95n)
    await agrees(party)
    await agrees(other)
  })

  it('of a call that has ended, was never begun, or is of another account or process changes nothing', async () => {
    const [party, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const [call, ended] = [await begun(party, { hold: 10n }), await begun(party, { hold: 10n })]
    await session.end(voidOf(ended))
    const strange = await openSession(url)
    after(() => strange.close())
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(ended, 20n), extensionOf(callOf(party), 20n))), [
      'ended',
      'ended',
    ])
    assert.deepEqual(await outcomesOf(strange.extend(extensionOf(call, 20n))), ['disowned'])
    const misplaced = { ...extensionOf(call, 20n), accountId: other.accountId }
    await assert.rejects(session.extend(misplaced), /for the account that it was begun for/)
    assert.deepEqual([await heldBy(party), await heldBy(other)], [10n, 0n])
  })

  it('is refused to an orphan, which is resolved by all that it held', async () => {
    const party = await makeParty(pool, 100n)
    const call = await begun(party, { hold: 10n })
    await session.extend(extensionOf(call, 60n))
    await pool.query('update holds set unsettled_at = clock_timestamp() where id = $1', [call.id])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 70n))), ['disowned'])
    assert.deepEqual(await resolveCall(pool, call.id, nanos(80n)), { outcome: 'posted', charged: 60n, overrun: 20n })
    assert.equal(await heldBy(party), 0n)
    await agrees(party)
  })

  it('is refused once the key is revoked, the account closed, or the allowance lowered', async () => {
    const party = await makeParty(pool, 100n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 100n)
    const call = await begun(party, { hold: 10n, allowances: [allowance] })
    const asked = () => outcomesOf(session.extend(extensionOf(call, 20n)))
    await pool.query('select change_allowance($1, 15)', [allowance])
    assert.deepEqual(await asked(), ['allowance_spent'])
    await pool.query('select change_allowance($1, 0)', [allowance])
    assert.deepEqual(await asked(), ['allowance_spent'])
    await pool.query('select change_allowance($1, 100)', [allowance])
    for (const [table, id, outcome] of [
      ['credentials', party.credentialId, 'credential_inactive'],
      ['accounts', party.accountId, 'account_inactive'],
    ] as const) {
      await pool.query(`update ${table} set active = false where id = $1`, [id])
      assert.deepEqual(await asked(), [outcome])
      await pool.query(`update ${table} set active = true where id = $1`, [id])
    }
    assert.deepEqual(await asked(), ['extended'])
    await agrees(party)
  })

  it('counts in the period in which the call began', async () => {
    const party = await makeParty(pool, 1_000n)
    const allowance = await makeAllowance(pool, party.accountId, 'day', 100n)
    const call = await begun(party, { hold: 0n, allowances: [allowance] })
    await pool.query("update holds set begun_at = begun_at - interval '1 day' where id = $1", [call.id])
    await begun(party, { hold: 90n, allowances: [allowance] })
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 70n))), ['extended'])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 101n))), ['allowance_spent'])
    assert.deepEqual(
      (await periodsOf(pool, allowance)).map(({ held }) => held),
      [70n, 90n],
    )
    await session.end(postOf(call, 60n))
    await agrees(party)
  })

  for (const [title, change, told] of [
    ['ended adds nothing', 'end', ['ended', 0n]],
    ['grew adds nothing that it holds already', 'grow', ['extended', 80n]],
    ['was outbid finds no money', 'spend', ['money_spent', 10n]],
  ] as const) {
    it(`that was waiting for the account while its call ${title}`, async () => {
      const party = await makeParty(pool, 100n)
      const call = await begun(party, { hold: 10n })
      const holder = await openSession(url)
      after(() => holder.close())
      await holder.query('begin')
      await holder.query('select from accounts where id = $1 for no key update', [party.accountId])
      const waiting = session.extend(extensionOf(call, 40n))
      await until(() => session.waits(pool), PATIENCE_MS, 'the wait for the lock')
      if (change === 'end') await holder.end(voidOf(call))
      else if (change === 'spend') await holder.begin(callOf(party, { hold: 75n }))
      else {
        await holder.query('update holds set amount = 80 where id = $1', [call.id])
        await holder.query('update accounts set held = 80 where id = $1', [party.accountId])
      }
      await holder.query('commit')
      const [growth] = await waiting
      assert.deepEqual([growth?.outcome, growth?.held], told)
      await agrees(party)
    })
  }
})

describe('what went wrong in other gateways', () => {
  it('trap: a reservation that some way of ending never gives back', async () => {
    const party = await makeParty(pool, 10_000n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 10_000n)
    const unsettle = (ago: string) => async (id: string) => {
      await pool.query('update holds set unsettled_at = clock_timestamp() - $2::interval where id = $1', [id, ago])
    }
    type Way = (call: Call) => Promise<unknown>
    const ways: Readonly<Record<string, Way>> = {
      posted: (call) => session.end(postOf(call, 7n)),
      'posted beyond its hold': (call) => session.end(postOf(call, 70n)),
      voided: (call) => session.end(voidOf(call)),
      forgiven: (call) => session.end({ ...postOf(call, 7n), forgiven: true }),
      'ended twice': (call) => session.end(postOf(call, 7n)).then(() => session.end(voidOf(call))),
      'ended with others': (call) => session.end(postOf(call, 7n), voidOf(callOf(party))),
      'ended late': (call) => unsettle('1 minute')(call.id).then(() => session.end(postOf(call, 7n))),
      'resolved by a charge': (call) => unsettle('1 minute')(call.id).then(() => resolveCall(pool, call.id, nanos(9n))),
      'resolved as void': (call) => unsettle('1 minute')(call.id).then(() => resolveCall(pool, call.id, null)),
      overdue: (call) => unsettle('2 days')(call.id).then(() => resolveOverdue({ pool, log: silentLog }, 86_400)),
    }
    for (const [way, end] of Object.entries(ways)) {
      const call = await begun(party, { hold: 10n, tokens: 5, windows: [TOKENS], allowances: [allowance] })
      assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 60n, 50))), ['extended'])
      await end(call)
      assert.equal(await heldBy(party), 0n, way)
      assert.equal((await periodsOf(pool, allowance))[0]?.held, 0n, way)
      assert.equal(await tokensOf(party), 0, way)
    }
    await agrees(party)
  })
})

describe('the tokens that an extension reserves', () => {
  it('count in the window that stands then, and what is not used is given back there alone', async () => {
    const party = await makeParty(pool, 100n)
    const call = await begun(party, { hold: 1n, tokens: 30, windows: [TOKENS] })
    await passTime(pool, party, 61)
    await begun(party, { hold: 1n, tokens: 40, windows: [TOKENS] })
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 1n, 91))), ['tokens_spent'])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 1n, 80))), ['extended'])
    assert.equal(await tokensOf(party), 90)
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(call, 1n, 90))), ['extended'])
    assert.equal(await tokensOf(party), 100)
    // 30 of the 75 count in the window that is over.
    await session.end(postOf(call, 1n, { outputTokens: 75 }))
    assert.equal(await tokensOf(party), 40 + 45)
  })

  it('are given back without those of others, where the call used less than it had reserved in a window that is over', async () => {
    for (const batch of [1, 2]) {
      const party = await makeParty(pool, 100n)
      const call = await begun(party, { hold: 1n, tokens: 50, windows: [TOKENS] })
      await passTime(pool, party, 61)
      const neighbour = await begun(party, { hold: 1n, tokens: 20, windows: [TOKENS] })
      await session.extend(extensionOf(call, 1n, 60))
      const endings = [postOf(call, 1n, { outputTokens: 10 }), postOf(neighbour, 1n, { outputTokens: 20 })]
      await session.end(...endings.slice(0, batch))
      assert.equal(await tokensOf(party), 20)
    }
  })

  it('begin a window where none stands, of which another is not begun by the next request', async () => {
    const party = await makeParty(pool, 100n)
    const call = await begun(party, { hold: 1n, tokens: 50, windows: [TOKENS] })
    await passTime(pool, party, 61)
    const [growth] = await session.extend(extensionOf(call, 1n, 120))
    assert.equal(growth?.outcome, 'extended')
    const window = await windowOf(pool, party, 'tokens')
    assert.deepEqual([window?.tokens, window?.requests, window?.started_at], [70n, 0, growth?.judgedAt])
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { tokens: 31, windows: [TOKENS] }))), [
      'tokens_spent',
    ])
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { tokens: 30, windows: [TOKENS] }))), ['begun'])
  })

  it('of a call that ends in a later window still change nothing there', async () => {
    const party = await makeParty(pool, 100n)
    const call = await begun(party, { hold: 1n, tokens: 10, windows: [TOKENS] })
    await passTime(pool, party, 61)
    await session.extend(extensionOf(call, 1n, 60))
    await passTime(pool, party, 61)
    await begun(party, { hold: 1n, tokens: 33, windows: [TOKENS] })
    await session.end(postOf(call, 1n, { outputTokens: 60 }))
    assert.equal(await tokensOf(party), 33)
  })
})
