import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../../harness/figures.ts'
import { count, isFullProof, recordProof, seed } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { Random } from '../../../sandbox/src/random.ts'
import type { ShownPoll, ShownTask } from '../../../sandbox/src/upstreams/video-tasks.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { startInstallation } from '../installation.ts'
import { makeTasks, openTasks, startWorker, untilEnded, WITHOUT_WORKER } from './many-tasks.ts'
import { videoPolls, videoTasksByCall } from './sandbox-videos.ts'

/** The only process that looks after tasks is killed again and again: none gets stuck, none is settled twice. */
const PROOF = 'tasks-worker-kills'
const TASKS = count({ full: 1_000, reduced: 100 })
const KILLS = count({ full: 12, reduced: 3 })
const KILL_EVERY_MS = count({ full: 10_000, reduced: 6_000 })
/** Some end while it is dead, most when it has been killed for the last time. */
const RUNNING_MS = count({ full: 90_000, reduced: 16_000 })
const RUNNING_MOST_MS = count({ full: 180_000, reduced: 36_000 })
/** Within so long of its return every task has been asked for. */
const ROUND_MS = 10_000
const SETTLED_WITHIN_MS = 60_000
const PRICE = 500_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: WITHOUT_WORKER })
const { pool, sandbox, masterKey } = installation
after(installation.stop)
const random = new Random(seed)

type Charge = { readonly id: Id; readonly amount: bigint; readonly overrun: bigint; readonly at_ms: number }

/** How long it took until every task that was open all the while had been asked for. */
function roundMs(fromMs: number, tasks: Iterable<ShownTask>, polls: readonly ShownPoll[]): number {
  const firstMs = new Map<string, number>()
  for (const { task_id, at_ms } of polls) if (at_ms >= fromMs && !firstMs.has(task_id)) firstMs.set(task_id, at_ms)
  const open = [...tasks].filter(
    ({ created_at_ms, ended_at_ms }) =>
      created_at_ms < fromMs && (ended_at_ms ?? Number.POSITIVE_INFINITY) > fromMs + ROUND_MS,
  )
  return Math.max(0, ...open.map(({ task_id }) => (firstMs.get(task_id) ?? Number.POSITIVE_INFINITY) - fromMs))
}

describe('a worker that is killed again and again', () => {
  it(`TASK-5 leaves no task stuck and none settled twice (${TASKS} tasks, ${KILLS} kills, seed ${seed})`, async (test) => {
    let worker = await startWorker(database.url, masterKey)
    test.after(() => worker.stop())
    const wordsOf = () => `sandbox:running-ms=${random.between(RUNNING_MS, RUNNING_MOST_MS)}`
    // It is killed while they are made, too: however long that takes, some are open then.
    const making = makeTasks(installation, TASKS, wordsOf)
    const returnedAtMs: number[] = []
    let openAtKills = 0
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(KILL_EVERY_MS)
      openAtKills += await openTasks(pool)
      await worker.kill()
      worker = await startWorker(database.url, masterKey)
      returnedAtMs.push(Date.now())
    }
    const ids = await making
    assert.ok(openAtKills >= (isFullProof ? TASKS : 1), `${openAtKills} tasks were open as the worker was killed`)
    await untilEnded(pool, ids, RUNNING_MOST_MS + 2 * SETTLED_WITHIN_MS)

    const upstream = await videoTasksByCall(sandbox)
    const polls = await videoPolls(sandbox)
    const { rows } = await pool.query<Charge>(
      'select id, amount, overrun, (extract(epoch from ended_at) * 1000)::float8 as at_ms from charges where id = any ($1)',
      [ids],
    )
    assert.equal(rows.length, TASKS)
    for (const { id, amount, overrun } of rows) assert.deepEqual([amount, overrun], [PRICE, 0n], id)
    assert.equal(upstream.size, TASKS, 'none was made twice')
    for (const id of ids) assert.equal(upstream.get(id)?.usage_seconds, 5)
    const { rows: sums } = await pool.query(
      'select sum(charged) as charged, sum(held) as held from accounts where id in (select account_id from tasks)',
    )
    assert.deepEqual([BigInt(sums[0].charged), BigInt(sums[0].held)], [BigInt(TASKS) * PRICE, 0n])
    const { rowCount: corrections } = await pool.query('select from entries where corrects = any ($1)', [ids])
    assert.equal(corrections, 0)
    assert.deepEqual(await verifyLedger(pool), [])

    const roundsMs = returnedAtMs.map((atMs) => roundMs(atMs, upstream.values(), polls))
    const lateMs = rows.map(({ id, at_ms }) => at_ms - (upstream.get(id)?.ended_at_ms ?? Number.NaN))
    const shown = {
      tasks: TASKS,
      kills: KILLS,
      open_at_kills: openAtKills,
      polls: polls.length,
      stuck: 0,
      settled_twice: 0,
      longest_round_after_a_return_ms: Math.round(Math.max(...roundsMs)),
      longest_from_end_to_settlement_ms: Math.round(Math.max(...lateMs)),
    }
    test.diagnostic(JSON.stringify(shown))
    recordProof(PROOF, 'a worker killed', shown)
    const [asked, settled] = ['from a return until every open task is asked for', 'from an end to its settlement']
    judge(PROOF, asked, { unit: 'ms', atMost: ROUND_MS }, roundsMs)
    judge(PROOF, settled, { unit: 'ms', atMost: SETTLED_WITHIN_MS }, lateMs)
  })
})
