import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { usd } from '../../kernel/money.ts'
import { keyForm } from './key-parts.ts'
import { refusedRequestView } from './request.ts'
import { requestForm } from './request-forms.ts'

const EVIL = '<img src=x onerror=alert(1)>'
const KEY = keyForm.parse({
  id: 'a-key',
  name: 'web-app',
  mode: 'test',
  state: 'active',
  created_at: '2026-11-01T00:00:00Z',
  expires_at: null,
  revoked_at: null,
  previous_secret_until: null,
  member_id: null,
  budget: { period: 'month', amount: { usd: '5.000000000' } },
  rates: { requests_per_minute: null, tokens_per_minute: null, concurrency: null },
  scopes: null,
  allowed_addresses: null,
  tags: null,
  set_by_operator: [],
  kind: 'key',
})
const stateWith = (left: string) => ({
  id: 'a-key',
  budget: { spent: usd('0'), held: usd('0'), left: usd(left), resets_at: null },
  last_used_at: null,
  refusals: [],
})

function refused(refusal: object) {
  const call = requestForm.parse({
    id: 'a-call',
    operation: 'deep_research',
    model: EVIL,
    outcome: 'refused',
    failed: false,
    cost: { usd: '0.000000000' },
    begun_at: null,
    ended_at: '2026-11-20T11:00:00.123Z',
    end_user: null,
    tags: {},
    made_by: { id: 'a-key', kind: 'key', name: EVIL },
    refusal: {
      code: 'budget_exceeded',
      status: 402,
      message: EVIL,
      needed: { usd: '0.100000000' },
      left: { usd: '0.040000000' },
      budget: { kind: 'key', subject: null, period: 'month' },
      limited_by: null,
      fix: { output_limit: 512, retry_after_seconds: null, url: 'https://site.example/console/a/test/keys/a-key' },
      ...refusal,
    },
  })
  if (call.outcome !== 'refused') return assert.fail(call.outcome)
  return call
}

function shown(refusal: object, left = '0.040000000', mayChange = true): string {
  const where = { path: '/requests', keysPath: '/keys', nowMs: Date.parse('2026-11-20T12:00:00Z') }
  const about = { key: KEY, state: stateWith(left), keysPath: '/keys', mayChange }
  return String(refusedRequestView(refused(refusal), where, about))
}

describe('a refused request', () => {
  it('says what was missing, and what would have let it through, with one button', () => {
    const text = shown({})
    assert.match(text, /Refused <span class="status">402/)
    for (const amount of ['0.100000000', '0.040000000', '0.060000000'])
      assert.ok(text.includes(`value="${amount}"`), amount)
    assert.match(text, /An output limit of 512 tokens/)
    assert.match(text, /href="\/keys\/a-key\/edit\?amount=5\.06"/)
    assert.equal(text.split('class="fb-button"').length - 1, 1)
    assert.doesNotMatch(text, /<img/)
  })

  it('says where it would fit now', () => {
    const text = shown({}, '4.000000000')
    assert.match(text, /It would fit now/)
    assert.match(text, /href="\/keys\/a-key">/)
  })

  it('leads whoever may not change the key, and other reasons, to the page that mends them', () => {
    assert.match(shown({}, '0', false), /href="https:\/\/site\.example\/console\/a\/test\/keys\/a-key"/)
    const limit = {
      code: 'rate_limit_exceeded',
      status: 429,
      needed: null,
      left: null,
      budget: null,
      limited_by: 'key',
    }
    const text = shown({ ...limit, fix: { output_limit: null, retry_after_seconds: 3, url: 'https://site.example/k' } })
    assert.match(text, /The same call, 3 seconds later/)
    assert.match(text, /Change its limits/)
    const none = shown({ ...limit, fix: { output_limit: null, retry_after_seconds: null, url: null } })
    assert.equal(none.split('class="fb-button"').length - 1, 0)
  })
})
