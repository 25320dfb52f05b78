import assert from 'node:assert/strict'
import { z } from 'zod'

const recorded = z.object({
  timeline: z.record(z.string(), z.number()),
  first_byte_ms: z.number().nullable(),
  upstream: z.array(
    z.strictObject({
      slot: z.string(),
      outcome: z.enum(['answered', 'not_sent', 'unknown']),
      status: z.number().nullable(),
      reason: z.string().nullable(),
      began_ms: z.number(),
      ended_ms: z.number(),
    }),
  ),
})

type Recorded = z.output<typeof recorded>['upstream'][number]
export type Attempted = Omit<Recorded, 'began_ms' | 'ended_ms'>

/** The attempts of a call as its record tells them, without their times once these are seen to be in order and within the call's own. */
export function attemptsIn(detail: unknown): readonly Attempted[] {
  const { timeline, first_byte_ms: firstByteMs, upstream } = recorded.parse(detail)
  const text = JSON.stringify(detail)
  // The last moment that is known: of a call that goes on as a task, when it was answered.
  const { begun = Number.NaN, answered = Number.NaN, settled = firstByteMs ?? answered } = timeline
  const spans = upstream.flatMap(({ began_ms, ended_ms }) => [began_ms, ended_ms])
  assert.ok(isRising([0, begun, ...spans, settled]), `attempts are out of order: ${text}`)
  assert.ok(isRising([begun, answered, settled]), `the timeline is out of order: ${text}`)
  if (firstByteMs !== null) assert.ok(isRising([answered, firstByteMs, settled]), `the first byte: ${text}`)
  return upstream.map(({ began_ms, ended_ms, ...attempt }) => attempt)
}

function isRising(times: readonly number[]): boolean {
  return times.every((time, at) => at === 0 || time >= (times[at - 1] ?? 0))
}
