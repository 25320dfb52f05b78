import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import type { Customer, Told } from '../acceptance/installation.ts'
import { VIDEO } from './endpoints.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'
import type { Stack } from './stack.ts'

/** Video tasks. */
const TASKS = '/apis/v1/services/aigc/tasks'
const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/

const create = (stack: Stack, { secret }: Customer, words = '', headers: object = {}) =>
  stack.send(secret, {
    path: VIDEO.path,
    headers: { ...VIDEO.headers, ...headers },
    body: { model: 'sandbox/video', input: { prompt: `a fox ${words}` } },
  })
const idOf = ({ json }: Told) => String(Object(json.output).task_id)
const poll = (stack: Stack, { secret }: Customer, id: string) => stack.send(secret, { path: `${TASKS}/${id}` })

/** Polls as fast as is allowed until a task is what it says. */
async function ended(stack: Stack, customer: Customer, id: string): Promise<Told> {
  let told: Told | undefined
  await until(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 600))
      told = await poll(stack, customer, id)
      return /SUCCEEDED|FAILED|CANCELED/.test(String(Object(told.json.output).task_status))
    },
    PATIENCE_MS,
    'the end of a task',
  )
  return told as Told
}

export const TASK_PROBES: readonly Probe[] = [
  [
    'TASK-1 a create returns task_id, PENDING or RUNNING, and request_id',
    async (stack) => {
      const told = await create(stack, await stack.customer())
      assert.equal(told.status, 200, told.text)
      assert.match(String(Object(told.json.output).task_status), /^(PENDING|RUNNING)$/)
      assert.equal(told.json.request_id, told.id)
    },
  ],
  [
    'TASK-1 a create that starts running says RUNNING or PENDING, and ends like any other',
    async (stack) => {
      const customer = await stack.customer()
      const told = await create(stack, customer, 'sandbox:starts-running')
      const end = await ended(stack, customer, idOf(told))
      assert.equal(Object(end.json.output).task_status, 'SUCCEEDED')
    },
  ],
  [
    'TASK-1 a create without the header is 400 and says so',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(secret, { path: VIDEO.path, body: VIDEO.body }))
      requireError(told, 'data', 400)
      assert.match(told.text, /x-farebox-async/i)
    },
  ],
  [
    'TASK-2 TASK-5 a success has its video, prompt, times and usage, and is charged in full once',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer))
      const { json, text } = await ended(stack, customer, id)
      const output = Object(json.output)
      assert.equal(output.task_status, 'SUCCEEDED', text)
      assert.match(output.video_url, /^https?:\/\//)
      assert.match(output.orig_prompt, /^a fox/)
      for (const member of ['submit_time', 'scheduled_time', 'end_time']) assert.match(output[member], TIME, member)
      const { output_video_duration, video_count, SR } = Object(json.usage)
      assert.ok(output_video_duration > 0 && Number.isInteger(video_count) && Number.isInteger(SR))
      assert.ok(!('code' in output))
      assert.equal(await stack.chargedOf(customer), usd('0.5'))
      await poll(stack, customer, id)
      assert.equal(await stack.chargedOf(customer), usd('0.5'))
    },
  ],
  [
    'TASK-2 TASK-5 a failure has code and message flat in output, and costs nothing',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer, 'sandbox:task-ends=failed'))
      const output = Object((await ended(stack, customer, id)).json.output)
      assert.equal(output.task_status, 'FAILED')
      assert.equal(typeof output.code, 'string')
      assert.equal(typeof output.message, 'string')
      assert.ok(!('error' in output) && !('video_url' in output))
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
  [
    'TASK-5 a canceled task may be billed in part, by what the upstream reports',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer, 'sandbox:task-ends=canceled sandbox:canceled-seconds=2'))
      assert.equal(Object((await ended(stack, customer, id)).json.output).task_status, 'CANCELED')
      const charged = await stack.chargedOf(customer)
      assert.ok(charged > 0n && charged < usd('0.5'))
    },
  ],
  [
    'TASK-5 a pending task is held for and not charged',
    async (stack) => {
      const customer = await stack.customer()
      await create(stack, customer, 'sandbox:pending-ms=60000')
      assert.equal(await stack.chargedOf(customer), 0n)
      const { text } = await stack.send(customer.secret, { path: '/v1/balance' })
      assert.match(text, /"held":\{[^}]*[1-9]/)
    },
  ],
  [
    'TASK-5 a task that nobody polls is settled all the same',
    async (stack) => {
      const customer = await stack.customer()
      await create(stack, customer)
      await until(async () => (await stack.chargedOf(customer)) > 0n, PATIENCE_MS, 'a settlement')
    },
  ],
  ...['nothing', '01a1e66d-d0d9-7000-8c40-9411c99712f8', '%00', 'a%2Fb'].map(
    (id): Probe => [
      `TASK-3 a task that is not there is 200 UNKNOWN: ${id}`,
      async (stack) => {
        const told = await poll(stack, await stack.customer(), id)
        assert.equal(told.status, 200, told.text)
        assert.equal(Object(told.json.output).task_status, 'UNKNOWN')
      },
    ],
  ),
  [
    'TASK-3 a foreign task can’t be told from none',
    async (stack) => {
      const id = idOf(await create(stack, await stack.customer()))
      const { json } = await poll(stack, await stack.customer(), id)
      assert.equal(Object(json.output).task_status, 'UNKNOWN')
      assert.deepEqual(Object.keys(Object(json.output)).toSorted(), ['task_id', 'task_status'])
    },
  ],
  [
    'TASK-4 a task id as a query is 500 with the message unsupported uri',
    async (stack) => {
      const { secret } = await stack.customer()
      const { status, text } = await stack.send(secret, { path: `${TASKS}?task_id=1` })
      assert.equal(status, 500)
      assert.match(text, /unsupported uri/)
    },
  ],
  [
    'TASK-6 LIMIT-3 a fourth task at once is 429 with Retry-After, and a finished one frees its place',
    async (stack) => {
      const customer = await stack.customer()
      const made = [await create(stack, customer)]
      for (const _ of [1, 2]) made.push(await create(stack, customer, 'sandbox:running-ms=60000'))
      const fourth = await create(stack, customer)
      requireError(fourth, 'data', 429, 'rate_limit_exceeded')
      assert.ok(Number(fourth.headers.get('retry-after')) >= 1)
      await ended(stack, customer, idOf(made[0] as Told))
      assert.equal((await create(stack, customer)).status, 200)
    },
  ],
  [
    'TASK-7 a third poll within a second is 429 with Retry-After',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer, 'sandbox:running-ms=60000'))
      const told = await Promise.all(Array.from({ length: 6 }, () => poll(stack, customer, id)))
      const refused = told.filter(({ status }) => status === 429)
      assert.ok(refused.length >= 3)
      for (const one of refused) assert.notEqual(one.headers.get('retry-after'), null)
    },
  ],
  [
    'TASK-8 video_url is the video until its time is over, and not after',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer, 'sandbox:url-seconds=5'))
      const url = Object((await ended(stack, customer, id)).json.output).video_url
      assert.equal((await fetch(url)).status, 200)
      await until(async () => (await fetch(url)).status !== 200, PATIENCE_MS, 'the end of an address')
    },
  ],
  [
    'TASK-9 canceling a final task changes nothing',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer))
      await ended(stack, customer, id)
      const told = await stack.send(customer.secret, { path: `${TASKS}/${id}/cancel`, method: 'POST' })
      assert.ok(told.status < 500, told.text)
      await new Promise((resolve) => setTimeout(resolve, 600))
      assert.equal(Object((await poll(stack, customer, id)).json.output).task_status, 'SUCCEEDED')
      assert.equal(await stack.chargedOf(customer), usd('0.5'))
    },
  ],
  [
    'TASK-9 a queued task can be canceled, and costs nothing',
    async (stack) => {
      const customer = await stack.customer()
      const id = idOf(await create(stack, customer, 'sandbox:pending-ms=60000'))
      const told = await stack.send(customer.secret, { path: `${TASKS}/${id}/cancel`, method: 'POST' })
      assert.equal(told.status, 200, told.text)
      assert.equal(Object((await ended(stack, customer, id)).json.output).task_status, 'CANCELED')
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
  [
    'ERR-3 a repeated create with its Idempotency-Key is 409 and names the first task',
    async (stack) => {
      const customer = await stack.customer()
      const keyed = { 'idempotency-key': 'one-video' }
      const first = await create(stack, customer, 'sandbox:running-ms=60000', keyed)
      const again = await create(stack, customer, 'sandbox:running-ms=60000', keyed)
      requireError(again, 'data', 409, 'idempotency_running')
      assert.match(again.text, new RegExp(idOf(first)))
      assert.notEqual(again.headers.get('retry-after'), null)
    },
  ],
  [
    'TASK-5 a poll is free and says on the final one what the task cost',
    async (stack) => {
      const customer = await stack.customer()
      const told = await ended(stack, customer, idOf(await create(stack, customer)))
      assert.equal(told.headers.get('x-farebox-task-cost-usd'), '0.500000000')
    },
  ],
  [
    'LIMIT-1 polls count as requests of the key',
    async (stack) => {
      const customer = await stack.customer({ requestsPerMinute: 2 })
      const id = idOf(await create(stack, customer))
      await poll(stack, customer, id)
      assert.equal((await poll(stack, customer, 'nothing')).status, 429)
    },
  ],
  [
    'AUTH-1 a poll without a credential is 401',
    async (stack) => {
      assert.equal((await stack.send('', { path: `${TASKS}/1` })).status, 401)
    },
  ],
]
