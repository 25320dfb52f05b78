import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, isFullProof, recordProof, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ids, startInstallation } from '../installation.ts'
import { makeTasks, startWorker, WITHOUT_WORKER } from './many-tasks.ts'
import { videoPolls, videoTasksByCall } from './sandbox-videos.ts'

/** More tasks than an upstream lets us ask for: it is never asked more often than it wants, and nobody is forgotten. */
const PROOF = 'tasks-poll-quota'
const QUOTA = 20
/** PostgreSQL gives out the questions evenly; on their way some catch up with others, on a busy machine more so. */
const JITTER = 2
const USED_LEAST = 0.7
const TASKS = count({ full: 300, reduced: 100 })
const WORKERS = 3
const WATCHED_MS = count({ full: 90_000, reduced: 10_000 })
const SECOND_MS = 1_000
const OLD_SECONDS = 600
const ALL_ASKED_MS = 120_000

const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: WITHOUT_WORKER })
const { pool, sandbox, masterKey } = installation
after(installation.stop)

/** The most in any second, wherever it begins. */
function mostInASecond(timesMs: readonly number[]): number {
  let most = 0
  let first = 0
  for (const [at, timeMs] of timesMs.entries()) {
    while ((timesMs[first] ?? timeMs) <= timeMs - SECOND_MS) first += 1
    most = Math.max(most, at - first + 1)
  }
  return most
}

async function limitPolls(): Promise<void> {
  const { rows } = await pool.query("select id, base_url from upstreams where slot = 'video' and mode = 'test'")
  const { id, base_url: baseUrl } = rows[0]
  const parts = { pool, ids, seal: createSeal({ current: masterKey }) }
  await saveUpstream(parts, { id, slot: 'video', mode: 'test', kind: 'native', baseUrl, pollsPerSecond: QUOTA })
}

async function running(): Promise<number> {
  const { rows } = await pool.query("select count(*)::integer as running from tasks where state = 'RUNNING'")
  return rows[0].running
}

describe('an upstream that may be asked twenty times a second', () => {
  it(`is asked no more often by ${WORKERS} workers with ${TASKS} tasks`, async (test) => {
    await limitPolls()
    const made = await makeTasks(installation, TASKS, () => 'sandbox:running-ms=86000000')
    const old = new Set(made.slice(0, TASKS / 2))
    await pool.query(
      'update tasks set created_at = created_at - make_interval(secs => $2), is_young = false where id = any ($1)',
      [[...old], OLD_SECONDS],
    )
    const workers = await Promise.all(Array.from({ length: WORKERS }, () => startWorker(database.url, masterKey)))
    test.after(() => Promise.all(workers.map((worker) => worker.stop())))
    // All are due by then.
    await delay(2 * SECOND_MS)
    const fromMs = Date.now()
    await delay(WATCHED_MS)
    const toMs = Date.now()

    const upstream = await videoTasksByCall(sandbox)
    const polls = await videoPolls(sandbox)
    const most = mostInASecond(polls.map(({ at_ms }) => at_ms))
    const watched = polls.filter(({ at_ms }) => at_ms >= fromMs && at_ms < toMs)
    const used = watched.length / (QUOTA * ((toMs - fromMs) / SECOND_MS))
    const oldNames = new Set([...old].map((id) => upstream.get(id)?.task_id))
    const ofOld = watched.filter(({ task_id }) => oldNames.has(task_id))
    const askedFor = new Set(polls.map(({ task_id }) => task_id))
    const shown = {
      quota_per_second: QUOTA,
      workers: WORKERS,
      tasks: TASKS,
      polls: watched.length,
      seconds: Math.round((toMs - fromMs) / SECOND_MS),
      most_in_any_second: most,
      used: Math.round(used * 1_000) / 1_000,
      of_old_tasks: ofOld.length,
      of_young_tasks: watched.length - ofOld.length,
      old_tasks_asked_for: [...oldNames].filter((name) => askedFor.has(name ?? '')).length,
      young_tasks_asked_for: [...askedFor].filter((name) => !oldNames.has(name)).length,
    }
    test.diagnostic(JSON.stringify(shown))
    // Whatever was held up on its way was allowed in the second before.
    const allowed = QUOTA * ((toMs - fromMs) / SECOND_MS + 1)
    assert.ok(watched.length > 0 && watched.length <= allowed, `${watched.length} of ${allowed}`)
    if (isFullProof) {
      assert.ok(most <= QUOTA + JITTER, `${most} in a second`)
      assert.ok(used >= USED_LEAST, `${used} of the quota`)
    }
    // Where there is too little for all, young ones are asked for three times as often as old ones.
    const share = ofOld.length / watched.length
    sometimes(share > 1 / 8 && share < 1 / 2, `between an eighth and a half are for old ones (${share})`)
    await until(async () => (await running()) === TASKS, ALL_ASKED_MS, 'that none is forgotten')
    recordProof(PROOF, 'within the quota of an upstream', shown)
  })
})
