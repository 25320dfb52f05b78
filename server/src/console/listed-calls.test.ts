import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type EndedCall,
  filtersIn,
  hrefWith,
  isAmong,
  momentParts,
  queryOf,
  rowOf,
  spanOf,
  sumOf,
} from './listed-calls.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const CALL: EndedCall = {
  id: 'a call',
  operation: 'chat_completions',
  model: 'sandbox/text',
  outcome: 'posted',
  failed: false,
  cost: { usd: '0.000289500' },
  begun_at: '2026-11-20T11:59:58.100Z',
  ended_at: '2026-11-20T11:59:58.139Z',
  end_user: { id: 'alice', label: 'Alice' },
  tags: { team: 'search=1' },
  made_by: { id: 'a key', kind: 'key', name: 'web-app' },
}

describe('a row of the list', () => {
  it('says when a call ended, what it took and what it cost', () => {
    const row = rowOf(CALL, NOW)
    assert.deepEqual(
      [row.kind, row.day, row.clock, row.fraction, row.took, row.usd],
      ['charged', '', '11:59:58', '.139', '39 ms', '0.000289500'],
    )
    assert.equal(rowOf({ ...CALL, outcome: 'voided' }, NOW).usd, '')
  })

  it('names the day where it is not today', () => {
    assert.deepEqual(momentParts('2026-11-19T23:59:59.001Z', NOW), ['19 Nov ', '23:59:59', '.001'])
  })

  it('says how long something took in the unit that fits', () => {
    const said = [0, 2.34, 99.94, 184, 1_920, 12_340, 61_000, 3_725_000].map(spanOf)
    assert.deepEqual(said, ['0 ms', '2.3 ms', '99.9 ms', '184 ms', '1.92 s', '12.3 s', '1 min 1 s', '1 h 2 min'])
  })
})

describe('sums', () => {
  it('are exact', () => {
    assert.equal(sumOf([]), '0.000000000')
    assert.equal(sumOf(['9007199254.740993001', '0.000000001', '1']), '9007199255.740993002')
  })
})

describe('filters', () => {
  it('ask the account API in its own words, and for times in UTC', () => {
    const filters = filtersIn(new URLSearchParams('operation=rerank&key=&within=hour&tag=+a%3Db+&evil=1'))
    assert.deepEqual(filters, { operation: 'rerank', within: 'hour', tag: 'a=b' })
    assert.deepEqual(queryOf(filters, NOW), {
      operation: 'rerank',
      tag: 'a=b',
      limit: '50',
      start: '2026-11-20T11:00:00.000Z',
    })
    const times = queryOf({ within: 'week', start: '2026-11-01T10:30', end: '2026-11-02T10:30:05' }, NOW)
    assert.deepEqual([times.start, times.end], ['2026-11-01T10:30:00Z', '2026-11-02T10:30:05Z'])
    assert.equal(hrefWith('/requests', { ...filters, outcome: '' }), '/requests?operation=rerank&within=hour&tag=a%3Db')
  })

  it('tell whether a call that has just ended is among what is looked for', () => {
    const yes = [
      {},
      { operation: 'chat_completions', model: 'sandbox/text', key: 'a key', outcome: 'posted', within: 'hour' },
      { tag: 'team=search=1', end_user: 'alice' },
      { min_cost_usd: '0.0002895', max_cost_usd: '0.0002895' },
    ]
    const no = [
      ...[{ operation: 'rerank' }, { model: 'other' }, { key: 'other' }, { outcome: 'voided' }, { outcome: 'open' }],
      ...[
        { tag: 'team=search' },
        { end_user: 'bob' },
        { min_cost_usd: '0.000289501' },
        { max_cost_usd: '0.000289499' },
      ],
      ...[{ cursor: 'older' }, { end: '2026-11-21T00:00' }],
    ]
    for (const filters of yes) assert.equal(isAmong(CALL, filters), true, JSON.stringify(filters))
    for (const filters of no) assert.equal(isAmong(CALL, filters), false, JSON.stringify(filters))
  })
})
