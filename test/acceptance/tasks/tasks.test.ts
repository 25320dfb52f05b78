import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { nanos } from '../../../server/src/kernel/money.ts'
import { reverseCharge } from '../../../server/src/ledger/reverse.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import {
  ask,
  codeOf,
  errorOf,
  ids,
  isDataFault,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from '../installation.ts'
import {
  ASYNC,
  bodyOf,
  CREATE,
  cancel,
  created,
  createTask,
  LIST,
  outputOf,
  poll,
  stored,
  untilState,
  untilStored,
} from './video.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

/** Everybody has three places of their own. */
const newSecret = async () => (await makeCustomer(pool)).secret
/** They wait for tasks, each with a customer of its own. */
const TOGETHER = { concurrency: 8 }
const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/
const WAITS = 'sandbox:pending-ms=600000'
const RUNS = 'sandbox:pending-ms=0 sandbox:running-ms=600000'
const quoting = ({ headers, body }: { headers: Record<string, string>; body: unknown }) => ({
  headers: { ...headers, 'x-farebox-cost-mode': 'quote' },
  body,
})
const namesOf = (value: unknown) => Object.keys(Object(value)).toSorted()

describe('creating a video task', () => {
  it('TASK-1 returns output.task_id, output.task_status PENDING or RUNNING, and request_id', async () => {
    const secret = await newSecret()
    for (const [words, state] of [
      ['', 'PENDING'],
      ['sandbox:starts-running', 'RUNNING'],
    ] as const) {
      const told = await createTask(url, secret, { words })
      assert.equal(told.status, 200, told.text)
      const { output, request_id, ...rest } = told.json
      assert.deepEqual(rest, {})
      assert.equal(request_id, told.id)
      assert.deepEqual(output, { task_id: told.id, task_status: state })
      assert.equal(told.costUsd, null, 'nothing is billed yet')
      assert.equal(told.headers.get('x-farebox-task-cost-usd'), null)
    }
  })

  it('TASK-1 without the header that says so, a create is refused with 400 that names it', async () => {
    const secret = await newSecret()
    for (const headers of [{}, { 'x-farebox-async': 'disable' }] as const) {
      const told = await ask(url, secret, CREATE, { body: bodyOf({}), headers })
      assert.equal(told.status, 400)
      assert.equal(codeOf(told), 'invalid_request')
      assert.match(String(errorOf(told).message), /x-farebox-async: enable/)
    }
    const { json } = await ask(url, secret, LIST)
    assert.deepEqual(json.data, [], 'nothing was made')
  })

  it('refuses what has no price or no sense, before anything is held', async () => {
    const secret = await newSecret()
    const bodies: readonly unknown[] = [
      { model: 'sandbox/video' },
      { model: 'sandbox/video', input: {} },
      { model: 'sandbox/video', input: { prompt: '' } },
      { model: 'sandbox/video', input: { prompt: 5 } },
      { input: { prompt: 'a fox' } },
      { ...bodyOf({}), parameters: 'short' },
      ...[
        { duration: 16 },
        { duration: 0 },
        { duration: 1.5 },
        { duration: '5' },
        { n: 5 },
        { resolution: '720' },
        { resolution: '4320P' },
        { size: '1280' },
        { size: '4096*4096' },
        { resolution: '720P', size: '1280*720' },
      ].map((parameters) => bodyOf({ parameters })),
      '{"broken":',
    ]
    for (const body of bodies) {
      const told = await ask(url, secret, CREATE, { body, headers: ASYNC })
      assert.equal(told.status, 400, `${JSON.stringify(body)}: ${told.text}`)
    }
    const elsewhere = await ask(url, secret, CREATE, {
      headers: ASYNC,
      body: { ...bodyOf({}), model: 'sandbox/text' },
    })
    assert.equal(elsewhere.status, 404)
    const { json } = await ask(url, secret, LIST)
    assert.deepEqual(json.data, [])
  })

  it('passes on what the upstream refuses, which leaves nothing held and a task that failed', async () => {
    const secret = await newSecret()
    const told = await createTask(url, secret, { words: 'sandbox:status=400' })
    assert.equal(told.status, 400, told.text)
    const row = await stored(pool, told.id)
    assert.equal(row.state, 'FAILED')
    assert.equal(row.held, null)
    assert.equal(row.charged, 0n)
    assert.equal(row.slots, 0)
  })
})

describe('polling a task', TOGETHER, () => {
  const members = {
    PENDING: ['submit_time', 'task_id', 'task_status'],
    RUNNING: ['scheduled_time', 'submit_time', 'task_id', 'task_status'],
    SUCCEEDED: ['end_time', 'orig_prompt', 'submit_time', 'task_id', 'task_status', 'video_url'],
    FAILED: ['code', 'end_time', 'message', 'submit_time', 'task_id', 'task_status'],
    CANCELED: ['end_time', 'submit_time', 'task_id', 'task_status'],
  } as const
  const words = {
    PENDING: WAITS,
    RUNNING: RUNS,
    SUCCEEDED: '',
    FAILED: 'sandbox:task-ends=failed',
    CANCELED: 'sandbox:task-ends=canceled',
  } as const

  for (const state of ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED'] as const)
    it(`TASK-2 gives exactly the members of ${state}`, async () => {
      const secret = await newSecret()
      const id = await created(url, secret, { words: words[state] })
      const told = await untilState(url, secret, id, state)
      assert.equal(told.status, 200)
      const output = outputOf(told)
      // It may have been seen running before it ended.
      const { scheduled_time, ...rest } = output
      assert.deepEqual(namesOf(state === 'RUNNING' ? output : rest), members[state])
      for (const name of namesOf(output).filter((one) => one.endsWith('_time')))
        assert.match(String(output[name]), TIME)
      assert.equal(output.task_id, id)
      assert.equal(told.json.request_id, told.id)
      assert.deepEqual(
        namesOf(told.json),
        state === 'SUCCEEDED' ? ['output', 'request_id', 'usage'] : ['output', 'request_id'],
      )
      if (state === 'SUCCEEDED') {
        assert.deepEqual(told.json.usage, { output_video_duration: 5, video_count: 1, SR: 720 })
        assert.match(String(output.orig_prompt), /^a fox in the snow/)
        assert.match(String(output.video_url), /^http/)
      }
      if (state === 'FAILED') assert.equal(output.code, 'InternalError.Algo')
      if (scheduled_time !== undefined) assert.ok(String(output.submit_time) <= String(scheduled_time))
    })

  for (const [how, word, state] of [
    ['that succeeds', '', 'SUCCEEDED'],
    ['that fails', 'sandbox:task-ends=failed', 'FAILED'],
  ] as const)
    it(`TASK-2 tells when a task ${how} began and ended by its upstream, whoever noticed when`, async () => {
      const secret = await newSecret()
      const id = await created(url, secret, { words: `sandbox:pending-ms=30 sandbox:running-ms=170 ${word}` })
      const { submit_time, scheduled_time, end_time } = outputOf(await untilState(url, secret, id, state))
      const msOf = (time: unknown) => Date.parse(`${String(time).replace(' ', 'T')}Z`)
      assert.equal(msOf(end_time) - msOf(scheduled_time), 170, `${scheduled_time} to ${end_time}`)
      assert.ok(msOf(scheduled_time) - msOf(submit_time) >= 30, `${submit_time} to ${scheduled_time}`)
    })

  it('TASK-2 tells when a task began while it runs, and the same when it has ended', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: 'sandbox:pending-ms=30 sandbox:running-ms=8000' })
    const running = outputOf(await untilState(url, secret, id, 'RUNNING'))
    const ended = outputOf(await untilState(url, secret, id, 'SUCCEEDED'))
    assert.match(String(running.scheduled_time), TIME)
    assert.equal(ended.scheduled_time, running.scheduled_time)
  })

  it('TASK-2 tells the length that was asked for where the upstream tells none', async () => {
    const secret = await newSecret()
    const parameters = { duration: 7, resolution: '720P' }
    const id = await created(url, secret, { words: 'sandbox:usage-form=none', parameters })
    const { json } = await untilState(url, secret, id, 'SUCCEEDED')
    assert.deepEqual(json.usage, { output_video_duration: 7, video_count: 1, SR: 720 })
  })

  it('TASK-3 an unknown, foreign or expired task_id answers 200 UNKNOWN, and none can be told from another', async () => {
    const [mine, other] = [await newSecret(), await newSecret()]
    const foreign = await created(url, other)
    const expired = await created(url, mine)
    await untilStored(pool, expired, 'SUCCEEDED')
    await pool.query("update tasks set ended_at = ended_at - interval '25 hours' where id = $1", [expired])
    const shape = ({ status, json: { request_id, ...json } }: Told, id: string) => {
      assert.ok(typeof request_id === 'string')
      return { status, json: JSON.parse(JSON.stringify(json).replaceAll(id, 'ID')) }
    }
    for (const id of [foreign, expired, crypto.randomUUID(), 'anything', '0'])
      assert.deepEqual(shape(await poll(url, mine, id), id), {
        status: 200,
        json: { output: { task_id: 'ID', task_status: 'UNKNOWN' } },
      })
    assert.deepEqual(shape(await cancel(url, mine, foreign), foreign).json.output.task_status, 'UNKNOWN')
    await untilState(url, other, foreign, 'SUCCEEDED')
  })

  it('TASK-4 a task_id in the query answers 500 with the message "unsupported uri"', async () => {
    const secret = await newSecret()
    for (const query of ['?task_id=123', '', '?page=1', '/', '/?task_id=123']) {
      const told = await ask(url, secret, `/apis/v1/services/aigc/tasks${query}`)
      assert.equal(told.status, 500)
      assert.equal(errorOf(told).message, 'unsupported uri')
    }
  })

  it('TASK-7 one task faster than twice a second answers 429 with Retry-After; another task is not affected', async () => {
    const secret = await newSecret()
    const [one, other] = [await created(url, secret, { words: WAITS }), await created(url, secret, { words: WAITS })]
    const answers = await Promise.all([poll(url, secret, one), poll(url, secret, one), poll(url, secret, one)])
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(refused.length, 1)
    assert.equal(refused[0]?.headers.get('retry-after'), '1')
    isDataFault(refused[0] as Told, 'rate_limit_exceeded', 'rate_limit_error')
    assert.equal((await poll(url, secret, other)).status, 200)
    await delay(1_100)
    assert.equal((await poll(url, secret, one)).status, 200)
  })

  it("TASK-7 polls count against the key's requests a minute", async () => {
    const { secret } = await makeCustomer(pool, { requestsPerMinute: 3 })
    const id = await created(url, secret, { words: WAITS })
    for (const status of [200, 200, 429]) {
      const told = await poll(url, secret, id)
      assert.equal(told.status, status)
      if (status === 429) assert.ok(Number(told.headers.get('retry-after')) > 10)
    }
  })

  it('TASK-8 video_url works until its lifetime ends, and not after', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: 'sandbox:url-seconds=12' })
    const videoUrl = String(outputOf(await untilState(url, secret, id, 'SUCCEEDED')).video_url)
    const alive = await fetch(videoUrl)
    assert.equal(alive.status, 200)
    assert.equal(alive.headers.get('content-type'), 'video/mp4')
    await until(async () => (await fetch(videoUrl)).status === 403, PATIENCE_MS, 'the end of its lifetime')
  })
})

describe('what a task costs', TOGETHER, () => {
  /** Words, parameters and what is charged, in nano-USD. */
  const costs: readonly (readonly [string, string, Record<string, unknown>, bigint])[] = [
    ['in the new form of usage', '', { duration: 5, resolution: '720P' }, 500_000_000n],
    ['in the old form', 'sandbox:usage-form=old', { duration: 5, resolution: '480P' }, 250_000_000n],
    ['as a JSON text', 'sandbox:usage-form=string', { duration: 10, resolution: '1080P' }, 1_500_000_000n],
    ['by its size', '', { duration: 4, size: '832*480' }, 200_000_000n],
    ['with a fraction of a second', 'sandbox:video-seconds=4.5', { duration: 5, resolution: '720P' }, 450_000_000n],
    ['where nothing was asked for', '', {}, 500_000_000n],
    ['where the upstream made a smaller one', 'sandbox:usage-sr=480', { duration: 5 }, 250_000_000n],
    // Beyond what was held: the rest is our loss.
    ['where the upstream made more', 'sandbox:video-seconds=9', { duration: 5, resolution: '720P' }, 500_000_000n],
    ['where nobody says how long it is', 'sandbox:usage-form=none', { duration: 5 }, 0n],
    ['where it failed', 'sandbox:task-ends=failed', { duration: 5 }, 0n],
    ['where it was canceled and used nothing', 'sandbox:task-ends=canceled', { duration: 5 }, 0n],
    [
      'where it was canceled half-way',
      'sandbox:task-ends=canceled sandbox:canceled-seconds=2',
      { duration: 5, resolution: '720P' },
      200_000_000n,
    ],
  ]
  for (const [how, words, parameters, charged] of costs)
    it(`TASK-5 is exact ${how}, and settled though nobody polls`, async () => {
      const secret = await newSecret()
      const id = await created(url, secret, { words, parameters })
      const before = await stored(pool, id)
      assert.ok(before.held >= charged, 'held before it is made')
      assert.equal(before.charged, null, 'nothing is billed while it is made')
      const state = words.includes('failed') ? 'FAILED' : words.includes('canceled') ? 'CANCELED' : 'SUCCEEDED'
      const row = await untilStored(pool, id, state)
      assert.equal(row.charged, charged)
      assert.equal(row.held, null)
      assert.equal(row.slots, 0)
      if (state === 'FAILED') assert.equal(row.outcome, 'voided')
      assert.equal(row.overrun > 0n, words.includes('seconds=9') || words.includes('form=none'))
    })

  it('TASK-5 is in the usage report and the record of the call, which polls are not', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { parameters: { duration: 5, resolution: '720P' } })
    await untilState(url, secret, id, 'SUCCEEDED')
    for (let at = 0; at < 5; at += 1) await delay(550).then(() => poll(url, secret, id))
    const usage = await ask(url, secret, '/v1/usage?start_time=1')
    assert.equal(Object(usage.json.totals ?? usage.json).requests, 1)
    assert.equal(Object(usage.json.totals ?? usage.json).charged_micros_usd, 500_000)
    const record = await ask(url, secret, `/v1/requests/${id}`)
    assert.equal(Object(record.json.cost).usd, '0.500000000')
  })

  /** The states that a task ends in, and what it then costs. */
  const ENDS = [
    ['SUCCEEDED', '', '0.500000000'],
    ['FAILED', 'sandbox:task-ends=failed', '0.000000000'],
    ['CANCELED', 'sandbox:task-ends=canceled', '0.000000000'],
    ['CANCELED', 'sandbox:task-ends=canceled sandbox:canceled-seconds=2', '0.200000000'],
  ] as const
  const taskCostOf = ({ headers }: Told) => headers.get('x-farebox-task-cost-usd')
  const listedCost = async (secret: string, id: string) => {
    const { data } = (await ask(url, secret, LIST)).json
    const found = (data as { output: { task_id: string }; cost_usd: unknown }[]).filter(
      ({ output }) => output.task_id === id,
    )
    assert.equal(found.length, 1)
    return found[0]?.cost_usd
  }

  for (const [state, words, cost] of ENDS)
    it(`BASE-5 is told where its end is, by polls, the list and a cancel, as the usage log has it: ${state} ${words}`, async () => {
      const secret = await newSecret()
      const parameters = { duration: 5, resolution: '720P' }
      const create = await createTask(url, secret, { words, parameters })
      assert.deepEqual(
        [create.headers.get('x-farebox-held-usd'), taskCostOf(create), create.costUsd],
        ['0.500000000', null, null],
      )
      const { id } = create
      for (const told of [
        await untilState(url, secret, id, state),
        await delay(1_000).then(() => cancel(url, secret, id)),
      ]) {
        assert.equal(outputOf(told).task_status, state)
        assert.equal(taskCostOf(told), cost)
        // The answer itself is free, and its own id is in no log.
        assert.equal(told.costUsd, null)
        assert.equal((await ask(url, secret, `/v1/requests/${told.id}`)).status, 404)
      }
      assert.equal(await listedCost(secret, id), cost)
      const record = Object((await ask(url, secret, `/v1/requests/${id}`)).json.cost)
      assert.equal(record.usd, cost)
      const { data } = (await ask(url, secret, '/v1/requests')).json
      assert.deepEqual(
        (data as { id: string; cost: { usd: string } }[]).map((one) => [one.id, one.cost.usd]),
        [[id, cost]],
      )
      const { totals } = (await ask(url, secret, '/v1/usage?start_time=1')).json
      assert.equal(Object(totals).charged_micros_usd, record.micros_usd)
    })

  it('BASE-5 is not told before its end: what is held is, by the create and the record', async () => {
    const secret = await newSecret()
    const parameters = { duration: 5, resolution: '720P' }
    const create = await createTask(url, secret, { words: WAITS, parameters })
    const { id } = create
    assert.equal(create.headers.get('x-farebox-held-usd'), '0.500000000')
    assert.equal(taskCostOf(await poll(url, secret, id)), null)
    assert.equal(taskCostOf(await poll(url, secret, crypto.randomUUID())), null)
    assert.equal(await listedCost(secret, id), null)
    const { held, cost } = (await ask(url, secret, `/v1/requests/${id}`)).json
    assert.deepEqual([Object(held).usd, cost], ['0.500000000', undefined])
  })

  it('BASE-5 is what is left of it where some was given back, everywhere alike', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { parameters: { duration: 5, resolution: '720P' } })
    await untilStored(pool, id, 'SUCCEEDED')
    await reverseCharge(pool, ids.next(), id, nanos(150_000_000n))
    assert.equal(taskCostOf(await poll(url, secret, id)), '0.350000000')
    assert.equal(await listedCost(secret, id), '0.350000000')
    assert.equal(Object((await ask(url, secret, `/v1/requests/${id}`)).json.cost).usd, '0.350000000')
  })

  it('is quoted as the most, and a quote is kept', async () => {
    const secret = await newSecret()
    const parameters = { duration: 5, resolution: '720P' }
    const quote = await createTask(url, secret, { parameters, headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(quote.status, 200, quote.text)
    assert.match(quote.text, /0\.500000000/)
    const quoteId = String(quote.json.quote_id)
    const told = await createTask(url, secret, { parameters, headers: { 'x-farebox-quote-id': quoteId } })
    assert.equal(told.status, 200, told.text)
    const again = await createTask(url, secret, { parameters, headers: { 'x-farebox-quote-id': quoteId } })
    assert.equal(codeOf(again), 'quote_used')
    await untilStored(pool, told.id, 'SUCCEEDED')
  })

  it('is not what was quoted where the units are others by now', async () => {
    const secret = await newSecret()
    const model = 'sandbox/video-repriced'
    await saveModel({ pool }, { id: model, contextWindow: 1_000, outputCap: 5, outputMost: 15, tokenizer: 'bytes_3' })
    await saveRoute({ pool, ids }, { model, slot: 'video', protocol: 'video' })
    const request = { headers: ASYNC, body: { ...bodyOf({ parameters: { duration: 5, resolution: '720P' } }), model } }
    await setModelPrice({ pool }, { model, videos: { '480P': '0.05', '720P': '0.10' } })
    await until(async () => (await ask(url, secret, CREATE, quoting(request))).status === 200, PATIENCE_MS, 'the model')
    const { quote_id } = (await ask(url, secret, CREATE, quoting(request))).json
    await setModelPrice({ pool }, { model, videos: { '720P': '0.10', '1080P': '0.15' } })
    const redeem = () =>
      ask(url, secret, CREATE, { ...request, headers: { ...ASYNC, 'x-farebox-quote-id': String(quote_id) } })
    await until(async () => codeOf(await redeem()) === 'quote_invalid', PATIENCE_MS, 'the new price')
  })

  it('refuses a create beyond the cap or the balance, before any upstream hears of it', async () => {
    const { secret } = await makeCustomer(pool, { money: 400_000_000n })
    const parameters = { duration: 5, resolution: '720P' }
    const told = await createTask(url, secret, { parameters })
    assert.equal(codeOf(told), 'insufficient_balance')
    assert.match(told.text, /What costs is parameters\.duration: 5\. This call fits with at most 4\./)
    const capped = await createTask(url, secret, { parameters, headers: { 'x-farebox-max-cost-usd': '0.4' } })
    assert.equal(codeOf(capped), 'cost_cap_exceeded')
  })

  it('an Idempotency-Key makes one task, while it runs and after it', async () => {
    const secret = await newSecret()
    const headers = { 'idempotency-key': 'once' }
    const id = await created(url, secret, { headers })
    const again = await createTask(url, secret, { headers })
    assert.deepEqual([again.status, codeOf(again)], [409, 'idempotency_running'])
    const { first_request_id, task_id, message } = errorOf(again)
    assert.deepEqual([first_request_id, task_id, again.headers.get('retry-after')], [id, id, '5'])
    assert.match(String(message), new RegExp(`Poll the task ${id}\\.$`))
    assert.equal(outputOf(await poll(url, secret, String(task_id))).task_id, id)
    await untilStored(pool, id, 'SUCCEEDED')
    const after = await createTask(url, secret, { headers })
    assert.deepEqual([codeOf(after), errorOf(after).task_id], ['idempotency_completed', id])
  })
})

describe('several tasks of a key', TOGETHER, () => {
  it('LIMIT-3 TASK-6 a fourth at once answers 429 with Retry-After; one that has finished frees its place', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const short = await created(url, secret)
    for (let at = 0; at < 2; at += 1) await created(url, secret, { words: WAITS })
    const fourth = await createTask(url, secret)
    assert.equal(fourth.status, 429)
    assert.ok(Number(fourth.headers.get('retry-after')) > 0)
    isDataFault(fourth, 'rate_limit_exceeded', 'rate_limit_error')
    const another = await makeKey(pool, workspaceId)
    await created(url, another.secret, { words: WAITS })
    await untilStored(pool, short, 'SUCCEEDED')
    await created(url, secret, { words: WAITS })
  })

  it('are listed by their key, the newest first, in pages', async () => {
    const secret = await newSecret()
    const made: string[] = []
    for (let at = 0; at < 3; at += 1) made.push(await created(url, secret, { words: WAITS }))
    const first = await ask(url, secret, `${LIST}?limit=2`)
    assert.equal(first.status, 200, first.text)
    const idsOf = ({ json }: Told) =>
      (json.data as { output: { task_id: string } }[]).map(({ output }) => output.task_id)
    assert.deepEqual(idsOf(first), [made[2], made[1]])
    const second = await ask(url, secret, `${LIST}?limit=2&before=${first.json.next_before}`)
    assert.deepEqual(idsOf(second), [made[0]])
    assert.equal(second.json.next_before, null)
    assert.equal((await ask(url, secret, `${LIST}?limit=0`)).status, 400)
    assert.deepEqual(idsOf(await ask(url, await newSecret(), LIST)), [])
  })
})

describe('canceling a task', TOGETHER, () => {
  it('TASK-9 ends one that waits, by what its upstream says', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: WAITS })
    const told = await cancel(url, secret, id)
    assert.equal(told.status, 200, told.text)
    assert.equal(outputOf(told).task_status, 'PENDING', 'only the upstream ends a task')
    const row = await untilStored(pool, id, 'CANCELED')
    assert.equal(row.charged, 0n)
    assert.equal(row.slots, 0)
    const { totals } = (await ask(url, secret, '/v1/usage?start_time=1')).json
    const { requests, failed_requests } = Object(totals)
    assert.deepEqual({ requests, failed_requests }, { requests: 1, failed_requests: 0 })
  })

  it('TASK-9 is not refused because it was just polled', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: WAITS })
    await Promise.all([poll(url, secret, id), poll(url, secret, id)])
    assert.equal((await cancel(url, secret, id)).status, 200)
  })

  it('TASK-9 is a no-op on one that has ended', async () => {
    const secret = await newSecret()
    const id = await created(url, secret)
    const before = outputOf(await untilState(url, secret, id, 'SUCCEEDED'))
    const told = await cancel(url, secret, id)
    assert.equal(told.status, 200)
    assert.deepEqual(outputOf(told), before)
  })

  it('says so where the upstream can not end it', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: RUNS })
    await untilState(url, secret, id, 'RUNNING')
    const told = await cancel(url, secret, id)
    assert.equal(told.status, 409, told.text)
    assert.equal(codeOf(told), 'task_not_cancelable')
    assert.equal(told.headers.get('x-should-retry'), 'false')
  })
})

describe('what a task keeps', () => {
  it('is sealed, and gone when it expires', async () => {
    const secret = await newSecret()
    const id = await created(url, secret, { words: 'canary-prompt-7f3a' })
    const videoUrl = String(outputOf(await untilState(url, secret, id, 'SUCCEEDED')).video_url)
    const { rows } = await pool.query('select tasks::text as text from tasks where id = $1', [id])
    assert.doesNotMatch(rows[0].text, /canary/)
    assert.doesNotMatch(rows[0].text, new RegExp(Buffer.from('canary').toString('hex')))
    assert.ok(!rows[0].text.includes(Buffer.from(videoUrl).toString('hex')))
  })
})
