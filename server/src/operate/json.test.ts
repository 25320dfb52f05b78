import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { usd } from '../kernel/money.ts'
import { decimal } from '../kernel/rational.ts'
import { Secret } from '../kernel/secret.ts'
import { resultAsJson } from './json.ts'

describe('a result for programs', () => {
  it('has names in snake_case, amounts in USD, times as ISO 8601 and multipliers as decimals', () => {
    const [line = '', ...more] = resultAsJson({
      callId: 'c',
      left: usd('0.5'),
      amountUsd: usd('1'),
      createdAt: new Date('2027-01-31T00:00:00Z'),
      multiplier: decimal('0.8'),
      nothing: null,
      keys: [{ isNew: true, prices: { '720P': '0.1' } }],
    })
    assert.deepEqual(more, [])
    assert.deepEqual(JSON.parse(line), {
      call_id: 'c',
      left_usd: '0.500000000',
      amount_usd: '1.000000000',
      created_at: '2027-01-31T00:00:00.000Z',
      multiplier: '0.8',
      nothing: null,
      keys: [{ is_new: true, prices: { '720P': '0.1' } }],
    })
  })

  it('is a line for each of a list, and none for an empty one', () => {
    assert.deepEqual(resultAsJson([{ id: 'a' }, { id: 'b' }]), ['{"id":"a"}', '{"id":"b"}'])
    assert.deepEqual(resultAsJson([]), [])
  })

  it('has what is in a map as it is, and no secret', () => {
    const [line] = resultAsJson({ before: new Map([['tokensPerMinute', 1]]), secret: new Secret('canary') })
    assert.equal(line, '{"before":{"tokensPerMinute":1},"secret":"[redacted]"}')
  })
})
