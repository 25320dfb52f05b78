import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { judge } from '../../harness/figures.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { rational } from '../../server/src/kernel/rational.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { setAccountPrice } from '../../server/src/pricing/prices.ts'
import { saveCustomerPlan, setCustomerPlan } from '../../server/src/workspaces/workspaces.ts'
import { bookAnew } from '../ledger/usage-rows.ts'
import {
  ACTOR,
  ask,
  call,
  chargesOf,
  ids,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2 })
const { url, gateways, pool } = installation
const otherUrl = gateways[1]?.url ?? ''
after(installation.stop)

const DAY = 86_400
const FIELDS = [
  'requests',
  'failed_requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'usage_value_micros_usd',
  'charged_micros_usd',
] as const
type Sums = Record<(typeof FIELDS)[number], number>
type Bucket = Sums & { start_time: number; end_time: number }
type Report = { totals: Sums; buckets: Bucket[]; start_time: number; end_time: number; scope: string }

const usage = (secret: string, query: string, at = url) => ask(at, secret, `/v1/usage${query}`)
const nowSeconds = () => Math.floor(Date.now() / 1_000)
const today = () => Math.floor(nowSeconds() / DAY) * DAY

async function reportOf(secret: string, query = '?start_time=1', at = url): Promise<Report> {
  const { status, json } = await usage(secret, query, at)
  assert.equal(status, 200, query)
  return json as unknown as Report
}

function bornBefore(accountId: Id, days: number): Promise<unknown> {
  return pool.query("update accounts set created_at = clock_timestamp() - $2 * interval '1 day' where id = $1", [
    accountId,
    days,
  ])
}

/** Makes it so that calls have ended at other times, in whole and parts of seconds. */
async function moveTo(times: readonly (readonly [id: string, seconds: number])[]): Promise<void> {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    // What has ended is immutable for everybody else.
    await client.query('set session_replication_role = replica')
    for (const [id, seconds] of times)
      await client.query('update charges set ended_at = to_timestamp($2::float8) where id = $1', [id, seconds])
    await bookAnew((text) => client.query(text))
  } finally {
    await client.end()
  }
}

describe('GET /v1/usage', () => {
  it('USAGE-1 USAGE-2 is 200 with the report in days of UTC, every figure a whole number, and nothing else', async () => {
    const { secret } = await makeCustomer(pool)
    await call(url, secret, 'rerank')
    const { status, headers, json } = await usage(secret, `?start_time=${today() - 5}`)
    assert.equal(status, 200)
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
    const { totals, buckets, start_time, end_time, ...rest } = json as unknown as Report
    assert.deepEqual(rest, { scope: 'key', currency: 'USD', bucket_width: '1d' })
    assert.deepEqual(Object.keys(totals).toSorted(), FIELDS.toSorted())
    assert.ok(buckets.length >= 1)
    for (const bucket of buckets) {
      assert.deepEqual(Object.keys(bucket).toSorted(), [...FIELDS, 'start_time', 'end_time'].toSorted())
      for (const value of Object.values(bucket)) assert.ok(Number.isSafeInteger(value), JSON.stringify(bucket))
    }
    for (const value of [...Object.values(totals), start_time, end_time]) assert.ok(Number.isSafeInteger(value))
  })

  for (const [what, query] of [
    ['start_time is missing', ''],
    ['start_time is missing beside end_time', '?end_time=5'],
    ['start_time is empty', '?start_time='],
    ['start_time is zero', '?start_time=0'],
    ['start_time is zero at length', '?start_time=000'],
    ['start_time is negative', '?start_time=-1'],
    ['start_time is fractional', '?start_time=1.5'],
    ['start_time is fractional and yet whole', '?start_time=1.0'],
    ['start_time has an exponent', '?start_time=1e9'],
    ['start_time is a word', '?start_time=yesterday'],
    ['start_time is not a number', '?start_time=NaN'],
    ['start_time is infinite', '?start_time=Infinity'],
    ['start_time is hexadecimal', '?start_time=0x10'],
    ['start_time has a sign', '?start_time=%2B5'],
    ['start_time has a space', '?start_time=%205'],
    ['start_time has digits of another script', '?start_time=%D9%A3'],
    ['start_time is a date', '?start_time=2026-01-01'],
    ['start_time is beyond int64', '?start_time=9223372036854775808'],
    ['start_time is far beyond int64', `?start_time=${'9'.repeat(400)}`],
    ['start_time is given twice', '?start_time=1&start_time=2'],
    ['start_time is a list', '?start_time[]=1'],
    ['start_time is SQL', "?start_time=1'%20or%201=1"],
    ['start_time is after end_time', '?start_time=10&end_time=9'],
    ['start_time is after now', `?start_time=${Math.floor(Date.now() / 1_000) + 1_000}`],
    ['end_time is zero', '?start_time=1&end_time=0'],
    ['end_time is negative', '?start_time=1&end_time=-1'],
    ['end_time is fractional', '?start_time=1&end_time=2.5'],
    ['end_time is a word', '?start_time=1&end_time=now'],
    ['end_time is empty', '?start_time=1&end_time='],
    ['end_time is beyond int64', '?start_time=1&end_time=9223372036854775808'],
    ['end_time is given twice', '?start_time=1&end_time=2&end_time=3'],
    ['start_time is the last of int64, which is after now', '?start_time=9223372036854775807'],
    ['a parameter is misspelt', '?start_time=1&endtime=2'],
    ['a parameter is in another case', '?start_time=1&End_time=2'],
    ['a parameter is unknown', '?start_time=1&bucket_width=1h'],
  ] as const)
    it(`USAGE-3 is 400 with nothing but an error's text where ${what}`, async () => {
      isPlainError(await usage((await somebody()).secret, query))
    })

  it('USAGE-3 is 400 for more than 1,100 days after clipping to the life of the account, and 200 for 1,100', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    assert.equal((await reportOf(secret)).buckets.length, 1)
    await bornBefore(accountId, 1_200)
    isPlainError(await usage(secret, '?start_time=1'))
    isPlainError(await usage(secret, `?start_time=${today() - 1_100 * DAY}`))
    assert.equal((await reportOf(secret, `?start_time=${today() - 1_099 * DAY}`)).buckets.length, 1_100)
  })

  it('is 401 without a credential and with a wrong one, in the shape of its family', async () => {
    const { secret } = await makeCustomer(pool)
    for (const wrong of ['', `${secret.slice(0, -1)}${secret.endsWith('x') ? 'y' : 'x'}`, 'nonsense']) {
      const told = await usage(wrong, '?start_time=1')
      assert.equal(told.status, 401)
      assert.equal(Object(told.json.error).type, 'authentication_error')
      assert.equal(told.headers.get('www-authenticate'), 'Bearer')
    }
  })

  it('is for every key, whatever its scopes', async () => {
    const { secret } = await makeCustomer(pool, { key: { scopes: ['rerank'] } })
    assert.equal((await usage(secret, '?start_time=1')).status, 200)
  })

  it('is 404 below it, and 405 for another method', async () => {
    const { secret } = await somebody()
    assert.equal((await ask(url, secret, '/v1/usage/1?start_time=1')).status, 404)
    const told = await ask(url, secret, '/v1/usage?start_time=1', { body: {} })
    assert.deepEqual([told.status, told.headers.get('allow')], [405, 'GET, HEAD'])
  })

  it('is 429 with Retry-After beyond the requests of a minute, wrong ones counted', async () => {
    const { secret } = await makeCustomer(pool, { requestsPerMinute: 2 })
    assert.equal((await usage(secret, '?start_time=1')).status, 200)
    assert.equal((await usage(secret, '')).status, 400)
    const told = await usage(secret, '?start_time=1')
    assert.equal(told.status, 429)
    assert.equal(Object(told.json.error).type, 'rate_limit_error')
    assert.ok(Number(told.headers.get('retry-after')) >= 1)
  })

  it('USAGE-4 ends now where no end is given, and echoes both', async () => {
    const { secret } = await somebody()
    const [before, beforeMs] = [nowSeconds(), Date.now()]
    const open = await reportOf(secret, '?start_time=7')
    const afterMs = Date.now()
    assert.equal(open.start_time, 7)
    // PostgreSQL's clock is the one that is told: the same as ours, as far as a process can know it.
    const [earliest, latest] = [Math.floor((beforeMs - 50) / 1_000), Math.floor((afterMs + 50) / 1_000)]
    assert.ok(open.end_time >= earliest && open.end_time <= latest, `${earliest} ${open.end_time} ${latest}`)
    assert.equal(open.buckets.at(-1)?.end_time, open.end_time)
    const future = before + 30 * DAY
    const { start_time, end_time, buckets } = await reportOf(secret, `?start_time=8&end_time=${future}`)
    assert.deepEqual([start_time, end_time], [8, future])
    assert.ok((buckets.at(-1)?.end_time ?? 0) <= nowSeconds() + 2)
    const past = await reportOf(secret, '?start_time=8&end_time=9')
    assert.deepEqual([past.start_time, past.end_time, past.buckets], [8, 9, []])
  })

  it('USAGE-4 takes every positive int64, and echoes it to the last digit', async () => {
    const { secret } = await somebody()
    for (const [start, end] of [
      ['1', '9223372036854775807'],
      ['1', '8640000000001'],
      ['9007199254740993', '9007199254740993'],
      ['9223372036854775806', '9223372036854775807'],
    ] as const) {
      const { status, text } = await usage(secret, `?start_time=${start}&end_time=${end}`)
      assert.equal(status, 200, text)
      assert.ok(text.includes(`"start_time":${start},"end_time":${end},"bucket_width"`), text)
    }
    assert.deepEqual(
      (await reportOf(secret, '?start_time=9223372036854775806&end_time=9223372036854775807')).buckets,
      [],
    )
  })

  it('refuses a parameter that it does not know by its name', async () => {
    const { json } = await usage((await somebody()).secret, '?start_time=1&endtime=2')
    assert.match(String(json.error), /Unknown parameter "endtime"\. This endpoint takes start_time, end_time, bucket, /)
  })

  it('has what was charged in the second that is running, though the window ends now', async () => {
    const { secret } = await makeCustomer(pool)
    for (let calls = 1; calls <= 5; calls += 1) {
      await call(url, secret, 'tag_detail')
      assert.equal((await reportOf(secret)).totals.requests, calls)
    }
  })

  it('USAGE-5 the scope of a key is the key, and it sees only its own usage', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const sibling = await makeKey(pool, workspaceId)
    const stranger = await makeCustomer(pool)
    await call(url, secret, 'tag_detail')
    await call(url, secret, 'tag_detail')
    await call(url, sibling.secret, 'user_stories')
    const [own, siblings, strangers] = await Promise.all(
      [secret, sibling.secret, stranger.secret].map((one) => reportOf(one)),
    )
    assert.deepEqual([own?.scope, siblings?.scope, strangers?.scope], ['key', 'key', 'key'])
    assert.deepEqual([own?.totals.requests, own?.totals.charged_micros_usd], [2, 2_900])
    assert.deepEqual([siblings?.totals.requests, siblings?.totals.charged_micros_usd], [1, 2_900])
    assert.deepEqual([strangers?.totals.requests, strangers?.totals.charged_micros_usd], [0, 0])
  })

  it('USAGE-6 BASE-4 buckets add up to the totals in every field, to the micro, and totals to the ledger', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    await bornBefore(accountId, 10)
    const told: Told[] = []
    // Costs that are no whole micros, so that days round.
    for (const tokens of [1, 3, 19, 21, 39, 7]) told.push(await call(url, secret, 'rerank', `sandbox:tokens=${tokens}`))
    told.push(await call(url, secret, 'tag_detail'), await call(url, secret, 'rerank', 'sandbox:status=500'))
    const morning = today() - 7 * DAY + 10 * 3_600
    await moveTo(told.slice(0, 6).map(({ id }, at) => [id, morning + at * DAY]))
    assert.deepEqual(await verifyLedger(pool), [])

    const { totals, buckets } = await reportOf(secret)
    assert.equal(buckets.filter(({ requests }) => requests > 0).length, 7)
    for (const field of FIELDS)
      assert.equal(
        buckets.reduce((sum, bucket) => sum + bucket[field], 0),
        totals[field],
        field,
      )
    const charges = [...(await chargesOf(pool, accountId)).values()]
    const nanos = charges.reduce((sum, amount) => sum + amount, 0n)
    assert.equal(nanos, BigInt((1 + 3 + 19 + 21 + 39 + 7) * 50 + 1_450_000))
    assert.equal(BigInt(totals.charged_micros_usd), nanos / 1_000n)
    assert.equal(totals.input_tokens, 90)
    assert.deepEqual([totals.requests, totals.failed_requests], [8, 1])
  })

  it('USAGE-7 a charge is in the report of every process soon after its response', async () => {
    const { secret } = await makeCustomer(pool)
    const timesMs: number[] = []
    for (let calls = 1; calls <= 5; calls += 1) {
      await call(url, secret, 'financial_metrics_snapshot')
      for (const at of [url, otherUrl])
        timesMs.push(
          await until(
            async () => (await reportOf(secret, undefined, at)).totals.charged_micros_usd === calls * 10_000,
            PATIENCE_MS,
          ),
        )
    }
    judge('usage-reports', 'from a response to its charge in a report', { unit: 'ms', atMost: 1_000 }, timesMs)
  })

  it('USAGE-8 days without usage since the account was made are zeros; a window that cuts a day cuts its bucket, exactly', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    await bornBefore(accountId, 6)
    const [first, second, third] = [
      await call(url, secret, 'tag_detail'),
      await call(url, secret, 'user_stories'),
      await call(url, secret, 'financial_metrics_snapshot'),
    ]
    const day = today() - 3 * DAY
    const moment = day + 36_000
    await moveTo([
      [first.id, moment + 0.5],
      [second.id, moment + 10],
      [third.id, moment + 4_000],
    ])

    const { buckets } = await reportOf(secret)
    assert.equal(buckets.length, 7)
    assert.deepEqual(
      buckets.map(({ requests }) => requests),
      [0, 0, 0, 3, 0, 0, 0],
    )
    buckets.forEach((bucket, at) => {
      assert.equal(bucket.start_time, today() + (at - 6) * DAY)
      if (at < 6) assert.equal(bucket.end_time, bucket.start_time + DAY)
      if (at !== 3) for (const field of FIELDS) assert.equal(bucket[field], 0)
    })

    for (const [from, to, charged] of [
      [moment, moment + 1, 1_450],
      [moment + 1, moment + 10, 0],
      [moment + 1, moment + 11, 2_900],
      [moment, moment + 4_000, 4_350],
      [moment + 10, moment + 4_001, 12_900],
      [moment - DAY, moment + 1, 1_450],
      [moment + 11, moment + DAY, 10_000],
    ] as const) {
      const cut = await reportOf(secret, `?start_time=${from}&end_time=${to}`)
      assert.equal(cut.totals.charged_micros_usd, charged, `${from - moment} to ${to - moment}`)
      assert.deepEqual([cut.buckets.at(0)?.start_time, cut.buckets.at(-1)?.end_time], [from, to])
      assert.equal(
        cut.buckets.reduce((sum, { charged_micros_usd }) => sum + charged_micros_usd, 0),
        charged,
      )
    }
  })

  it('USAGE-9 counts executed calls, failed ones included, and no refusals, quotes or look-ups; values are published ones', async () => {
    const { secret, workspaceId, accountId } = await makeCustomer(pool)
    await saveCustomerPlan({ pool }, 'half', rational(1n, 2n))
    await setCustomerPlan({ pool, ids }, ACTOR, workspaceId, 'half')
    await setAccountPrice(pool, accountId, 'user_stories', '0.001')

    assert.equal((await call(url, secret, 'tag_detail')).costUsd, '0.000725000')
    assert.equal((await call(url, secret, 'user_stories')).costUsd, '0.001000000')
    assert.equal((await call(url, secret, 'rerank', 'sandbox:tokens=20')).costUsd, '0.000001000')
    assert.equal((await call(url, secret, 'rerank', 'sandbox:status=500')).status, 500)
    assert.equal((await call(url, secret, 'rerank', 'sandbox:reset=before-headers')).status, 502)
    assert.equal((await call(url, secret, 'tag_detail', 'sandbox:status=429')).status, 429)
    const executed = await reportOf(secret)

    const quote = { headers: { 'x-farebox-cost-mode': 'quote' } }
    assert.equal((await call(url, secret, 'rerank', '', quote)).status, 200)
    assert.equal((await ask(url, secret, '/v1/rerank', { body: {} })).status, 400)
    assert.equal((await ask(url, secret, '/v1/nowhere')).status, 404)
    assert.equal((await call(url, secret, 'rerank', '', { headers: { 'x-farebox-max-cost-usd': '0' } })).status, 402)
    for (const path of ['/v1/balance', '/v1/requests', '/v1/usage?start_time=1', `/v1/requests/${ids.next()}`])
      await ask(url, secret, path)

    const { totals } = await reportOf(secret)
    assert.deepEqual(totals, executed.totals)
    assert.deepEqual(totals, {
      requests: 6,
      failed_requests: 3,
      input_tokens: 20,
      output_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      usage_value_micros_usd: 1_450 + 2_900 + 1,
      charged_micros_usd: 725 + 1_000 + 1,
    })
  })
})

let anybody: Promise<{ readonly secret: string }> | undefined
/** One customer for all that is only refused. */
function somebody(): Promise<{ readonly secret: string }> {
  anybody ??= makeCustomer(pool)
  return anybody
}

function isPlainError({ status, headers, json }: Told): void {
  assert.equal(status, 400)
  assert.match(headers.get('content-type') ?? '', /^application\/json/)
  assert.deepEqual(Object.keys(json), ['error'])
  assert.ok(typeof json.error === 'string' && json.error.length > 10)
  assert.ok(headers.get('x-request-id'))
}
