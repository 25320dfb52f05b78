import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { openOrphanWorld } from './mortal-orphans.ts'
import { composeProcess, SHORT_LEASES } from './mortal-process.ts'
import { callOf, makeParty, openSession } from './session.ts'

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
  const left: number[] = []
  for (let look = 0; look < 12; look += 1) {
    await delay(500)
    const { rows } = await world.pool.query(
      'select extract(epoch from lease_until - clock_timestamp())::float8 as seconds from owners where id = $1',
      [ours.ownerId],
    )
    left.push(rows[0]?.seconds ?? 0)
  }
  isOver = true
  await locking.query('rollback')
  await locking.close()
  await Promise.all(callers)
  await ours.stop()
  await world.close()
  assert.ok(Math.min(...left) > 0, `the lease had ended: ${left}`)
})
