import assert from 'node:assert/strict'
import { after } from 'node:test'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { OutboundFailure } from '../../server/src/outbound/failure.ts'
import { createOutbound, type Outbound } from '../../server/src/outbound/outbound.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'

export const DEADLINES = { connectMs: 2_000, headersMs: 5_000, idleMs: 5_000, totalMs: 20_000 }

/** A client that ends with the test file, and resolves no name unless it is told how. */
export function startOutbound(parts: Partial<Parameters<typeof createOutbound>[0]> = {}): Outbound {
  const outbound = createOutbound({
    access: 'public',
    allowedOrigins: [],
    clock: systemClock,
    log: silentLog,
    resolve: async (name) => assert.fail(`${name} should not be resolved`),
    ...parts,
  })
  after(() => outbound.close())
  return outbound
}

export const get = (url: string) => ({ url, method: 'GET' as const })

/** Fails the test unless asking fails in the only way that it may. */
export async function failureOf(asking: Promise<unknown>, what = ''): Promise<OutboundFailure> {
  const failure = await asking.then(
    () => 'an answer',
    (error: unknown) => error,
  )
  assert.ok(failure instanceof OutboundFailure, `${what}: should be an OutboundFailure: ${failure}`)
  return failure
}
