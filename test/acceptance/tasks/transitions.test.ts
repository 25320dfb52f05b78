import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import type { Call } from '../../../server/src/calls/call.ts'
import { type Calls, voidOf } from '../../../server/src/calls/calls.ts'
import { resolveCall, resolveOverdue } from '../../../server/src/calls/orphans.ts'
import { VIDEO_TASKS } from '../../../server/src/gateway/plans/video-tasks.ts'
import { systemClock } from '../../../server/src/kernel/clock.ts'
import { nanos } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { settlingOf } from '../../../server/src/tasks/settle.ts'
import { expireTasks, expireUnknownTasks } from '../../../server/src/tasks/upkeep.ts'
import { silentLog } from '../../../server/src/telemetry/log.ts'
import { connect } from '../../ledger/world.ts'
import { type Answer, HELD, startTaskWorld, type Task, TERMS } from './task-world.ts'
import { stored } from './video.ts'

/**
 * Every state of a task against everything that an upstream may say of it, and against everybody who may speak for it: the
 * state, the money and the place afterwards.
 */
const PROOF = 'tasks-transitions'
const DAY_SECONDS = 24 * 3_600
const ASKED_WITHIN_MS = 180_000

const database = await freshDatabase()
const world = await startTaskWorld(database.url)
const { pool, calls } = world
after(world.stop)
const poller = world.startPoller()

const okay = (body: unknown): Answer => ({ status: 200, body: JSON.stringify(body) })
const URL = 'https://files.example.com/a.mp4'
const said = (name: string, task_status: string, more: object = {}, usage?: unknown): Answer =>
  okay({ output: { task_id: name, task_status, ...more }, ...(usage !== undefined && { usage }) })
const seconds = (output_video_duration: number, more: object = {}) => ({ output_video_duration, SR: 720, ...more })

/** What an upstream may say of a task. */
const REPORTS = {
  PENDING: (name) => said(name, 'PENDING'),
  RUNNING: (name) => said(name, 'RUNNING'),
  SUSPENDED: (name) => said(name, 'SUSPENDED'),
  SUCCEEDED: (name) => said(name, 'SUCCEEDED', { video_url: URL }, seconds(5)),
  'SUCCEEDED without usage': (name) => said(name, 'SUCCEEDED', { video_url: URL }),
  'SUCCEEDED with more than was held': (name) => said(name, 'SUCCEEDED', { video_url: URL }, seconds(9)),
  'SUCCEEDED beyond all belief': (name) =>
    said(name, 'SUCCEEDED', { video_url: URL }, seconds(1_000_000, { video_count: 1_000_000 })),
  'SUCCEEDED without an address': (name) => said(name, 'SUCCEEDED', {}, seconds(5)),
  FAILED: (name) => said(name, 'FAILED', { code: 'InternalError', message: 'No.' }),
  'FAILED with usage': (name) => said(name, 'FAILED', { code: '\ud800\0', message: 5 }, seconds(5)),
  CANCELED: (name) => said(name, 'CANCELED'),
  'CANCELED with usage': (name) => said(name, 'CANCELED', {}, seconds(2)),
  UNKNOWN: (name) => said(name, 'UNKNOWN'),
  'a state that nobody knows': (name) => said(name, 'ARCHIVED'),
  "another task's end": () => said('job-of-another', 'SUCCEEDED', { video_url: URL }, seconds(5)),
  garbage: () => ({ status: 200, body: '<html>' }),
  nothing: () => ({ status: 200, body: '' }),
  404: (name) => ({ status: 404, body: JSON.stringify({ output: { task_id: name, task_status: 'FAILED' } }) }),
  429: () => ({ status: 429, body: '{"code":"Throttling"}' }),
  500: (name) => ({ status: 500, body: JSON.stringify({ output: { task_id: name, task_status: 'SUCCEEDED' } }) }),
  'a reset': () => 'reset',
} satisfies Record<string, (name: string) => Answer>

/** What is known of a task beside who has it. */
const HELD_TASK = { model: 'wan', slot: 'video', mode: 'test', terms: TERMS, created_at: new Date() } as const

type Report = keyof typeof REPORTS
const NAMES = Object.keys(REPORTS) as Report[]

const goesOn = (state: string) => ({ state, held: HELD, charged: null, overrun: null, slots: 1, is_asked_for: true })
const ended = (state: string, charged: bigint, overrun = 0n) => ({
  ...{ state, charged, overrun },
  ...{ held: null, slots: 0, is_asked_for: false },
})

/** What a final report makes of a task that goes on. */
const ENDS: Partial<Record<Report, ReturnType<typeof ended>>> = {
  SUCCEEDED: ended('SUCCEEDED', HELD),
  'SUCCEEDED without usage': ended('SUCCEEDED', 0n, HELD),
  'SUCCEEDED with more than was held': ended('SUCCEEDED', HELD, 400_000_000n),
  // Our loss is what it claims, as far as PostgreSQL can write that down.
  'SUCCEEDED beyond all belief': ended('SUCCEEDED', HELD, 2n ** 63n - 1n - HELD),
  // A video that nobody can have was not made.
  'SUCCEEDED without an address': ended('FAILED', 0n),
  FAILED: ended('FAILED', 0n),
  'FAILED with usage': ended('FAILED', 0n),
  CANCELED: ended('CANCELED', 0n),
  'CANCELED with usage': ended('CANCELED', 200_000_000n),
}

async function look({ id }: Pick<Task, 'id'>) {
  const { state, held, charged, overrun, slots, is_asked_for } = await stored(pool, id)
  return { state, held, charged, overrun, slots, is_asked_for }
}

const tableOf = async (tasks: ReadonlyMap<Report, Task>) =>
  Object.fromEntries(await Promise.all([...tasks].map(async ([report, task]) => [report, await look(task)] as const)))

/** A task for every report, each known to the upstream. */
async function makeTasks(state: 'PENDING' | 'RUNNING'): Promise<ReadonlyMap<Report, Task>> {
  const tasks = new Map<Report, Task>()
  for (const report of NAMES) {
    const task = await world.begin()
    await world.handOver(task, state)
    tasks.set(report, task)
  }
  return tasks
}

async function askFor(tasks: readonly Task[], by = poller): Promise<void> {
  const before = new Map(tasks.map((task) => [task, world.asked(task.name)]))
  await world.makeDue(tasks)
  await by.tick()
  const isAsked = () => tasks.every((task) => world.asked(task.name) > (before.get(task) ?? 0))
  await until(isAsked, ASKED_WITHIN_MS, 'that the upstream is asked')
}

let cells = 0

describe('a task of which its upstream speaks', () => {
  for (const from of ['PENDING', 'RUNNING'] as const)
    it(`TASK-5 while it is ${from}: only a whole final report ends it, with its money and its place`, async () => {
      const tasks = await makeTasks(from)
      for (const [report, { name }] of tasks) world.script(name, [REPORTS[report](name)])
      await askFor([...tasks.values()])
      await poller.idle()
      const expected = Object.fromEntries(
        NAMES.map((report) => [report, ENDS[report] ?? goesOn(report === 'RUNNING' ? 'RUNNING' : from)]),
      )
      assert.deepEqual(await tableOf(tasks), expected)
      cells += NAMES.length
    })

  it('while it is CREATING nobody is asked, and nothing changes', async () => {
    const task = await world.begin()
    await pool.query('update tasks set next_poll_at = null where id = $1', [task.id])
    const asked = world.asked(task.name)
    await poller.tick()
    await poller.idle()
    assert.equal(world.asked(task.name), asked)
    assert.deepEqual(await look(task), { ...goesOn('CREATING'), is_asked_for: false })
    await assert.rejects(
      pool.query('update tasks set next_poll_at = clock_timestamp() where id = $1', [task.id]),
      /someone_is_asked/,
    )
    cells += 1
  })
})

describe('a poller', () => {
  it('looks less often once nothing has come up for longer than any open task stays away, and often again when something does', async () => {
    let nowMs = 0
    const own = world.startPoller({ clock: { ...systemClock, monotonicMs: () => nowMs } })
    nowMs = 14_999
    assert.equal(own.pauseMs(), 100)
    nowMs = 15_000
    assert.equal(own.pauseMs(), 500)
    const task = await world.begin()
    await world.handOver(task, 'PENDING')
    world.script(task.name, [REPORTS.CANCELED(task.name)])
    await askFor([task], own)
    assert.equal(own.pauseMs(), 100)
    await own.idle()
  })
})

describe('the times of a task', () => {
  const MINUTE_MS = 60_000
  const textOf = (atMs: number) => new Date(atMs).toISOString().slice(0, 23).replace('T', ' ')

  /** Its row after a report by an upstream that is an hour behind UTC, with times in milliseconds after its creation. */
  async function timesAfter(scheduledMs: number | undefined, endedMs: number | undefined) {
    const task = await world.begin()
    await world.handOver(task, 'PENDING')
    // Long enough ago for all of it to have happened.
    const { rows } = await pool.query(
      `update tasks set created_at = date_trunc('milliseconds', clock_timestamp() - interval '3 hours') where id = $1 returning created_at`,
      [task.id],
    )
    const createdMs = Number(rows[0]?.created_at)
    const told = (ms: number | undefined) => (ms === undefined ? undefined : textOf(createdMs - 60 * MINUTE_MS + ms))
    const times = { submit_time: told(40), scheduled_time: told(scheduledMs), end_time: told(endedMs) }
    world.script(task.name, [said(task.name, 'SUCCEEDED', { video_url: URL, ...times }, seconds(5))])
    const fromMs = Date.now()
    await askFor([task])
    await poller.idle()
    const ended = await pool.query('select scheduled_at, ended_at from tasks where id = $1', [task.id])
    const { scheduled_at, ended_at } = ended.rows[0]
    const sinceMs = (time: Date | null) => time && Number(time) - createdMs
    return { scheduled: sinceMs(scheduled_at), ended: Number(ended_at) >= fromMs ? 'noticed' : sinceMs(ended_at) }
  }

  for (const [how, scheduledMs, endedMs, expected] of [
    ['as told', 170 * MINUTE_MS, 175 * MINUTE_MS, { scheduled: 170 * MINUTE_MS, ended: 175 * MINUTE_MS }],
    ['when we noticed where nothing is told', undefined, undefined, { scheduled: null, ended: 'noticed' }],
    ['within its life', -5 * MINUTE_MS, 175 * MINUTE_MS, { scheduled: 0, ended: 175 * MINUTE_MS }],
    ['not before it began', 175 * MINUTE_MS, 170 * MINUTE_MS, { scheduled: 175 * MINUTE_MS, ended: 'noticed' }],
    ['not in the future', 170 * MINUTE_MS, 999 * MINUTE_MS, { scheduled: 170 * MINUTE_MS, ended: 'noticed' }],
    // It is kept for its caller from its end on.
    ['not long ago', 10 * MINUTE_MS, 20 * MINUTE_MS, { scheduled: 10 * MINUTE_MS, ended: 'noticed' }],
  ] as const)
    it(`TASK-2 are ${how}`, async () => {
      assert.deepEqual(await timesAfter(scheduledMs, endedMs), expected)
    })
})

/** How a task comes to its state while an answer about it is still under way. */
const MEANWHILE: Readonly<Record<string, (tasks: readonly Task[]) => Promise<void>>> = {
  RUNNING: by('RUNNING'),
  SUCCEEDED: by('SUCCEEDED'),
  FAILED: by('FAILED'),
  CANCELED: by('CANCELED with usage'),
  UNKNOWN: async (tasks) => {
    await makeOld(tasks)
    assert.equal(await expireTasks({ pool, log: silentLog }, DAY_SECONDS), tasks.length)
    // Each has an account of its own, and the audit log has a row for each account.
    const { rows } = await pool.query(
      "select subject, after ->> 'calls' as calls from audit where action = 'calls.voided' and subject = any ($1)",
      [tasks.map(({ accountId }) => accountId)],
    )
    const told = rows.map(({ subject, calls }) => [subject, JSON.parse(calls)]).toSorted()
    assert.deepEqual(told, tasks.map(({ accountId, id }) => [accountId, [id]]).toSorted())
  },
}

function by(report: Report) {
  return async (tasks: readonly Task[]) => {
    const other = world.startPoller()
    for (const { name } of tasks) world.script(name, [REPORTS[report](name)])
    await askFor(tasks, other)
    await other.idle()
  }
}

async function makeOld(tasks: readonly Pick<Task, 'id'>[]): Promise<void> {
  const given = [tasks.map(({ id }) => id)]
  await pool.query("update tasks set created_at = created_at - interval '25 hours' where id = any ($1)", given)
  await pool.query("update holds set unsettled_at = unsettled_at - interval '25 hours' where id = any ($1)", given)
}

const BEFORE: Readonly<Record<string, ReturnType<typeof ended> | ReturnType<typeof goesOn>>> = {
  RUNNING: goesOn('RUNNING'),
  SUCCEEDED: ended('SUCCEEDED', HELD),
  FAILED: ended('FAILED', 0n),
  CANCELED: ended('CANCELED', 200_000_000n),
  UNKNOWN: ended('UNKNOWN', 0n, HELD),
}

describe('an answer that comes late', () => {
  for (const [state, bring] of Object.entries(MEANWHILE))
    it(`about a task that is ${state} by then ${state === 'RUNNING' ? 'does not make it wait again' : 'changes nothing'}`, async () => {
      const tasks = await makeTasks('PENDING')
      const late = Promise.withResolvers<void>()
      for (const [report, { name }] of tasks)
        world.script(name, [late.promise.then(() => REPORTS[report](name)), { status: 404, body: '' }])
      await askFor([...tasks.values()])
      await bring([...tasks.values()])
      const expected = Object.fromEntries(NAMES.map((report) => [report, BEFORE[state]]))
      assert.deepEqual(await tableOf(tasks), expected, 'before the answer')
      late.resolve()
      await poller.idle()
      const after = Object.fromEntries(
        NAMES.map((report) => [report, state === 'RUNNING' ? (ENDS[report] ?? BEFORE[state]) : BEFORE[state]]),
      )
      assert.deepEqual(await tableOf(tasks), after)
      cells += NAMES.length
    })
})

describe('a task that has ended', () => {
  for (const [state, bring] of Object.entries(MEANWHILE).filter(([name]) => name !== 'RUNNING'))
    it(`as ${state} stays so, whoever says otherwise, and its caller pays no more`, async () => {
      const task = await world.begin()
      await world.handOver(task, 'PENDING')
      await bring([task])
      const before = await look(task)
      assert.deepEqual(before, BEFORE[state])
      const paid = await paidBy(task)
      for (const report of Object.keys(ENDS) as Report[]) {
        const answer = REPORTS[report](task.name)
        const told = answer === 'reset' ? undefined : VIDEO_TASKS.reportIn(JSON.parse(answer.body), task.name)
        assert.ok(told?.state === 'SUCCEEDED' || told?.state === 'FAILED' || told?.state === 'CANCELED')
        const { endedNow } = await calls.endTask(settlingOf({ ...HELD_TASK, ...task }, told, world.seal).ending)
        assert.equal(endedNow, false)
      }
      await calls.end(voidOf(task))
      await calls.handOver({
        ...{ id: task.id, name: task.name, state: 'RUNNING' },
        upstream: { id: world.upstreamId, name: 'video', slot: 'video', mode: 'test' },
      })
      await calls.leaveUnsettled(task.id)
      await makeOld([task])
      await expireTasks({ pool, log: silentLog }, DAY_SECONDS)
      await resolveOverdue({ pool, log: silentLog }, DAY_SECONDS)
      assert.equal(await resolveCall(pool, task.id, nanos(HELD)), undefined)
      await pool.query(
        "select reschedule_tasks_at(array[$1::uuid], array['PENDING'], array[0], array[null]::float8[], 120)",
        [task.id],
      )
      assert.deepEqual(await look(task), before)
      assert.deepEqual(await paidBy(task), paid)
      cells += Object.keys(ENDS).length + 7
    })
})

async function paidBy({ accountId }: Task) {
  const { rows } = await pool.query('select charged, held from accounts where id = $1', [accountId])
  return rows[0]
}

describe('a task that its upstream no longer knows', () => {
  const HOURS = 2 * 3_600
  const later = (ids: readonly string[]) =>
    pool.query("update tasks set unknown_since = unknown_since - interval '2 hours' where id = any ($1)", [ids])
  const hear = async (tasks: readonly Task[], report: Report) => {
    for (const { name } of tasks) world.script(name, [REPORTS[report](name)])
    await askFor(tasks, poller)
    await poller.idle()
  }

  it('TASK-3 TASK-6 ends as UNKNOWN after so long, its money released and its place free; an answer starts the time anew', async () => {
    const [lost, found, silent] = [await world.begin(), await world.begin(), await world.begin()]
    for (const task of [lost, found, silent]) await world.handOver(task, 'RUNNING')
    await hear([lost, found], 'UNKNOWN')
    await hear([silent], 500)
    assert.equal(await expireUnknownTasks({ pool, log: silentLog }, HOURS), 0)
    await hear([found], 'RUNNING')
    await hear([found], 'UNKNOWN')
    await later([lost.id, silent.id])
    // Who says nothing does not say that it is known.
    await hear([lost], 500)
    const warned: string[] = []
    const note = (message: string) => void warned.push(message)
    const log = { ...silentLog, warn: note, error: note }
    assert.equal(await expireUnknownTasks({ pool, log }, HOURS), 1)
    assert.match(warned.join(), /no longer knows a task/)
    assert.deepEqual(await look(lost), ended('UNKNOWN', 0n, HELD))
    assert.deepEqual((await look(found)).state, 'RUNNING')
    assert.deepEqual((await look(silent)).is_asked_for, true)
  })
})

describe('a task of which nobody knows whether its upstream has it', () => {
  const unsettled = async () => {
    const task = await world.begin()
    await calls.leaveUnsettled(task.id)
    assert.deepEqual(await look(task), { ...goesOn('CREATING'), is_asked_for: false })
    assert.ok((await stored(pool, task.id)).is_unsettled)
    return task
  }
  const ways: readonly (readonly [string, (task: Task) => Promise<unknown>, object])[] = [
    ['is handed over when its name is found', (task) => world.handOver(task, 'RUNNING'), goesOn('RUNNING')],
    ['has FAILED when it never was', ({ id }) => resolveCall(pool, id, null), ended('FAILED', 0n)],
    [
      'is charged what an operator says',
      ({ id }) => resolveCall(pool, id, nanos(300_000_000n)),
      ended('UNKNOWN', 300_000_000n),
    ],
    [
      'is voided at our loss after a day, whichever job finds it',
      async (task) => {
        await makeOld([task])
        await Promise.all([
          expireTasks({ pool, log: silentLog }, DAY_SECONDS),
          resolveOverdue({ pool, log: silentLog }, DAY_SECONDS),
        ])
      },
      ended('UNKNOWN', 0n, HELD),
    ],
  ]
  for (const [what, resolve, expected] of ways)
    it(what, async () => {
      const task = await unsettled()
      await resolve(task)
      assert.deepEqual(await look(task), expected)
      assert.equal((await stored(pool, task.id)).is_unsettled, false)
      cells += 1
    })

  it('keeps the name that was found first', async () => {
    const task = await unsettled()
    await world.handOver(task, 'PENDING')
    await world.handOver(task, 'RUNNING', 'another-job')
    await world.handOver(task, 'RUNNING')
    const { rows } = await pool.query('select upstream_task, state from tasks where id = $1', [task.id])
    assert.deepEqual(rows, [{ upstream_task: task.name, state: 'RUNNING' }])
  })
})

describe('a task whose call began too late for its caller, and was voided', () => {
  it('has FAILED soon, and is not shown as waiting for ever', async (test) => {
    const hasty = connect(database.url, { beginDeadlineMs: 200 })
    test.after(() => hasty.pools.close())
    let call = await world.newCall()
    while (!(await isLate(hasty.calls, call)) || !(await hasBegun(hasty.calls, call))) call = await world.newCall()
    await expireTasks({ pool, log: silentLog }, DAY_SECONDS)
    assert.deepEqual(await look(call), ended('FAILED', 0n))
  })
})

/** What was given up may be cancelled while it still waits: then nothing has begun. */
async function hasBegun(hasty: Calls, { id }: Call): Promise<boolean> {
  assert.ok(await hasty.flush(ASKED_WITHIN_MS))
  return (await pool.query('select from tasks where id = $1', [id])).rowCount === 1
}

/** Whether its begin had reached PostgreSQL when it was given up, and now begins after all: a busy machine may not get so far. */
async function isLate(hasty: Calls, call: Call): Promise<boolean> {
  const other = await pool.connect()
  await other.query('begin')
  await other.query('select from accounts where id = $1 for no key update', [call.accountId])
  await assert.rejects(hasty.begin(call))
  const { rows } = await pool.query(
    `select from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%begin_attributed_calls%'`,
  )
  await other.query('rollback')
  other.release()
  return rows.length > 0
}

describe('the ledger after all of it', () => {
  it('keeps its promises', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'every state against every report', {
      reports: NAMES.length,
      cases: cells,
      wrong_states: 0,
      wrong_charges: 0,
      places_leaked: 0,
    })
  })
})
