import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createCaller } from './caller.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { History } from './history.ts'
import { restartMember } from './injector.ts'
import { makePeople } from './people.ts'
import { LEAVES_SLOWLY, requireUnharmed, startSteadyLoad } from './steady-load.ts'

/** The three gateways in turn: ten times all of them, or two of them once. */
const RESTARTS = count({ full: 30, reduced: 2 })
const PAUSE_MS = 300

/** Restarts one gateway after the other, round after round; how long the slowest took to stop and start. */
async function roll({ gateways }: Cluster) {
  let [restarts, slowestMs, inFlight, streams] = [0, 0, 0, 0]
  for (let round = 0; round < RESTARTS; round += 1) {
    const member = gateways[round % gateways.length]
    assert.ok(member !== undefined)
    const streaming = () => member.edge?.streaming() ?? 0
    await until(() => streaming() > 0, PATIENCE_MS, 'a stream of the gateway')
    const startedAtMs = performance.now()
    streams += streaming()
    inFlight += await restartMember(member)
    restarts += 1
    slowestMs = Math.max(slowestMs, performance.now() - startedAtMs)
    await delay(PAUSE_MS)
  }
  return { restarts, slowestMs: Math.round(slowestMs), inFlight, streams }
}

describe('rolling restarts under load, through a load balancer that repeats nothing', () => {
  it('trap: every graceful restart keeps its charges, and fails no request', async (test) => {
    const history = new History(`rolling-${seed}`)
    const cluster = await startCluster({
      folder: history.folder,
      seed,
      hasDisk: false,
      program: 'server/src/main.ts',
      balancerSeconds: 60,
      env: LEAVES_SLOWLY,
    })
    try {
      const [person] = await makePeople(cluster.pool)
      assert.ok(person !== undefined)
      const caller = createCaller(cluster.url, history)
      const stop = startSteadyLoad({ caller, person, seed })
      const figures = await roll(cluster)
      await stop()
      await caller.close()
      await requireUnharmed(history, cluster)
      assert.ok(figures.inFlight > 0, 'requests were under way at a restart')
      assert.ok(figures.streams > 0, 'streams were under way at a restart')

      const shown = { requests: history.operations.length, failed: 0, lost_charges: 0, ...figures }
      test.diagnostic(JSON.stringify(shown))
      recordProof('rolling-restarts', 'through HAProxy without retries', shown)
    } finally {
      await cluster.stop()
    }
    history.remove()
  })
})
