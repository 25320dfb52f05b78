import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { type Customer, makeKey } from '../acceptance/installation.ts'
import { makeGranted } from '../identity/granted.ts'
import { APPROVED } from '../mcp/agents.ts'
import type { Probe } from './probe.ts'
import type { Stack } from './stack.ts'

/** The usage report. */
const RERANK = { path: '/v1/rerank', body: { query: 'a quick animal', documents: ['a snail', 'a fox'] } }
const TAG = { path: '/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=cats' }
const FIELDS = [
  ...['requests', 'failed_requests', 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'],
  ...['usage_value_micros_usd', 'charged_micros_usd'],
]
const DAY = 86_400

const usageOf = (stack: Stack, { secret }: Pick<Customer, 'secret'>, query: string) =>
  stack.send(secret, { path: `/v1/usage?${query}` })
const totalsOf = async (stack: Stack, customer: Pick<Customer, 'secret'>) =>
  Object((await usageOf(stack, customer, 'start_time=1')).json.totals)

/** Windows that are refused, by what is wrong with them. */
const WRONG_WINDOWS: Readonly<Record<string, string>> = {
  'without a start': '',
  'whose start is zero': 'start_time=0',
  'whose start is negative': 'start_time=-5',
  'whose start is fractional': 'start_time=1.5',
  'whose start is no number': 'start_time=yesterday',
  'whose start is empty': 'start_time=',
  'whose start is beyond int64': 'start_time=9223372036854775808',
  'whose start is after its end': 'start_time=2000&end_time=1000',
  'whose end is no number': 'start_time=1&end_time=now',
  'whose end is fractional': 'start_time=1&end_time=2.5',
  'whose end is negative': 'start_time=1&end_time=-1',
  'whose start is an exponent': 'start_time=1e9',
  'whose start is hexadecimal': 'start_time=0x10',
  'with two starts': 'start_time=1&start_time=2',
}

export const USAGE_PROBES: readonly Probe[] = [
  ...Object.entries(WRONG_WINDOWS).map(
    ([wrong, query]): Probe => [
      `USAGE-3 a window ${wrong} is 400 with nothing but { error: string }`,
      async (stack) => {
        const told = await usageOf(stack, await stack.customer(), query)
        assert.equal(told.status, 400, told.text)
        assert.deepEqual(Object.keys(told.json), ['error'])
        assert.equal(typeof told.json.error, 'string')
        assert.match(told.id, /./)
      },
    ],
  ),
  [
    'USAGE-1 a report has scope, currency USD, window, bucket_width 1d, totals and buckets',
    async (stack) => {
      const { status, json } = await usageOf(stack, await stack.customer(), 'start_time=1000')
      assert.equal(status, 200)
      const { currency, bucket_width, start_time, end_time, buckets, scope } = json
      assert.deepEqual([scope, currency, bucket_width, start_time], ['key', 'USD', '1d', 1_000])
      assert.ok(Math.abs(Number(end_time) - Date.now() / 1_000) < 100)
      assert.ok(Array.isArray(buckets))
    },
  ],
  [
    'USAGE-2 totals and each bucket have the eight figures as integers, buckets their window too',
    async (stack) => {
      const { json } = await usageOf(stack, await stack.customer(), `start_time=${Math.floor(Date.now() / 1_000) - 60}`)
      for (const one of [json.totals, ...[json.buckets].flat()].map(Object))
        for (const field of FIELDS) assert.ok(Number.isInteger(one[field]), field)
      const [bucket] = [json.buckets].flat().map(Object)
      assert.ok(Number.isInteger(bucket?.start_time) && Number.isInteger(bucket?.end_time))
    },
  ],
  [
    'USAGE-4 both ends of the window are echoed',
    async (stack) => {
      const { json } = await usageOf(stack, await stack.customer(), 'start_time=1700000000&end_time=1700086400')
      assert.deepEqual([json.start_time, json.end_time], [1_700_000_000, 1_700_086_400])
    },
  ],
  [
    'USAGE-6 the buckets add up to the totals, and the totals to the ledger',
    async (stack) => {
      const customer = await stack.customer()
      for (const _ of [1, 2, 3]) await stack.send(customer.secret, TAG)
      await until(async () => (await totalsOf(stack, customer)).requests === 3, PATIENCE_MS, 'usage')
      const now = Math.floor(Date.now() / 1_000)
      const { json } = await usageOf(stack, customer, `start_time=${now - 3 * DAY}`)
      for (const field of FIELDS) {
        const sum = [json.buckets].flat().reduce((all: number, one) => all + Object(one)[field], 0)
        assert.equal(sum, Object(json.totals)[field], field)
      }
      assert.equal(BigInt(Object(json.totals).charged_micros_usd) * 1_000n, await stack.chargedOf(customer))
    },
  ],
  [
    'USAGE-5 a key sees its own usage alone',
    async (stack) => {
      const customer = await stack.customer()
      const other = await makeKey(stack.pool, customer.workspaceId, APPROVED)
      await stack.send(customer.secret, TAG)
      await until(async () => (await totalsOf(stack, customer)).requests === 1, PATIENCE_MS, 'usage')
      assert.equal((await totalsOf(stack, other)).requests, 0)
    },
  ],
  [
    'USAGE-5 an access token with account.read sees the account, and says so in scope',
    async (stack) => {
      const customer = await stack.customer()
      await stack.send(customer.secret, TAG)
      const scopes = ['calls', 'account.read'] as const
      const { workspaceId } = customer
      const audiences = [stack.url]
      const { token: secret } = await makeGranted(stack.pool, { workspaceId, mode: 'test', scopes, audiences })
      await until(async () => (await totalsOf(stack, { secret })).requests === 1, PATIENCE_MS, 'usage')
      assert.equal((await usageOf(stack, { secret }, 'start_time=1')).json.scope, 'account')
    },
  ],
  [
    'USAGE-9 refusals, quotes and free routes are not in the report',
    async (stack) => {
      const customer = await stack.customer()
      await stack.send(customer.secret, { ...TAG, headers: { 'x-farebox-cost-mode': 'quote' } })
      await stack.send(customer.secret, { ...TAG, headers: { 'x-farebox-max-cost-usd': '0.000000001' } })
      await stack.send(customer.secret, { path: '/v1/models' })
      await stack.send(customer.secret, RERANK)
      await until(async () => (await totalsOf(stack, customer)).requests > 0, PATIENCE_MS, 'usage')
      assert.equal((await totalsOf(stack, customer)).requests, 1)
    },
  ],
  [
    'USAGE-8 a window that ends before the account began has no usage and no buckets',
    async (stack) => {
      const { json } = await usageOf(stack, await stack.customer(), 'start_time=1000&end_time=2000')
      assert.deepEqual([json.buckets, Object(json.totals).requests], [[], 0])
    },
  ],
  [
    'AUTH-1 the report without a credential is 401',
    async (stack) => {
      assert.equal((await usageOf(stack, { secret: '' }, 'start_time=1')).status, 401)
    },
  ],
  [
    'QUOTE-4 the report can’t be quoted: the header is refused with 400',
    async (stack) => {
      const { secret } = await stack.customer()
      const headers = { 'x-farebox-cost-mode': 'quote' }
      assert.equal((await stack.send(secret, { path: '/v1/usage?start_time=1', headers })).status, 400)
    },
  ],
  [
    'LIMIT-1 the report counts as a request of its key',
    async (stack) => {
      const { secret } = await stack.customer({ requestsPerMinute: 1 })
      assert.equal((await usageOf(stack, { secret }, 'start_time=1')).status, 200)
      const told = await usageOf(stack, { secret }, 'start_time=1')
      assert.equal(told.status, 429)
      assert.notEqual(told.headers.get('retry-after'), null)
    },
  ],
]
