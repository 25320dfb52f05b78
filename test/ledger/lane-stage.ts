import assert from 'node:assert/strict'
import { afterEach } from 'node:test'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Failed } from '../../server/src/calls/failed.ts'
import { createLane } from '../../server/src/calls/lane.ts'

/**
 * The lane by itself, over a PostgreSQL and a clock that the test plays: a batch stays in flight until the test answers
 * it, a pause lasts until the test ends it, and time passes when the test says so.
 */
type Batch = {
  readonly items: readonly string[]
  readonly answer: () => void
  readonly fail: (error: Error) => void
  /** Of some items the statement fails; the others are answered. */
  readonly failOf: (error: Error, ...items: readonly string[]) => void
}

export const locked = new Error('an account is locked')
export const lost = new Error('connection lost')
export const refused = new Error('refused')
export const DEADLINE_MS = 1_000

class Late extends Error {
  readonly sent: boolean
  constructor(sent: boolean) {
    super('late')
    this.sent = sent
  }
}

const stages: { readonly drain: () => Promise<void> }[] = []
/** A lane that has nothing left to do also stops its timer, without which the test process would not end. */
afterEach(async () => {
  for (const one of stages.splice(0)) await one.drain()
})

export function stage({ batchLimit = 10, queueLimit = 100 } = {}) {
  let nowMs = 0
  let draining = false
  const batches: Batch[] = []
  const pauses: (() => void)[] = []
  const paused: number[] = []
  const answeredLate: string[] = []
  const lane = createLane<string, string>({
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: (ms) => {
        paused.push(ms)
        return draining ? Promise.resolve() : new Promise((resolve) => pauses.push(resolve))
      },
    },
    idOf: (item) => item.split(' ')[0] ?? '',
    mayRepeat: (item) => !item.startsWith('once'),
    isContended: (error) => error === locked,
    accountOf: (item) => item.split('@')[1] ?? item,
    batchLimit,
    queueLimit,
    execute: (items) =>
      new Promise((resolve, reject) => {
        const failOf = (error: Error, ...failed: readonly string[]) =>
          resolve(items.map((item) => (failed.includes(item) ? new Failed(error) : `${item} done`)))
        const answer = () => failOf(lost)
        if (draining) answer()
        else batches.push({ items, answer, fail: reject, failOf })
      }),
    isTransient: (error) => error === lost,
    answeredLate: (item, result) => answeredLate.push(`${item}: ${result ?? 'an error'}`),
    lateness: (_, sent) => new Late(sent),
    overload: () => new Error('overload'),
  })
  const submit = (item: string, deadlineMs = DEADLINE_MS) => {
    const result = lane.submit(item, deadlineMs)
    result.catch(() => {})
    return result
  }
  const one = {
    lane,
    submit,
    answeredLate,
    /** How long each pause was to be. */
    paused,
    sent: () => batches.map(({ items }) => items),
    /** The batch that was sent as the nth. */
    async batch(nth: number): Promise<Batch> {
      await until(() => batches.length > nth, PATIENCE_MS, `batch ${nth}`)
      return batches[nth] ?? assert.fail()
    },
    /** The lane pauses, after a failure or to collect more, for the nth time. */
    async pausing(nth = 0): Promise<void> {
      await until(() => pauses.length > nth, PATIENCE_MS, `pause ${nth}`)
    },
    resume: () => pauses.at(-1)?.(),
    pass(ms: number) {
      nowMs += ms
    },
    async drain() {
      draining = true
      for (const resume of pauses) resume()
      for (const { answer } of batches) answer()
      await lane.idle()
    },
  }
  stages.push(one)
  return one
}

export async function latenessOf(work: Promise<string>): Promise<{ readonly sent: boolean }> {
  const outcome = await work.then(
    () => 'it was answered',
    (error: unknown) => error,
  )
  assert.ok(outcome instanceof Late, `it should have been late: ${String(outcome)}`)
  return { sent: outcome.sent }
}
