import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { roomOfAnswer } from './pictures.ts'
import { tell } from './tell.ts'

const LEFT = { balance: undefined, budget: undefined }
const JSON_TYPE = { 'content-type': 'application/json' }

function told(body: string) {
  const answer = { status: 200, headers: JSON_TYPE, body }
  const used = { id: 'r' as Id, operationId: 'o', answer, cost: usd('0.1'), held: undefined, balance: undefined }
  return tell(used, LEFT, roomOfAnswer())
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

describe('an answer that is nested', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

  it('is told as JSON as deep as anybody needs', () => {
    assert.deepEqual(told(nested(60)).structured.result, JSON.parse(nested(60)))
  })

  for (const depth of [65, 1_000, 3_000, 50_000])
    it(`is told as a text where it is nested too deep to stand within another: ${depth}`, () => {
      const { structured, isError } = told(nested(depth))
      assert.equal(isError, false)
      assert.ok(depthOf(structured) < 10)
      assert.equal(structured.cost_usd, '0.100000000')
      if (depth <= 3_000) assert.equal(structured.result_text, nested(depth))
      // What tells of it can be written.
      assert.ok(JSON.stringify(structured).length > 0)
    })
})
