import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Farebox, FareboxError, type Progress, TaskError, type TaskStatus } from '../../client/src/index.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { FakeClock } from './fake-clock.ts'
import { answer } from './simulated-gateway.ts'

const WAITS = count({ full: 5_000, reduced: 200 })
const FINAL: ReadonlySet<string> = new Set(['SUCCEEDED', 'FAILED', 'CANCELED'])
const TROUBLE = ['cut', 'limited', 'busy'] as const
type Look = TaskStatus | (typeof TROUBLE)[number]

const look: fc.Arbitrary<Look> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom<Look>('PENDING', 'RUNNING', 'UNKNOWN') },
  { weight: 2, arbitrary: fc.constantFrom<Look>(...TROUBLE) },
)
const script = fc.record({
  looks: fc.array(look, { maxLength: 90 }),
  last: fc.constantFrom<Look>('SUCCEEDED', 'FAILED', 'CANCELED', 'RUNNING', 'UNKNOWN'),
  tookMs: fc.constantFrom(0, 40, 2_000, 29_000),
  chance: fc.double({ min: 0, max: 0.999_999, noNaN: true }),
})

function taskAnswer(status: Look): Response {
  if (status === 'cut') throw new TypeError('fetch failed')
  const fault = (code: string) => ({ error: { code, message: code, type: 'x' } })
  if (status === 'limited') return answer(429, fault('rate_limit_exceeded'), { 'retry-after': '1' })
  if (status === 'busy') return answer(503, fault('overloaded'), { 'retry-after': '9' })
  const cost = FINAL.has(status)
    ? { 'x-farebox-task-cost-usd': status === 'FAILED' ? '0.000000000' : '0.500000000' }
    : {}
  const output = {
    task_id: 'a-task',
    task_status: status,
    ...(status === 'FAILED' && { code: 'Bad', message: 'Too dark.' }),
  }
  return answer(200, { output, request_id: 'r' }, { 'x-request-id': 'r', ...cost })
}

/** Each look's beginning, and what came of it all. */
function createWaiter(looks: readonly Look[], last: Look, { tookMs = 0, chance = 0.5 } = {}) {
  const clock = new FakeClock()
  const atMs: number[] = []
  const given: Look[] = []
  const farebox = new Farebox({
    apiKey: 'k',
    baseUrl: 'https://simulated.invalid',
    clock,
    random: () => chance,
    async fetch(url, { signal }) {
      assert.match(url, /\/apis\/v1\/services\/aigc\/tasks\/a-task$/)
      atMs.push(clock.nowMs())
      const aborted = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([clock.sleep(tookMs), aborted])
      const status = looks[atMs.length - 1] ?? last
      given.push(status)
      return taskAnswer(status)
    },
  })
  return { clock, farebox, atMs, given }
}

describe('waiting for a task', () => {
  it('CLIENT-3 looks every 3 to 5 seconds, never twice in half a second, for 5 minutes in all', async () => {
    const seen = { looks: 0, succeeded: 0, failed: 0, canceled: 0, late: 0 }
    await fc.assert(
      fc.asyncProperty(script, async ({ looks, last, tookMs, chance }) => {
        const { clock, farebox, atMs, given } = createWaiter(looks, last, { tookMs, chance })
        const told: Progress[] = []
        const came = await clock.until(
          farebox.tasks.wait('a-task', { onProgress: (one) => told.push(one) }).catch((error: unknown) => error),
        )
        atMs.slice(1).forEach((at, index) => {
          const before = atMs[index] ?? 0
          const news = looks[index] ?? last
          const waited = at - before
          assert.ok(waited >= 2_999.999, `looked again after ${waited} ms`)
          // Longer only where the look itself took long, or where it was told to wait.
          const longest = Math.max(5_000, tookMs + (news === 'busy' ? 9_000 : news === 'limited' ? 1_000 : 0))
          assert.ok(waited <= longest + 0.001, `looked again only after ${waited} ms`)
        })
        assert.ok(clock.nowMs() <= 301_000, `it took ${clock.nowMs()} ms`)
        const heard = given.filter((one) => !TROUBLE.some((trouble) => trouble === one))
        assert.deepEqual(
          told.map(({ status }) => status),
          heard,
        )
        assert.ok(
          given.slice(0, -1).every((one) => !FINAL.has(one)),
          'it goes on after the end',
        )
        seen.looks += atMs.length
        if (came instanceof TaskError) {
          const end = came.code.slice('task_'.length)
          assert.equal(came.task?.output.task_status, heard.at(-1))
          assert.equal(came.taskId, 'a-task')
          if (end === 'timeout') seen.late += 1
          else seen[end === 'failed' ? 'failed' : 'canceled'] += 1
          if (end === 'timeout') assert.ok(!FINAL.has(heard.at(-1) ?? '') && came.cost === null)
          else assert.equal(came.cost?.usd, end === 'failed' ? '0.000000000' : '0.500000000')
        } else {
          assert.equal(heard.at(-1), 'SUCCEEDED')
          assert.equal(Object(came).cost.usd, '0.500000000')
          seen.succeeded += 1
        }
      }),
      { numRuns: WAITS, seed },
    )
    for (const [what, times] of Object.entries(seen)) assert.ok(times > WAITS / 50, `${what}: ${times}`)
    recordProof('client-tasks', 'generated waits', { waits: WAITS, ...seen, counterexamples: 0 })
  })

  it('CLIENT-3 does not take UNKNOWN for an end', async () => {
    const { clock, farebox, atMs } = createWaiter(['UNKNOWN', 'UNKNOWN', 'PENDING', 'UNKNOWN'], 'SUCCEEDED')
    const came = await clock.until(farebox.tasks.wait('a-task').catch((one: unknown) => one))
    assert.ok(!(came instanceof Error), String(came))
    assert.equal(atMs.length, 5)
  })

  it('CLIENT-3 waits as long as it is told, and says that the task goes on', async () => {
    const { clock, farebox, atMs } = createWaiter([], 'RUNNING')
    const error = await clock.until(farebox.tasks.wait('a-task', { timeoutMs: 20_000 }).catch((one: unknown) => one))
    assert.ok(error instanceof TaskError && error.code === 'task_timeout')
    assert.match(error.fix, /continues and may be charged/)
    assert.deepEqual([atMs.length, clock.nowMs()], [6, 20_000])
  })

  it('CLIENT-3 stops when its signal says so, in the middle of a wait', async () => {
    const { clock, farebox, atMs } = createWaiter([], 'RUNNING')
    const leaver = new AbortController()
    const reason = new Error('enough')
    clock.setTimer(10_500, () => leaver.abort(reason))
    const error = await clock.until(
      farebox.tasks.wait('a-task', { signal: leaver.signal }).catch((one: unknown) => one),
    )
    assert.equal(error, reason)
    assert.deepEqual([atMs.length, clock.nowMs()], [3, 10_500])
  })

  it('does not wait for what the key may not see', async () => {
    const clock = new FakeClock()
    const refusal = { error: { code: 'invalid_credential', message: 'no', type: 'x' } }
    const fetch = async () => answer(401, refusal, {})
    const farebox = new Farebox({ apiKey: 'k', baseUrl: 'https://simulated.invalid', clock, fetch })
    const error = await clock.until(farebox.tasks.wait('a-task').catch((one: unknown) => one))
    assert.ok(error instanceof FareboxError && error.code === 'invalid_credential')
    assert.equal(clock.nowMs(), 0)
  })
})
