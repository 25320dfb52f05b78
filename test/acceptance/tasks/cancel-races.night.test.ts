import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { Random } from '../../../sandbox/src/random.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { codeOf, makeCustomer, startInstallation } from '../installation.ts'
import { videoTasksByCall } from './sandbox-videos.ts'
import { cancel, created } from './video.ts'

/** Cancels that arrive around the end of a task. Whoever comes first at the upstream has won, and nobody else decides. */
const PROOF = 'tasks-cancel'
const KEYS = count({ full: 100, reduced: 16 })
const PLACES = 3
const WORKERS = 8
const PENDING_MS = { least: 2_500, most: 6_000 }
/**
 * So far before or after the moment in which it can no longer be canceled. Some come long before it, so that there are such
 * on a machine that is late.
 */
const AROUND_MS = 250
const LONG_BEFORE_MS = 2_000
const SETTLED_WITHIN_MS = 120_000
/** What a canceled one has used where it says so: two of its five seconds. */
const PER_SECOND = 100_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2, env: { FAREBOX_LOG_LEVEL: 'silent' } })
const { gateways, pool, sandbox } = installation
after(installation.stop)
const random = new Random(seed)
const anyUrl = () => gateways[random.between(0, gateways.length - 1)]?.url ?? ''

/** Their answers are lost after they were done, or they are not done and are told so, or all goes well. */
const TROUBLES = ['', '', '', 'sandbox:cancel-cuts=1', 'sandbox:cancel-fails=1'] as const

type Raced = { readonly id: Id; readonly codes: readonly unknown[]; readonly reportsUse: boolean }

/** Makes a task and cancels it twice at once, through either process, near its end. */
async function raceOne(secret: string): Promise<Raced> {
  const pendingMs = random.between(PENDING_MS.least, PENDING_MS.most)
  const reportsUse = random.chance(0.5)
  const trouble = TROUBLES[random.between(0, TROUBLES.length - 1)]
  const use = reportsUse ? 'sandbox:canceled-seconds=2' : ''
  const words = `sandbox:pending-ms=${pendingMs} sandbox:running-ms=0 ${use} ${trouble}`
  const id = await created(anyUrl(), secret, { words, parameters: { duration: 5, resolution: '720P' } })
  const madeAtMs = (await videoTasksByCall(sandbox)).get(id)?.created_at_ms ?? Number.NaN
  const aroundMs = random.chance(0.25) ? -LONG_BEFORE_MS : random.between(-AROUND_MS, AROUND_MS)
  await delay(Math.max(0, madeAtMs + pendingMs - Date.now() + aroundMs))
  const told = await Promise.all([cancel(anyUrl(), secret, id), cancel(anyUrl(), secret, id)])
  return { id, codes: told.map((one) => (one.status === 200 ? 'accepted' : codeOf(one))), reportsUse }
}

type Row = { readonly id: Id; readonly state: string; readonly amount: bigint; readonly overrun: bigint }

async function settled(all: readonly Raced[]): Promise<ReadonlyMap<Id, Row>> {
  const { rows } = await pool.query<Row>(
    'select id, state, amount, overrun from tasks join charges using (id) where id = any ($1)',
    [all.map(({ id }) => id)],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

describe('cancels that arrive around the end of a task', () => {
  it(`TASK-9 TASK-5 leave one outcome, the upstream's, and its charge (${KEYS * PLACES} tasks, seed ${seed})`, async (test) => {
    let left = KEYS
    const all: Raced[] = []
    const work = async () => {
      while (left > 0) {
        left -= 1
        const { secret } = await makeCustomer(pool)
        all.push(...(await Promise.all(Array.from({ length: PLACES }, () => raceOne(secret)))))
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, () => work()))
    const areSettled = async () => {
      await delay(100)
      return (await settled(all)).size === all.length
    }
    await until(areSettled, SETTLED_WITHIN_MS, 'that all are settled')

    const upstream = await videoTasksByCall(sandbox)
    const rows = await settled(all)
    const figures: Record<string, number> = { SUCCEEDED: 0, CANCELED: 0, CANCELED_with_use: 0 }
    const answers: Record<string, number> = {}
    for (const { id, codes, reportsUse } of all) {
      const there = upstream.get(id)
      const row = rows.get(id)
      assert.equal(row?.state, there?.state, `${id} ${JSON.stringify(codes)}`)
      const used = row?.state === 'SUCCEEDED' ? 5n : reportsUse ? 2n : 0n
      assert.equal(there?.usage_seconds ?? 0, Number(used), 'what the upstream charges us for')
      assert.deepEqual([row?.amount, row?.overrun], [used * PER_SECOND, 0n], `${id} ${row?.state}`)
      const name = row?.state === 'CANCELED' && reportsUse ? 'CANCELED_with_use' : (row?.state ?? '')
      figures[name] = (figures[name] ?? 0) + 1
      for (const code of codes) answers[String(code)] = (answers[String(code)] ?? 0) + 1
    }
    const { CANCELED = 0, CANCELED_with_use = 0 } = figures
    assert.ok(CANCELED + CANCELED_with_use > 0)
    for (const [name, times] of Object.entries(figures)) sometimes(times > 0, `some end as ${name}`)
    assert.equal(upstream.size, all.length, 'none was made twice')
    const { rows: taken } = await pool.query("select count(*)::integer as places from claims where scope = 'tasks'")
    assert.deepEqual(taken, [{ places: 0 }])
    assert.deepEqual(await verifyLedger(pool), [])
    const shown = { tasks: all.length, cancels: all.length * 2, ended_as: figures, cancels_answered: answers }
    test.diagnostic(JSON.stringify(shown))
    recordProof(PROOF, 'cancels around the end', { ...shown, disagreements_with_the_upstream: 0 })
  })
})
