import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../../harness/gateways.ts'
import { isFullProof, recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { resolveCall, resolveOverdue } from '../../../server/src/calls/orphans.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { attachTask } from '../../../server/src/tasks/operate.ts'
import { expireTasks } from '../../../server/src/tasks/upkeep.ts'
import { silentLog } from '../../../server/src/telemetry/log.ts'
import { type Customer, codeOf, makeCustomer, startInstallation } from '../installation.ts'
import { videoTasksByCall } from './sandbox-videos.ts'
import { cancel, createTask, outputOf, poll, stored, untilStored } from './video.ts'

/**
 * Nobody can say whether the upstream has made a video: its answer is lost, says nothing, or our process is gone. It is
 * never made again, and stays as it is until somebody who knows says what became of it.
 */
const PROOF = 'tasks-ambiguous-create'
const PRICE = 500_000_000n
const WANTED = { duration: 5, resolution: '720P' }
/** So long nobody tries again. */
const WATCHED_MS = 15_000
const FOUND_WITHIN_MS = 120_000
const DAY_SECONDS = 24 * 3_600

/** Each has made a task. Those that hang are given up after 30 and 60 seconds. */
const WAYS = [
  'reset=before-headers',
  'close-early',
  'reset=in-body',
  'truncate',
  'garbage',
  'empty',
  'html',
  // A proxy before the upstream waits no longer, or has lost it.
  'status=504 sandbox:done-anyway sandbox:html',
  'status=502 sandbox:done-anyway sandbox:html',
  'status=503 sandbox:done-anyway sandbox:html',
  'status=408 sandbox:done-anyway sandbox:html',
  ...(isFullProof ? ['hang=body', 'hang=headers'] : []),
] as const

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2, env: { FAREBOX_LOG_LEVEL: 'silent' } })
const { url, pool, sandbox } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})

type Lost = { readonly way: string; readonly customer: Customer; readonly id: Id }

async function lose(way: string): Promise<Lost> {
  const customer = await makeCustomer(pool)
  const told = await createTask(url, customer.secret, { words: `sandbox:${way}`, parameters: WANTED })
  assert.equal(told.status, 200, `${way}: ${told.text}`)
  assert.deepEqual(outputOf(told), { task_id: told.id, task_status: 'PENDING' }, way)
  assert.equal(told.json.request_id, told.id)
  return { way, customer, id: told.id }
}

/** Its process is killed between the upstream's making of it and our knowing of that. */
async function loseWithProcess(): Promise<Lost> {
  const way = 'kill -9'
  const customer = await makeCustomer(pool)
  const victim = team[1]
  assert.ok(victim)
  const before = new Set((await videoTasksByCall(sandbox)).keys())
  const asked = createTask(victim.url, customer.secret, { words: 'sandbox:delay=30000', parameters: WANTED })
  const answer = asked.then(
    ({ status }) => `answered ${status}`,
    () => 'cut',
  )
  const made = async () => [...(await videoTasksByCall(sandbox)).keys()].find((one) => !before.has(one))
  await until(async () => (await made()) !== undefined, PATIENCE_MS, 'that the upstream makes it')
  const id = (await made()) ?? ''
  await victim.kill()
  assert.equal(await answer, 'cut')
  assert.equal((await stored(pool, id)).state, 'CREATING')
  team[1] = await victim.restart()
  await until(async () => (await stored(pool, id)).is_unsettled, FOUND_WITHIN_MS, 'that it is found')
  return { way, customer, id }
}

/** What is true of each of them as long as nobody has said more. */
async function isLeftAlone({ way, customer, id }: Lost): Promise<void> {
  const journal = await sandbox.journal()
  const creates = journal.filter(({ request_id, method }) => request_id === id && method === 'POST')
  assert.equal(creates.length, 1, `${way}: asked ${creates.length} times`)
  const row = await stored(pool, id)
  assert.deepEqual(
    [row.state, row.held, row.is_unsettled, row.charged, row.slots, row.is_asked_for],
    ['CREATING', PRICE, true, null, 1, false],
    way,
  )
  const told = await poll(url, customer.secret, id)
  assert.equal(told.status, 200)
  assert.equal(outputOf(told).task_status, 'PENDING', way)
  const refused = await cancel(url, customer.secret, id)
  assert.equal(codeOf(refused), 'task_not_cancelable', refused.text)
}

const RESOLUTIONS = {
  attached: async ({ id }: Lost) => {
    const name = (await videoTasksByCall(sandbox)).get(id)?.task_id
    assert.ok(name, 'the upstream has made it')
    const { rows } = await pool.query<{ id: Id }>("select id from upstreams where slot = 'video' and mode = 'test'")
    // Two operators at once do no harm.
    const attach = () => attachTask(pool, { id, upstreamId: rows[0]?.id ?? '', name })
    await Promise.all([attach(), attach()])
    return { ...(await untilStored(pool, id, 'SUCCEEDED')), expected: [PRICE, 0n] }
  },
  voided: async ({ id }: Lost) => {
    const outcomes = await Promise.all([resolveCall(pool, id, null), resolveCall(pool, id, null)])
    assert.equal(outcomes.filter((one) => one?.outcome === 'voided').length, 1)
    return { ...(await untilStored(pool, id, 'FAILED')), expected: [0n, 0n] }
  },
  overdue: async ({ id }: Lost) => {
    await pool.query("update tasks set created_at = created_at - interval '25 hours' where id = $1", [id])
    await pool.query("update holds set unsettled_at = unsettled_at - interval '25 hours' where id = $1", [id])
    await Promise.all([
      expireTasks({ pool, log: silentLog }, DAY_SECONDS),
      resolveOverdue({ pool, log: silentLog }, DAY_SECONDS),
    ])
    return { ...(await untilStored(pool, id, 'UNKNOWN')), expected: [0n, PRICE] }
  },
} as const

const KINDS = ['attached', 'voided', 'overdue'] as const

async function paidBy({ accountId }: Customer): Promise<unknown> {
  const { rows } = await pool.query('select charged, held from accounts where id = $1', [accountId])
  return rows[0]
}

describe('a create call of which nobody knows the outcome', () => {
  it('TASK-1 TASK-5 is told as PENDING, is never made again, and waits for somebody who knows', async () => {
    // The upstream hangs up on one after the other; together they would open its breaker.
    const lost: Lost[] = []
    for (const way of WAYS) lost.push(await lose(way))
    lost.push(await loseWithProcess())
    await delay(WATCHED_MS)
    for (const one of lost) await isLeftAlone(one)
    const upstream = await videoTasksByCall(sandbox)
    for (const { id, way } of lost) assert.ok(upstream.has(id), `${way}: the upstream has made it`)
    assert.equal(upstream.size, lost.length, 'one of each')

    const resolved = { attached: 0, voided: 0, overdue: 0 }
    for (const [at, one] of lost.entries()) {
      const kind = KINDS[at % KINDS.length] ?? 'voided'
      const { charged, overrun, held, slots, is_unsettled, expected } = await RESOLUTIONS[kind](one)
      assert.deepEqual([charged, overrun], expected, `${one.way} ${kind}`)
      assert.deepEqual([held, slots, is_unsettled], [null, 0, false], `${one.way} ${kind}`)
      assert.deepEqual(await paidBy(one.customer), { charged, held: 0n })
      // Its place is free, and what was resolved is final.
      assert.equal(await resolveCall(pool, one.id, null), undefined)
      resolved[kind] += 1
    }
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'create calls without a known outcome', {
      ways: lost.map(({ way }) => way),
      watched_seconds: WATCHED_MS / 1_000,
      create_calls_to_the_upstream: upstream.size,
      made_twice: 0,
      resolved,
    })
  })
})
