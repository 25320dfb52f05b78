import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { ASK, askRaw, assertMembers, startTestSandbox } from '../test-sandbox.ts'

const START_MS = Date.UTC(2026, 10, 15, 4, 20)
let nowMs = START_MS
const sandbox = await startTestSandbox({ nowMs: () => nowMs })
after(() => sandbox.stop())
beforeEach(async () => {
  nowMs = START_MS
  for (const path of ['/journal', '/control', '/control/video']) await sandbox.ask({ path, method: 'DELETE' })
})

const { headers } = ASK.video
const asking = (prompt: string, parameters: object = {}) => ({
  ...ASK.video,
  body: { model: 'sandbox/video', input: { prompt }, parameters },
})
async function create(prompt = 'A cat', parameters: object = {}): Promise<string> {
  const answer = await sandbox.ask(asking(prompt, parameters))
  assert.equal(answer.status, 200, answer.text)
  return answer.json().output.task_id
}
const poll = (id: string) => sandbox.ask({ path: `/video/tasks/${id}`, headers })
const cancel = (id: string) => sandbox.ask({ path: `/video/tasks/${id}/cancel`, headers, method: 'POST' })
const stateOf = async (id: string) => (await poll(id)).json().output.task_status
const tasks = async () => (await sandbox.ask({ path: '/control/video/tasks' })).json().tasks
const summary = async () => (await sandbox.ask({ path: '/control/video' })).json()
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('making a video task', () => {
  it('answers its id and PENDING, under the header that says so', async () => {
    for (const kind of ['video-generation', 'image2video']) {
      const answer = await sandbox.ask({ ...ASK.video, path: `/video/services/aigc/${kind}/video-synthesis` })
      assert.equal(answer.status, 200)
      const { output, request_id } = answer.json()
      assertMembers(output, { task_id: 'string', task_status: 'string' })
      assert.match(output.task_id, UUID)
      assert.match(request_id, UUID)
      assert.equal(output.task_status, 'PENDING')
    }
  })

  it('answers 403 without that header, or with another value', async () => {
    const { authorization } = headers
    for (const other of [{}, { 'x-sandbox-async': 'disable' }, { 'x-a-b-async': 'enable' }]) {
      const answer = await sandbox.ask({ ...ASK.video, headers: { authorization, ...other } })
      assert.equal(answer.status, 403)
      assertMembers(answer.json(), { code: 'string', message: 'string', request_id: 'string' })
      assert.equal(answer.json().code, 'AccessDenied')
      assert.match(answer.json().message, /does not support synchronous calls/)
    }
    assert.equal(
      (await sandbox.ask({ ...ASK.video, headers: { authorization, 'X-Word-Async': 'enable' } })).status,
      200,
    )
    assert.equal((await tasks()).length, 1)
  })

  for (const [what, body] of Object.entries({
    'no JSON': '{',
    'no model': { input: { prompt: 'a' } },
    'no input': { model: 'm' },
    'an empty input': { model: 'm', input: {} },
    'an empty prompt': { model: 'm', input: { prompt: '' } },
    'a prompt that is no text': { model: 'm', input: { prompt: 7 } },
    'parameters that are no object': { model: 'm', input: { prompt: 'a' }, parameters: [] },
    'a duration of nothing': { model: 'm', input: { prompt: 'a' }, parameters: { duration: 0 } },
    'a duration as a text': { model: 'm', input: { prompt: 'a' }, parameters: { duration: '5' } },
    'a size that is none': { model: 'm', input: { prompt: 'a' }, parameters: { size: 'large' } },
    'a resolution that is none': { model: 'm', input: { prompt: 'a' }, parameters: { resolution: 'high' } },
  })) {
    it(`answers 400 to ${what}, and makes no task`, async () => {
      const answer = await sandbox.ask({ ...ASK.video, body })
      assert.equal(answer.status, 400)
      assertMembers(answer.json(), { code: 'string', message: 'string', request_id: 'string' })
      assert.equal(answer.json().code, 'InvalidParameter')
      assert.deepEqual(await tasks(), [])
    })
  }

  it('gives every task another id, whoever asks for whatever', async () => {
    const ids = await Promise.all(Array.from({ length: 200 }, () => create()))
    assert.equal(new Set(ids).size, 200)
  })
})

describe('a video task', () => {
  it('is PENDING, then RUNNING, then SUCCEEDED, each with its members', async () => {
    const id = await create('A cat on the beach', { duration: 8, resolution: '1080P' })
    assert.deepEqual((await poll(id)).json().output, {
      task_id: id,
      task_status: 'PENDING',
      submit_time: '2026-11-15 12:20:00.000',
    })
    nowMs += 200
    assert.deepEqual((await poll(id)).json().output, {
      task_id: id,
      task_status: 'RUNNING',
      submit_time: '2026-11-15 12:20:00.000',
      scheduled_time: '2026-11-15 12:20:00.200',
    })
    nowMs += 799
    assert.equal('usage' in (await poll(id)).json(), false)
    nowMs += 1
    const { request_id, output, usage } = (await poll(id)).json()
    const { video_url, ...rest } = output
    assert.match(request_id, UUID)
    assert.ok(video_url.startsWith(`${sandbox.url}/video/files/${id}.mp4?Expires=`))
    assert.deepEqual(rest, {
      task_id: id,
      task_status: 'SUCCEEDED',
      submit_time: '2026-11-15 12:20:00.000',
      scheduled_time: '2026-11-15 12:20:00.200',
      end_time: '2026-11-15 12:20:01.000',
      orig_prompt: 'A cat on the beach',
    })
    assert.deepEqual(usage, {
      duration: 8,
      input_video_duration: 0,
      output_video_duration: 8,
      SR: 1080,
      size: '1920*1080',
      video_count: 1,
    })
  })

  for (const [parameters, sr, size] of [
    [{}, 720, '1280*720'],
    [{ resolution: '480P' }, 480, '832*480'],
    [{ size: '1280*720' }, 720, '1280*720'],
    [{ size: '720*1280' }, 720, '720*1280'],
    [{ size: '960*960' }, 720, '960*960'],
    [{ size: '1632*1248' }, 1080, '1632*1248'],
    [{ size: '624*624' }, 480, '624*624'],
    [{ size: '1920x1080', resolution: '1080P' }, 1080, '1920*1080'],
  ] as const) {
    it(`of ${JSON.stringify(parameters)} is charged as ${sr}`, async () => {
      const id = await create('A cat', parameters)
      nowMs += 1000
      const { usage } = (await poll(id)).json()
      assert.deepEqual([usage.SR, usage.size, usage.output_video_duration], [sr, size, 5])
    })
  }

  it('is UNKNOWN where it never was, and a day after it was made', async () => {
    const answer = await poll('nobody-s')
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.json().output, { task_id: 'nobody-s', task_status: 'UNKNOWN' })
    const id = await create()
    nowMs += 86_399_999
    assert.equal(await stateOf(id), 'SUCCEEDED')
    nowMs += 1
    assert.deepEqual((await poll(id)).json().output, { task_id: id, task_status: 'UNKNOWN' })
  })

  it('can be canceled while it is PENDING, and only then and once', async () => {
    const [one, other] = [await create(), await create()]
    nowMs += 199
    const answer = await cancel(one)
    assert.equal(answer.status, 200)
    assertMembers(answer.json(), { request_id: 'string' })
    nowMs += 1
    for (const id of [one, other, 'nobody-s']) {
      const refused = await cancel(id)
      assert.equal(refused.status, 400)
      assertMembers(refused.json(), { code: 'string', message: 'string', request_id: 'string' })
      assert.equal(refused.json().code, 'UnsupportedOperation')
    }
    nowMs += 5000
    const { output, usage } = (await poll(one)).json()
    assert.deepEqual(output, {
      task_id: one,
      task_status: 'CANCELED',
      submit_time: '2026-11-15 12:20:00.000',
      end_time: '2026-11-15 12:20:00.199',
    })
    assert.equal(usage, undefined)
    assert.equal(await stateOf(other), 'SUCCEEDED')
  })

  it('has a video for a day, which needs no credential but the signature', async () => {
    const id = await create()
    nowMs += 1000
    const { pathname, search } = new URL((await poll(id)).json().output.video_url)
    const path = pathname + search
    const file = await sandbox.ask({ path })
    assert.equal(file.status, 200)
    assert.equal(file.headers['content-type'], 'video/mp4')
    assert.match(file.text, new RegExp(`^....ftypisom.*mdat${id}$`, 's'))
    for (const forged of [pathname, path.replace(/Expires=(\d+)/, 'Expires=9$1'), path.replace(id, 'another')])
      assert.equal((await sandbox.ask({ path: forged })).status, 403)
    const failed = await sandbox.ask({ path: `${path}&note=sandbox:status=500` })
    assert.deepEqual([failed.status, failed.json().code], [500, 'InternalError'])
    nowMs += 86_399_000
    assert.equal((await sandbox.ask({ path })).status, 200)
    nowMs += 1000
    const late = await sandbox.ask({ path })
    assert.equal(late.status, 403)
    assert.equal(late.json().code, 'AccessDenied')
  })
})

describe('a create call that goes wrong', () => {
  const lost = {
    'reset=before-headers': 'reset',
    'close-early': 'cut',
    'hang=headers': 'hung',
    'reset=in-body': 'reset',
    truncate: 'cut',
  }
  for (const [directive, outcome] of Object.entries(lost)) {
    it(`has made its task though the answer was lost: ${directive}`, async () => {
      await askRaw(sandbox.port, asking(`A cat sandbox:${directive}`), 300)
      const [entry] = await sandbox.journal()
      const [task] = await tasks()
      assert.equal(entry?.outcome, outcome)
      assert.equal(entry?.billed, true)
      assert.equal(task.task_id, entry?.task_id)
      assert.equal(await stateOf(task.task_id), 'PENDING')
    })
  }

  it('has made its task before the delay, also for a client that leaves', async () => {
    await askRaw(sandbox.port, asking('A cat sandbox:delay=60000'), 300)
    await until(async () => (await sandbox.journal())[0]?.outcome === 'left', PATIENCE_MS)
    assert.equal((await tasks()).length, 1)
  })

  for (const directive of ['garbage', 'empty', 'html']) {
    it(`has made its task though nobody can read that: ${directive}`, async () => {
      assert.equal((await sandbox.ask(asking(`A cat sandbox:${directive}`))).status, 200)
      assert.equal((await tasks()).length, 1)
    })
  }

  for (const directive of [
    'status=500',
    'status=429',
    'status=304',
    'redirect=/elsewhere',
    'pendign-ms=1',
    'pending-ms=x',
  ]) {
    it(`has made no task where it was refused: ${directive}`, async () => {
      await sandbox.ask(asking(`A cat sandbox:${directive}`))
      const [entry] = await sandbox.journal()
      assert.deepEqual([entry?.task_id, entry?.billed], [null, false])
      assert.deepEqual(await tasks(), [])
    })
  }

  it('has made none that never was read: hang=accept by control', async () => {
    await sandbox.ask({ path: '/control', body: { upstream: 'video', directives: ['hang=accept'] } })
    await askRaw(sandbox.port, ASK.video, 300)
    assert.deepEqual(await tasks(), [])
  })
})

describe('what is known about video tasks', () => {
  it('names in the journal who made a task, who asked about it and who canceled it', async () => {
    const made = await sandbox.ask({ ...ASK.video, headers: { ...headers, 'x-request-id': 'call-1' } })
    const id = made.json().output.task_id
    await poll(id)
    await cancel(id)
    await poll('nobody-s')
    const entries = await sandbox.journal()
    assert.deepEqual(
      entries.map(({ method, path, task_id, request_id, model, billed }) => [
        method,
        path.replace(id, '*'),
        task_id,
        request_id,
        model,
        billed,
      ]),
      [
        ['POST', ASK.video.path, id, 'call-1', 'sandbox/video', true],
        ['GET', '/video/tasks/*', id, null, null, false],
        ['POST', '/video/tasks/*/cancel', id, null, null, false],
        ['GET', '/video/tasks/nobody-s', 'nobody-s', null, null, false],
      ],
    )
    assert.ok(entries[0]?.header_names.includes('x-sandbox-async'))
  })

  it('lists tasks with what was asked about them, how they are and what they cost', async () => {
    const made = await sandbox.ask({
      ...asking('A cat', { duration: 7, n: 2 }),
      headers: { ...headers, 'x-request-id': 'call-1' },
    })
    const { task_id } = made.json().output
    const [before] = await tasks()
    assert.deepEqual(
      [before.state, before.ended_at_ms, before.usage_seconds, before.usage],
      ['PENDING', null, null, null],
    )
    nowMs += 500
    await poll(task_id)
    nowMs += 1000
    await poll(task_id)
    await cancel(task_id)
    const [{ n, usage, ...task }] = await tasks()
    assert.ok(Number.isInteger(n))
    assert.deepEqual(task, {
      task_id,
      request_id_of_create: 'call-1',
      model: 'sandbox/video',
      created_at_ms: START_MS,
      state: 'SUCCEEDED',
      ended_at_ms: START_MS + 1000,
      polls: 2,
      last_poll_at_ms: START_MS + 1500,
      cancels: 1,
      usage_seconds: 7,
      sr: 720,
      video_count: 2,
    })
    assert.deepEqual(usage, (await poll(task_id)).json().usage)
  })

  it('lists the polls with their times, and counts the most in any one second', async () => {
    const id = await create()
    const { next } = (await sandbox.ask({ path: '/control/video/polls' })).json()
    for (const afterMs of [0, 600, 300, 200, 2000]) {
      nowMs += afterMs
      await poll(id)
    }
    const { polls } = (await sandbox.ask({ path: `/control/video/polls?since=${next}` })).json()
    assert.deepEqual(
      polls,
      [0, 600, 900, 1100, 3100].map((atMs, at) => ({
        n: next + at,
        at_ms: START_MS + atMs,
        task_id: id,
        over: false,
      })),
    )
    const { most_polls_in_a_second, polls: count, polls_over, polls_per_second, states } = await summary()
    assert.deepEqual([most_polls_in_a_second, count, polls_over, polls_per_second], [3, 5, 0, null])
    assert.deepEqual(states, { SUCCEEDED: 1 })
  })

  it('refuses polls beyond a quota that was set, in any second, and counts them', async () => {
    const set = (polls_per_second: unknown) => sandbox.ask({ path: '/control/video', body: { polls_per_second } })
    assert.equal((await set(2)).json().polls_per_second, 2)
    const id = await create()
    const statuses = []
    for (const afterMs of [0, 600, 300, 100, 599, 1]) {
      nowMs += afterMs
      const { status, json, headers } = await poll(id)
      statuses.push(status)
      if (status === 429) assert.equal(json().code, 'Throttling.RateQuota')
      assert.equal(headers['retry-after'], undefined)
    }
    assert.deepEqual(statuses, [200, 200, 429, 200, 429, 200])
    assert.deepEqual([(await summary()).polls_over, (await tasks())[0].polls], [2, 6])
    await set(null)
    for (let at = 0; at < 5; at += 1) assert.equal((await poll(id)).status, 200)
    for (const wrong of [-1, 1.5, '2', undefined]) assert.equal((await set(wrong)).status, 400)
  })

  it('is forgotten on DELETE, and the numbers go on', async () => {
    const id = await create()
    const { next } = (await sandbox.ask({ path: '/control/video/tasks' })).json()
    await sandbox.ask({ path: '/control/video', method: 'DELETE' })
    assert.equal(await stateOf(id), 'UNKNOWN')
    await create()
    assert.equal((await tasks())[0].n, next)
    for (const path of ['/control/video/tasks?since=x', '/control/video/polls?since=-1'])
      assert.equal((await sandbox.ask({ path })).status, 400)
    assert.equal((await sandbox.ask({ path: '/control/video/nothing' })).status, 404)
  })
})
