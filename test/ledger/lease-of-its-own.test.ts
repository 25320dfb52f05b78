import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { openOrphanWorld } from './mortal-orphans.ts'
import { composeProcess, SHORT_LEASES } from './mortal-process.ts'
import { callOf, makeParty, openSession } from './session.ts'

const RENEWALS = 6

it('a process keeps its lease while all its connections to money wait for accounts that somebody has locked', async () => {
  const world = await openOrphanWorld()
  const ours = composeProcess({ url: world.url, leases: SHORT_LEASES, beginDeadlineMs: 1_000 })
  await ours.start()
  const parties = []
  for (let at = 0; at < 40; at += 1) parties.push(await makeParty(world.pool, 1_000n))
  const locking = await openSession(world.url)
  await locking.query('begin')
  await locking.query('select from accounts for no key update')

  let isOver = false
  const callers = parties.map(async (party) => {
    // A call that is refused at once leaves the event loop its turn.
    for (; !isOver; await delay(1)) await ours.calls.begin(callOf(party, { id: ours.ids.next() })).catch(() => {})
  })
  const { money } = ours.pools
  const allWait = () => money.totalCount > 0 && money.idleCount === 0
  const leaseUntil = async () => {
    const { rows } = await world.pool.query('select lease_until::text as at from owners where id = $1', [ours.ownerId])
    return String(rows[0]?.at)
  }
  await until(allWait, PATIENCE_MS, 'the wait of all connections')
  for (let renewal = 0; renewal < RENEWALS; renewal += 1) {
    const before = await leaseUntil()
    await until(async () => (await leaseUntil()) !== before, PATIENCE_MS, 'the next renewal of the lease')
  }
  await until(allWait, PATIENCE_MS, 'the wait of all connections')
  assert.equal((await world.pool.query('select from holds')).rowCount, 0, 'nobody got in meanwhile')
  isOver = true
  await locking.query('rollback')
  await locking.close()
  await Promise.all(callers)
  await ours.stop()
  await world.close()
})
