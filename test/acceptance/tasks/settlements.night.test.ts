import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../../harness/figures.ts'
import { count, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { Random } from '../../../sandbox/src/random.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { makeCustomer, startInstallation } from '../installation.ts'
import { videoPolls, videoTasksByCall } from './sandbox-videos.ts'
import { type Answer, HELD, startTaskWorld } from './task-world.ts'
import { created, outputOf, poll, stored } from './video.ts'

/** A task is settled once, whoever hears of its end and however often anybody asks; and is settled though nobody asks. */
const PROOF = 'tasks-settlements'
const random = new Random(seed)

describe('many pollers that hear of the end of one task at once', () => {
  const POLLERS = 50
  const TASKS = count({ full: 60, reduced: 6 })
  /** Shorter than a poller waits for an answer. */
  const TOGETHER_WITHIN_MS = 3_000

  const usage = { output_video_duration: 5, SR: 720 }
  const url = 'https://files.example.com/a.mp4'
  /** What is reported, and what one settlement of it charges. */
  const ends = [
    ['SUCCEEDED', { video_url: url }, HELD],
    ['FAILED', { code: 'InternalError', message: 'No.' }, 0n],
    ['CANCELED', {}, HELD],
  ] as const

  it(`settle it once (${TASKS} tasks, ${POLLERS} pollers, seed ${seed})`, async (test) => {
    const world = await startTaskWorld((await freshDatabase()).url)
    test.after(world.stop)
    const { pool } = world
    const settlements = new Map<Id, number>()
    const pollers = Array.from({ length: POLLERS }, () =>
      world.startPoller({ ended: (id) => settlements.set(id, (settlements.get(id) ?? 0) + 1) }),
    )
    const together: number[] = []

    for (let at = 0; at < TASKS; at += 1) {
      const [state, more, charged] = ends[at % ends.length] ?? ends[0]
      const task = await world.begin()
      await world.handOver(task, random.chance(0.5) ? 'PENDING' : 'RUNNING')
      const released = Promise.withResolvers<void>()
      const answer = { output: { task_id: task.name, task_status: state, ...more }, usage }
      const said = released.promise.then((): Answer => ({ status: 200, body: JSON.stringify(answer) }))
      world.script(task.name, [said])
      // Nobody waits for the lease of another: all of them are made to ask for it, and are answered in the same moment.
      const startedMs = performance.now()
      let askers = 0
      for (const poller of pollers) {
        if (performance.now() - startedMs > TOGETHER_WITHIN_MS) break
        await world.makeDue([task])
        askers += await poller.tick()
      }
      await until(() => world.asked(task.name) >= askers, 1_000, 'that all of them ask').catch(() => {})
      released.resolve()
      await Promise.all(pollers.map((poller) => poller.idle()))
      together.push(askers)

      assert.equal(settlements.get(task.id), 1, `${state}: settled ${settlements.get(task.id)} times`)
      const row = await stored(pool, task.id)
      assert.deepEqual([row.state, row.charged, row.overrun, row.held, row.slots], [state, charged, 0n, null, 0])
      const { rows } = await pool.query('select charged, held from accounts where id = $1', [task.accountId])
      assert.deepEqual(rows, [{ charged, held: 0n }])
      const { rowCount } = await pool.query('select from entries where corrects = $1', [task.id])
      assert.equal(rowCount, 0, 'nothing was given back or booked again')
    }
    const most = Math.max(...together)
    assert.ok(most >= 2, `only ${most} asked at once`)
    sometimes(most >= POLLERS * 0.8, `four fifths ask at once (${most} of ${POLLERS})`)
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'pollers that hear of an end at once', {
      pollers: POLLERS,
      tasks: TASKS,
      reports_of_an_end: together.reduce((sum, one) => sum + one, 0),
      fewest_at_once: Math.min(...together),
      most_at_once: Math.max(...together),
      settlements: [...settlements.values()].reduce((sum, one) => sum + one, 0),
      settled_twice: 0,
    })
  })
})

describe('tasks in an installation', async () => {
  const database = await freshDatabase()
  const installation = await startInstallation(database.url)
  const { url, pool, sandbox } = installation
  after(installation.stop)

  it('TASK-5 polls of its caller bill nothing, before its end and after: one charge, and no question to the upstream', async () => {
    const POLLS = count({ full: 1_000, reduced: 200 })
    const { secret, accountId } = await makeCustomer(pool)
    const words = `sandbox:pending-ms=2500 sandbox:running-ms=${count({ full: 8_000, reduced: 6_000 })}`
    const id = await created(url, secret, { words, parameters: { duration: 5, resolution: '720P' } })
    const seen: Record<string, number> = {}
    for (let polls = 0; polls < POLLS || (seen.SUCCEEDED ?? 0) < POLLS / 4; polls += 1) {
      // As if a second had passed since its caller looked last.
      await pool.query('update tasks set reads_since = null where id = $1', [id])
      const told = await poll(url, secret, id)
      assert.equal(told.status, 200, told.text)
      assert.equal(told.costUsd, null)
      const state = String(outputOf(told).task_status)
      seen[state] = (seen[state] ?? 0) + 1
      assert.ok(polls < 100 * POLLS, 'it never ended')
    }
    for (const state of ['PENDING', 'RUNNING']) sometimes((seen[state] ?? 0) > 0, `the state ${state}`)
    const { rows } = await pool.query('select id, amount, outcome from charges where account_id = $1', [accountId])
    assert.deepEqual(rows, [{ id, amount: 500_000_000n, outcome: 'posted' }])
    const { rows: accounts } = await pool.query('select charged, held from accounts where id = $1', [accountId])
    assert.deepEqual(accounts, [{ charged: 500_000_000n, held: 0n }])
    const upstreamTask = (await videoTasksByCall(sandbox)).get(id)?.task_id
    const questions = (await videoPolls(sandbox)).filter(({ task_id }) => task_id === upstreamTask).length
    assert.ok(questions < 20, `${questions} questions to the upstream`)
    recordProof(PROOF, 'polls of a caller', {
      polls: Object.values(seen).reduce((sum, one) => sum + one, 0),
      seen,
      charges: rows.length,
      questions_to_the_upstream: questions,
    })
  })

  it('TASK-5 tasks that nobody polls are settled, whatever goes wrong on the way', async () => {
    const TASKS = count({ full: 60, reduced: 15 })
    const SETTLED_WITHIN_MS = 60_000
    const PLACES = 3
    const RUNNING_MOST_MS = count({ full: 20_000, reduced: 5_000 })
    const troubles = [
      '',
      'poll-429=2',
      'poll-fails=2',
      'poll-garbage=2',
      'poll-cuts=2',
      'poll-hangs=1',
      'unknown-ms=4000',
    ]
    const madeBy = async (at: number) => {
      const { secret } = await makeCustomer(pool)
      const own = Array.from({ length: Math.min(PLACES, TASKS - at) }, async (_, place) => {
        const trouble = troubles[(at + place) % troubles.length] ?? ''
        const words = `sandbox:running-ms=${random.between(0, RUNNING_MOST_MS)} ${trouble && `sandbox:${trouble}`}`
        return created(url, secret, { words, parameters: { duration: 5, resolution: '720P' } })
      })
      return Promise.all(own)
    }
    const all: Id[] = []
    for (let at = 0; at < TASKS; at += PLACES) all.push(...(await madeBy(at)))

    const isSettled = async () => {
      const { rows } = await pool.query(
        'select count(*)::integer as open from tasks where id = any ($1) and ended_at is null',
        [all],
      )
      await delay(200)
      return rows[0].open === 0
    }
    await until(isSettled, RUNNING_MOST_MS + 2 * SETTLED_WITHIN_MS, 'that all are settled')
    const upstream = await videoTasksByCall(sandbox)
    const { rows } = await pool.query<{ id: Id; amount: bigint; at_ms: number }>(
      'select id, amount, (extract(epoch from ended_at) * 1000)::float8 as at_ms from charges where id = any ($1)',
      [all],
    )
    assert.equal(rows.length, TASKS)
    for (const { id, amount } of rows) assert.equal(amount, 500_000_000n, id)
    const lateMs = rows
      .map(({ id, at_ms }) => at_ms - (upstream.get(id)?.ended_at_ms ?? Number.NaN))
      .toSorted((a, b) => a - b)
    const inTime = { unit: 'ms', atMost: SETTLED_WITHIN_MS } as const
    judge(PROOF, 'from the end of a task that nobody polls to its settlement', inTime, lateMs)
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'tasks that nobody polls', {
      tasks: TASKS,
      troubles: troubles.filter((one) => one !== ''),
      settled_after_end_ms: {
        least: Math.round(lateMs[0] ?? 0),
        middle: Math.round(lateMs[Math.floor(lateMs.length / 2)] ?? 0),
        most: Math.round(lateMs.at(-1) ?? 0),
      },
    })
  })
})
