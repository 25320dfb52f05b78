import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tagDetail } from '../catalogue/operations/tag-detail.ts'
import type { CallRequest } from '../gateway/call-request.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { Fault, type FaultCode } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { createUse } from './use.ts'

const caller = { scopes: [], budget: {}, limits: { from: { key: { requestsPerMinute: 1 } } } }

/** What is known of a call that failed so, when it had begun or before. */
async function failing(code: FaultCode, headers: Record<string, string> = {}, begun = true) {
  const { use } = createUse({
    run({ progress }: CallRequest) {
      if (begun) Object.assign(progress ?? {}, { begun })
      return Promise.reject(new Fault(code, { headers }))
    },
    operations: { find: () => tagDetail },
    free: { find: () => undefined },
    headerNames: { cost: 'x-cost', balance: 'x-balance' },
    refused: (_: unknown, fault: Fault) => fault,
  } as unknown as Parameters<typeof createUse>[0])
  const wanted = { id: 'c' as Id, operationId: 'tag_detail', given: {}, maxCost: '0.5', idempotencyKey: undefined }
  return use({ caller, headers: {} } as unknown as AgentRequest, wanted)
}

describe('a call that failed without saying what it cost', () => {
  for (const code of ['internal_error', 'settlement_timeout', 'billing_dependency_timeout'] as const) {
    it(`may have cost as much as it could once it had begun: ${code}`, async () => {
      const { cost, atMost } = await failing(code)
      assert.deepEqual([cost, atMost], [undefined, usd('0.5')])
    })

    it(`has cost nothing before it had begun: ${code}`, async () => {
      const { cost, atMost } = await failing(code, {}, false)
      assert.deepEqual([cost, atMost], [0n, undefined])
    })
  }

  for (const code of ['idempotency_running', 'outcome_unknown'] as const)
    it(`may have cost as much as it could where an earlier call with its key has not ended: ${code}`, async () => {
      assert.equal((await failing(code, {}, false)).atMost, usd('0.5'))
    })

  it('is charged what it says, where it says so', async () => {
    const { cost, atMost } = await failing('internal_error', { 'x-cost': '0.1' })
    assert.deepEqual([cost, atMost], [usd('0.1'), undefined])
  })
})
