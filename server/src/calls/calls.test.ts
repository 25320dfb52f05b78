import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { silentLog } from '../telemetry/log.ts'
import type { Call } from './call.ts'
import { createCalls } from './calls.ts'
import type { Query } from './query.ts'

const ids = createIds({ clock: systemClock })

function admission(): Call {
  const [id, accountId, credentialId] = [ids.next(), ids.next(), ids.next()]
  return { id, accountId, credentialId, operation: 'rerank', hold: null, tokens: 0, windows: [], claims: [] }
}

/** Calls over a PostgreSQL that answers when the test says so, and a clock that the test moves. */
function stage() {
  let passedMs = 0
  const asked: (() => void)[] = []
  const query: Query = () =>
    new Promise((resolve) => {
      const row = ['begun', 0n, null, null, null, null, null, null, null, null, null, '2026-01-01']
      asked.push(() => resolve(Array.from({ length: 10 }, () => row)))
    })
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs }
  const calls = createCalls({ query, ownerId: ids.next(), clock, log: silentLog, beginDeadlineMs: 60_000 })
  return {
    calls,
    pass: (durationMs: number) => {
      passedMs += durationMs
    },
    async answer(): Promise<void> {
      while (asked.length === 0) await systemClock.sleep(1)
      asked.shift()?.()
    },
    async untilAsked(): Promise<void> {
      while (asked.length === 0) await systemClock.sleep(1)
    },
  }
}

describe('a begin that would wait for too long', () => {
  it('is refused at once, while those before it are still answered', async () => {
    const { calls, pass, answer, untilAsked } = stage()
    const inFlight = calls.begin(admission())
    await untilAsked()
    const waiting = calls.begin(admission())
    pass(2_600)
    await assert.rejects(
      calls.begin(admission()),
      (error) => error instanceof Fault && error.code === 'overloaded' && error.retryAfterSeconds === 1,
    )
    await answer()
    await answer()
    assert.deepEqual([(await inFlight).outcome, (await waiting).outcome], ['begun', 'begun'])
    const next = calls.begin(admission())
    await answer()
    assert.equal((await next).outcome, 'begun')
  })

  it('waits where nobody has waited for long', async () => {
    const { calls, pass, answer, untilAsked } = stage()
    const inFlight = calls.begin(admission())
    await untilAsked()
    // The batch itself may take as long as PostgreSQL is given.
    pass(2_600)
    const next = calls.begin(admission())
    await answer()
    await answer()
    assert.deepEqual([(await inFlight).outcome, (await next).outcome], ['begun', 'begun'])
  })
})
