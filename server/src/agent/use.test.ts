import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tagDetail } from '../catalogue/operations/tag-detail.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { Fault, type FaultCode } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { createUse } from './use.ts'

const caller = { scopes: [], budget: {}, limits: { from: { key: { requestsPerMinute: 1 } } } }

/** What is known of a call that failed so. */
async function failing(code: FaultCode, headers: Record<string, string> = {}) {
  const { use } = createUse({
    run: () => Promise.reject(new Fault(code, { headers })),
    operations: { find: () => tagDetail },
    free: { find: () => undefined },
    headerNames: { cost: 'x-cost', balance: 'x-balance' },
    mandates: { linked: (_: unknown, fault: Fault) => fault },
    refused() {},
  } as unknown as Parameters<typeof createUse>[0])
  const wanted = { id: 'c' as Id, operationId: 'tag_detail', given: {}, maxCost: '0.5', idempotencyKey: undefined }
  return use({ caller, headers: {} } as unknown as AgentRequest, wanted)
}

describe('a call that failed without saying what it cost', () => {
  for (const code of ['internal_error', 'settlement_timeout', 'billing_dependency_timeout', 'outcome_unknown'] as const)
    it(`may have cost as much as it could: ${code}`, async () => {
      assert.equal((await failing(code)).atMost, usd('0.5'))
    })

  for (const code of ['cost_cap_exceeded', 'invalid_request', 'upstream_unreachable', 'idempotency_completed'] as const)
    it(`has cost nothing where that is certain: ${code}`, async () => {
      assert.equal((await failing(code)).atMost, undefined)
    })

  it('is charged what it says, where it says so', async () => {
    const { cost, atMost } = await failing('internal_error', { 'x-cost': '0.1' })
    assert.deepEqual([cost, atMost], [usd('0.1'), undefined])
  })
})
