import assert from 'node:assert/strict'
import { after, beforeEach, it } from 'node:test'
import { VIDEO_DIRECTIVE_NAMES } from '../directives.ts'
import { ASK, askRaw, startTestSandbox } from '../test-sandbox.ts'

let nowMs = Date.UTC(2026, 10, 15)
const sandbox = await startTestSandbox({ nowMs: () => nowMs })
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
  await sandbox.ask({ path: '/control/video', method: 'DELETE' })
})

const { headers } = ASK.video
const asking = (...directives: readonly string[]) => ({
  ...ASK.video,
  body: { model: 'm', input: { prompt: ['A cat', ...directives.map((one) => `sandbox:${one}`)].join(' ') } },
})
async function create(...directives: readonly string[]): Promise<string> {
  const answer = await sandbox.ask(asking(...directives))
  assert.equal(answer.status, 200, answer.text)
  return answer.json().output.task_id
}
const poll = (id: string) => sandbox.ask({ path: `/video/tasks/${id}`, headers })
const cancel = (id: string) => sandbox.ask({ path: `/video/tasks/${id}/cancel`, headers, method: 'POST' })
const rawPoll = (id: string) => askRaw(sandbox.port, { path: `/video/tasks/${id}`, headers }, 300)
const stateOf = async (id: string) => (await poll(id)).json().output.task_status
const shown = async () => (await sandbox.ask({ path: '/control/video/tasks' })).json().tasks.at(-1)
async function ended(...directives: readonly string[]) {
  const id = await create(...directives)
  nowMs += 1000
  return (await poll(id)).json()
}
/** The states at these times after the task was made. */
async function statesOf(id: string, ...timesMs: readonly number[]): Promise<string[]> {
  const startMs = nowMs
  const states = []
  for (const timeMs of timesMs) {
    nowMs = startMs + timeMs
    states.push(await stateOf(id))
  }
  return states
}

const proven = new Set<string>()
function proves(name: string, what: string, prove: () => Promise<void>): void {
  proven.add(name)
  it(`${name}: ${what}`, prove)
}

proves('pending-ms', 'so long it waits', async () => {
  const id = await create('pending-ms=5000')
  assert.deepEqual(await statesOf(id, 4999, 5000, 5799, 5800), ['PENDING', 'RUNNING', 'RUNNING', 'SUCCEEDED'])
  // Nothing but the create call has a course; it is no error to set one for all calls.
  await sandbox.ask({ path: '/control', body: { upstream: 'video', directives: ['pending-ms=7'], times: 2 } })
  const quick = await create()
  nowMs += 7
  assert.equal(await stateOf(quick), 'RUNNING')
})

proves('running-ms', 'so long it runs', async () => {
  const id = await create('running-ms=0')
  assert.deepEqual(await statesOf(id, 199, 200), ['PENDING', 'SUCCEEDED'])
})

proves('starts-running', 'says so at once', async () => {
  const answer = await sandbox.ask(asking('starts-running', 'pending-ms=5000'))
  const { task_id, task_status } = answer.json().output
  assert.equal(task_status, 'RUNNING')
  assert.deepEqual(await statesOf(task_id, 0, 799, 800), ['RUNNING', 'RUNNING', 'SUCCEEDED'])
})

proves('unknown-ms', 'polls do not find it at first', async () => {
  const id = await create('unknown-ms=300')
  assert.deepEqual(await statesOf(id, 0, 299, 300, 1000), ['UNKNOWN', 'UNKNOWN', 'RUNNING', 'SUCCEEDED'])
})

proves('task-ends', 'as it says, or never', async () => {
  for (const [end, state] of Object.entries({
    succeeded: 'SUCCEEDED',
    failed: 'FAILED',
    canceled: 'CANCELED',
    unknown: 'UNKNOWN',
    never: 'RUNNING',
  })) {
    const id = await create(`task-ends=${end}`)
    assert.deepEqual(await statesOf(id, 999, 1000, 80_000_000), ['RUNNING', state, state])
    const { output, usage } = (await poll(id)).json()
    assert.equal('video_url' in output, end === 'succeeded')
    assert.equal('end_time' in output, ['succeeded', 'failed', 'canceled'].includes(end))
    assert.equal(usage !== undefined, end === 'succeeded')
    const { ended_at_ms, created_at_ms, usage_seconds } = await shown()
    assert.equal(ended_at_ms, end === 'never' ? null : created_at_ms + 1000)
    assert.equal(usage_seconds, end === 'succeeded' ? 5 : null)
  }
})

proves('fail-code', 'is the code of the failure', async () => {
  const usual = (await ended('task-ends=failed')).output
  assert.equal(usual.code, 'InternalError.Algo')
  assert.equal(typeof usual.message, 'string')
  assert.equal((await ended('task-ends=failed', 'fail-code=DataInspectionFailed')).output.code, 'DataInspectionFailed')
})

proves('fail-message', 'is its message, underscores for blanks', async () => {
  const { output } = await ended('task-ends=failed', 'fail-message=Not_this_one.')
  assert.equal(output.message, 'Not this one.')
})

proves('video-seconds', 'is what is reported and charged, whatever was asked for', async () => {
  for (const seconds of [5.04, 0, -3, 1_000_000]) {
    const { usage } = await ended(`video-seconds=${seconds}`)
    assert.deepEqual([usage.output_video_duration, usage.duration], [seconds, seconds])
    assert.equal((await shown()).usage_seconds, seconds)
  }
})

proves('usage-sr', 'is reported and charged, whatever was asked for', async () => {
  assert.equal((await ended('usage-sr=1080')).usage.SR, 1080)
  assert.equal((await shown()).sr, 1080)
})

proves('usage-form', 'is how the figures are reported', async () => {
  const figures = {
    duration: 5,
    input_video_duration: 0,
    output_video_duration: 5,
    SR: 720,
    size: '1280*720',
    video_count: 1,
  }
  assert.deepEqual((await ended('usage-form=new')).usage, figures)
  assert.deepEqual(JSON.parse((await ended('usage-form=string')).usage), figures)
  const older = { video_duration: 5, video_ratio: '1280*720', video_count: 1 }
  assert.deepEqual((await ended('usage-form=ratio')).usage, older)
  assert.deepEqual((await ended('usage-form=old')).usage, { ...older, SR: 720 })
  assert.throws(JSON.parse.bind(JSON, (await ended('usage-form=broken')).usage), SyntaxError)
  assert.equal('usage' in (await ended('usage-form=none')), false)
  assert.deepEqual([(await shown()).usage_seconds, (await shown()).usage], [5, null])
})

proves('canceled-seconds', 'is what a canceled task is charged for', async () => {
  const { output, usage } = await ended('task-ends=canceled', 'canceled-seconds=1.5')
  assert.deepEqual([output.task_status, usage.output_video_duration], ['CANCELED', 1.5])
  const id = await create('canceled-seconds=2')
  await cancel(id)
  assert.equal((await poll(id)).json().usage.output_video_duration, 2)
  assert.equal((await shown()).usage_seconds, 2)
  assert.equal((await ended('canceled-seconds=2')).usage.output_video_duration, 5)
})

proves('url-seconds', 'so long the address lives', async () => {
  const { pathname, search } = new URL((await ended('url-seconds=3')).output.video_url)
  const statuses = []
  for (const afterMs of [0, 1900, 1100]) {
    nowMs += afterMs
    statuses.push((await sandbox.ask({ path: pathname + search })).status)
  }
  assert.deepEqual(statuses, [200, 200, 403])
})

proves('poll-429', 'so many polls are throttled, without saying for how long', async () => {
  const id = await create('poll-429=2')
  for (let at = 0; at < 2; at += 1) {
    const answer = await poll(id)
    assert.deepEqual([answer.status, answer.json().code], [429, 'Throttling'])
    assert.equal(answer.headers['retry-after'], undefined)
  }
  assert.equal(await stateOf(id), 'PENDING')
})

proves('poll-fails', 'so many polls answer 500, after those that are throttled', async () => {
  const id = await create('poll-fails=2', 'poll-429=1')
  const statuses = []
  for (let at = 0; at < 4; at += 1) statuses.push((await poll(id)).status)
  assert.deepEqual(statuses, [429, 500, 500, 200])
})

proves('poll-garbage', 'so many polls answer what is not JSON', async () => {
  const id = await create('poll-garbage=1')
  const answer = await poll(id)
  assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/json'])
  assert.throws(() => answer.json(), SyntaxError)
  assert.equal(await stateOf(id), 'PENDING')
})

proves('poll-hangs', 'so many polls get no answer', async () => {
  const id = await create('poll-hangs=1')
  const { text, end } = await rawPoll(id)
  assert.deepEqual([text, end], ['', 'open'])
  assert.equal((await sandbox.journal()).at(-1)?.outcome, 'hung')
  assert.equal(await stateOf(id), 'PENDING')
})

proves('poll-cuts', 'so many polls are closed without a byte', async () => {
  const id = await create('poll-cuts=1')
  const { text, end } = await rawPoll(id)
  assert.deepEqual([text, end], ['', 'closed'])
  assert.equal(await stateOf(id), 'PENDING')
  assert.equal((await shown()).polls, 2)
})

proves('cancel-fails', 'so many cancels answer 500 and do nothing', async () => {
  const id = await create('cancel-fails=1')
  assert.equal((await cancel(id)).status, 500)
  assert.equal(await stateOf(id), 'PENDING')
  assert.equal((await cancel(id)).status, 200)
  assert.equal((await shown()).cancels, 2)
})

/** As a POST, which asks for a body. */
const rawCancel = (id: string) => askRaw(sandbox.port, { path: `/video/tasks/${id}/cancel`, headers, body: {} }, 300)

proves('cancel-hangs', 'so many cancels get no answer and do nothing', async () => {
  const id = await create('cancel-hangs=1')
  assert.deepEqual([(await rawCancel(id)).end, await stateOf(id)], ['open', 'PENDING'])
  assert.equal((await cancel(id)).status, 200)
})

proves('cancel-cuts', 'so many cancels are done and then closed without a byte', async () => {
  const id = await create('cancel-cuts=1')
  const { text, end } = await rawCancel(id)
  assert.deepEqual([text, end, await stateOf(id)], ['', 'closed', 'CANCELED'])
})

proves('done-anyway', 'what was asked is done though the answer is an error', async () => {
  assert.equal((await sandbox.ask(asking('status=504', 'done-anyway'))).status, 504)
  const { task_id } = await shown()
  const [entry] = await sandbox.journal()
  assert.deepEqual([entry?.task_id, entry?.billed, entry?.status], [task_id, true, 504])
  for (const [directives, state] of [
    [['status=503'], 'PENDING'],
    [['status=503', 'done-anyway'], 'CANCELED'],
  ] as const) {
    await sandbox.ask({ path: '/control', body: { upstream: 'video', directives, path: '/cancel' } })
    assert.equal((await cancel(task_id)).status, 503)
    assert.equal(await stateOf(task_id), state)
  }
})

it('every directive of videos is proven here', () => {
  assert.deepEqual(VIDEO_DIRECTIVE_NAMES.toSorted(), [...proven].toSorted())
})
