import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, postOf } from './session.ts'
import { BOOKED_HOURS } from './usage-rows.ts'
import { connect } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const USED = { inputTokens: 1, outputTokens: 20, cacheReadTokens: 300, cacheWriteTokens: 4_000, value: nanos(7n) }

/** The credential's usage over all hours: requests, failed ones, the four kinds of tokens, value and charge. */
async function usageOf({ credentialId }: Party): Promise<readonly bigint[]> {
  const { rows } = await pool.query<{ sums: readonly bigint[] }>(
    `select array[sum(requests), sum(failed_requests), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
       sum(cache_write_tokens), sum(value), sum(charged)]::bigint[] as sums
     from ${BOOKED_HOURS} booked where credential_id = $1`,
    [credentialId],
  )
  return rows[0]?.sums ?? []
}

async function begun() {
  const party = await makeParty(pool, 1_000n)
  const [first, second, third] = [1, 2, 3].map(() => callOf(party, { hold: 50n }))
  assert.ok(first && second && third)
  assert.deepEqual(await outcomesOf(session.begin(first, second, third)), ['begun', 'begun', 'begun'])
  return { party, first, second, third }
}

describe('usage', () => {
  it('is booked by the ending itself, for all calls of a batch', async () => {
    const { party, first, second, third } = await begun()
    await session.end(postOf(first, 10n, USED), postOf(second, 5n, { ...USED, failed: true }))
    await session.end(postOf(third, 1n, USED))
    assert.deepEqual(await usageOf(party), [3n, 1n, 3n, 60n, 900n, 12_000n, 21n, 16n])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is booked once for an ending that is sent again, alone or beside others', async () => {
    const { party, first, second, third } = await begun()
    await session.end(postOf(first, 10n, USED))
    assert.deepEqual(await outcomesOf(session.end(postOf(first, 10n, USED))), ['posted'])
    const one = [1n, 0n, 1n, 20n, 300n, 4_000n, 7n, 10n]
    assert.deepEqual(await usageOf(party), one)

    const batch = [postOf(second, 10n, USED), postOf(first, 10n, USED), postOf(third, 10n, USED)]
    assert.deepEqual(await outcomesOf(session.end(...batch)), ['posted', 'posted', 'posted'])
    assert.deepEqual(
      await usageOf(party),
      one.map((sum) => 3n * sum),
    )
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('counts what was charged, not what was overrun, and no call that was never executed or never begun', async () => {
    const { party, first, second } = await begun()
    const never = callOf(party)
    await session.end(postOf(first, 80n, USED), voidOf(second), voidOf(never), postOf(callOf(party), 9n, USED))
    assert.deepEqual(await usageOf(party), [1n, 0n, 1n, 20n, 300n, 4_000n, 7n, 50n])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is booked for each credential by itself', async () => {
    const [one, other] = [await begun(), await begun()]
    await session.end(postOf(one.first, 10n, USED), postOf(other.first, 20n), postOf(one.second, 10n, USED))
    assert.deepEqual(await usageOf(one.party), [2n, 0n, 2n, 40n, 600n, 8_000n, 14n, 20n])
    assert.deepEqual(await usageOf(other.party), [1n, 0n, 0n, 0n, 0n, 0n, 20n, 20n])
  })
})
