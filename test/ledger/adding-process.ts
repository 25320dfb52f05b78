import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { createCombining } from '../../server/src/ledger/combine-usage-days.ts'
import { connect } from './world.ts'

/** For tests, a process that adds up usage and combines it by day all the time, until it is killed. */
const PAUSE_MS = 2

const { pools } = connect(process.argv[2] ?? '')
const combining = createCombining(pools.rest, systemClock)
for (;;) {
  // Its connection may be ended under it: so it does what a worker does, and tries again.
  await addUpUsage(pools.rest).catch(() => {})
  await combining.tick().catch(() => {})
  await delay(PAUSE_MS)
}
