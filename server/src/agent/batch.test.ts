import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AgentRequest } from '../http/agent-routes.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { createBatch } from './batch.ts'
import type { Use, Used, Wanted } from './use.ts'

type Came = Partial<Used>

const PICTURE = `iVBORw0KGgo${'A'.repeat(200)}`
const answer = (body: string) => ({ status: 200, headers: { 'content-type': 'application/json' }, body })
const failed = (code: ConstructorParameters<typeof Fault>[0], members = {}): Came => ({
  fault: new Fault(code, { members }),
})

/** A batch of calls, of which one comes to what is said of it. */
async function batch(came: readonly Came[], cap: number, own: object = {}) {
  const made: Wanted[] = []
  const callers: unknown[] = []
  const use: Use = async ({ caller }, wanted) => {
    made.push(wanted)
    callers.push(caller)
    const { id, operationId } = wanted
    return { id, operationId, cost: undefined, held: undefined, balance: undefined, ...came[made.length - 1] }
  }
  const run = createBatch({
    use,
    ids: { next: () => String(made.length) as Id } as Parameters<typeof createBatch>[0]['ids'],
    readLeft: async (_, balance) => ({ balance, budget: undefined }),
    makesPictures: (id) => id === 'image_generations',
    metaName: 'farebox/call',
  })
  const request = {
    id: 'r',
    caller: 'first',
    memory: { bytes: 0, shrink() {} },
    hasLeft: () => false,
    isDraining: () => false,
    callerNow: async () => 'now',
    ...own,
  }
  const calls = came.map(() => ({ operation_id: 'image_generations', arguments: {} }))
  const result = await run(request as unknown as AgentRequest, { calls, max_total_usd: cap }, 'key')
  const { results, total } = Object(result.structuredContent)
  return { result, results, total, callers, caps: made.map(({ maxCost }) => maxCost) }
}

describe('the cap of a batch', () => {
  it('counts what the same calls were charged when they were sent before', async () => {
    const { caps, total } = await batch([failed('idempotency_completed', { cost_usd: '0.7' }), {}], 1)
    assert.deepEqual(caps, ['1.000000000', '0.300000000'])
    assert.equal(total.charged_before_usd, '0.700000000')
    assert.equal(total.cost_usd, '0.000000000')
  })

  for (const code of ['idempotency_running', 'outcome_unknown', 'billing_dependency_timeout'] as const)
    it(`begins no further call where one of an earlier try may not have ended: ${code}`, async () => {
      const { caps, results, total } = await batch([failed(code), {}, {}], 1)
      assert.equal(caps.length, 1)
      assert.match(results[1].not_begun, /Call 1 of an earlier try may not have ended/)
      assert.equal(total.failed, 3)
    })

  it('counts the most that a call may have cost where nobody knows what it did', async () => {
    const unknown = { ...failed('internal_error'), atMost: usd('0.4') }
    const { caps, total, result } = await batch([unknown, {}], 1)
    assert.deepEqual(caps, ['1.000000000', '0.600000000'])
    assert.equal(total.cost_at_most_usd, '0.400000000')
    assert.match(JSON.stringify(result.content.at(-1)), /at most 0\.400000000 USD not known yet/)
  })
})

describe('what a batch has paid for', () => {
  it('is told where a later answer can not be', async () => {
    const unreadable = Object.defineProperty({ ...answer('') }, 'body', {
      get: () => assert.fail('it can not be read'),
    })
    const paid = { answer: answer('{"a":1}'), cost: usd('0.1') }
    const { results, total } = await batch([paid, { answer: unreadable, cost: usd('0.2') }], 1)
    assert.deepEqual([results[0].cost_usd, results[1].cost_usd], ['0.100000000', '0.200000000'])
    assert.equal(results[1].error.code, 'internal_error')
    assert.equal(total.cost_usd, '0.300000000')
  })

  it('is shown within equal parts of the room, so that none is paid for in vain', async () => {
    const large = { answer: answer(JSON.stringify('x'.repeat(200_000))), cost: usd('0.1') }
    const small = { answer: answer('{"a":1}'), cost: usd('0.1') }
    const { results } = await batch([large, small, large, small], 1)
    const shown = results.map((one: { result_text?: string }) => one.result_text?.length)
    assert.equal(shown[0], 25_000)
    // What the second has left belongs to those after it.
    assert.ok(shown[2] > 37_000, String(shown[2]))
    assert.deepEqual([results[1].result, results[3].result], [{ a: 1 }, { a: 1 }])
  })

  it('is no picture for which there is no room: such a call does not begin', async () => {
    const drawn = { answer: answer(JSON.stringify({ b64_json: PICTURE })), cost: usd('0.1') }
    const { results, caps, result } = await batch([drawn, drawn, drawn, drawn, drawn], 1)
    assert.equal(caps.length, 4)
    assert.match(results[4].not_begun, /images do not fit/)
    assert.equal(result.content.filter(({ type }) => type === 'image').length, 4)
  })
})

describe('between two calls of a batch', () => {
  it('it is found out again who calls', async () => {
    assert.deepEqual((await batch([{}, {}, {}], 1)).callers, ['first', 'now', 'now'])
  })

  it('nothing further begins for a key that has been revoked meanwhile', async () => {
    const callerNow = () => Promise.reject(new Fault('invalid_credential'))
    const { caps, results } = await batch([{ answer: answer('1'), cost: usd('0.1') }, {}, {}], 1, { callerNow })
    assert.equal(caps.length, 1)
    assert.match(results[1].not_begun, /credential is not valid/)
    assert.match(results[2].not_begun, /credential is not valid/)
  })

  it('nothing further begins in a process that is stopping', async () => {
    let asked = 0
    const isDraining = () => {
      asked += 1
      return asked > 1
    }
    const { caps, results } = await batch([{ answer: answer('1'), cost: usd('0.1') }, {}], 1, { isDraining })
    assert.equal(caps.length, 1)
    assert.match(results[1].not_begun, /shutting down/)
  })
})
