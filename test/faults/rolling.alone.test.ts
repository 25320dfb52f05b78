import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Caller, createCaller, Marks } from './caller.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { History } from './history.ts'
import { restartMember } from './injector.ts'
import { makePeople, type Person } from './people.ts'

/** Each of the three gateways in turn: ten times all of them, or once. */
const RESTARTS = count({ full: 30, reduced: 3 })
const CLIENTS = 12
const OPERATIONS = ['rerank', 'tag_detail', 'tweet_quotes', 'post_comments']
const PAUSE_MS = 300
const WRITTEN_WITHIN_MS = 5_000

/** Clients that never repeat anything, until they are told to stop. */
function startCalling(caller: Caller, marks: Marks, person: Person) {
  let isOver = false
  const [key] = person.keys
  assert.ok(key !== undefined)
  const live = async (client: number) => {
    const random = new Random(seed + client)
    while (!isOver) {
      const mark = marks.make()
      const operation = OPERATIONS[random.between(0, OPERATIONS.length - 1)] ?? 'rerank'
      const request = marks.request(operation, mark, `sandbox:delay=${random.between(0, 400)}`)
      await caller.ask({ client: `client ${client}`, what: 'call', person, key, mark, ...request })
      await delay(random.between(0, 30))
    }
  }
  const lives = Promise.all(Array.from({ length: CLIENTS }, (_, client) => live(client)))
  return async () => {
    isOver = true
    await lives
  }
}

/** Restarts one gateway after the other, round after round; how long the slowest took to stop and start. */
async function roll({ gateways }: Cluster): Promise<{ restarts: number; slowestMs: number; inFlight: number }> {
  let [restarts, slowestMs, inFlight] = [0, 0, 0]
  for (let round = 0; round < RESTARTS; round += 1) {
    const member = gateways[round % gateways.length]
    assert.ok(member !== undefined)
    const startedAtMs = performance.now()
    inFlight += await restartMember(member)
    restarts += 1
    slowestMs = Math.max(slowestMs, performance.now() - startedAtMs)
    await delay(PAUSE_MS)
  }
  return { restarts, slowestMs: Math.round(slowestMs), inFlight }
}

describe('rolling restarts under load, through a load balancer that repeats nothing', () => {
  it('trap: every graceful restart keeps its charges, and fails no request', async (test) => {
    const history = new History(`rolling-${seed}`)
    const cluster = await startCluster({
      folder: history.folder,
      seed,
      hasDisk: false,
      program: 'server/src/main.ts',
    })
    try {
      const [person] = await makePeople(cluster.pool)
      assert.ok(person !== undefined)
      const caller = createCaller(cluster.url, history)
      const marks = new Marks()
      const stop = startCalling(caller, marks, person)
      const figures = await roll(cluster)
      await stop()
      await caller.close()

      const failed = history.operations.filter(({ outcome }) => outcome !== 'ok')
      assert.deepEqual(
        failed.map(({ n, told }) => ({ n, ...told })),
        [],
      )
      const { rows } = await cluster.pool.query<{ id: string; amount: bigint }>('select id, amount from charges')
      const charges = new Map(rows.map(({ id, amount }) => [id, amount]))
      const lost = history.operations.filter(({ told }) => charges.get(told.id ?? '') !== told.costNanos)
      assert.deepEqual(lost, [], 'charges that callers were told of')
      assert.equal(charges.size, history.operations.length, 'one charge for each call, and none beside')
      const journal = await cluster.upstream.journal()
      assert.equal(journal.length, history.operations.length, 'one upstream call for each')
      assert.equal((await cluster.pool.query('select from holds')).rowCount, 0)
      assert.deepEqual(await verifyLedger(cluster.pool), [])
      // Records are written a moment behind the answers.
      const records = async () => (await cluster.pool.query('select from request_records')).rowCount
      const areWritten = async () => (await records()) === history.operations.length
      await until(areWritten, WRITTEN_WITHIN_MS, `that ${history.operations.length} records are written`)
      assert.ok(figures.inFlight > 0, 'requests were under way at a restart')

      const shown = { requests: history.operations.length, failed: 0, lost_charges: 0, ...figures }
      test.diagnostic(JSON.stringify(shown))
      recordProof('rolling-restarts', 'through HAProxy without retries', shown)
      history.remove()
    } finally {
      await cluster.stop()
    }
  })
})
