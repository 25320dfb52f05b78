import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { bookAnew } from '../ledger/usage-rows.ts'
import { ask, call, costOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

type Group = {
  kind: string
  value: string | null
  label: string | null
  totals: { requests: number; charged_usd: string }
  buckets: { start_time: number; end_time: number; requests: number; charged_usd: string }[]
}
type Report = {
  bucket_width: string
  totals: { requests: number; charged_micros_usd: number }
  buckets: { start_time: number; end_time: number; requests: number }[]
  group_by?: string
  groups?: Group[]
  other_groups?: number
}

async function reportOf(secret: string, query: string): Promise<Report> {
  const told = await ask(url, secret, `/v1/usage?start_time=1${query}`)
  assert.equal(told.status, 200, told.text)
  return told.json as unknown as Report
}

/** Groups in a line each, with what they cost. */
const linesOf = ({ groups = [] }: Report) =>
  groups.map(({ kind, value, totals }) => `${kind} ${value} ${totals.requests} ${usd(totals.charged_usd)}`)

/** Says for whom calls were made, and with which tags, as if their requests had. */
async function attribute(calls: readonly { id: string; endUser?: string; tags?: readonly string[] }[]): Promise<void> {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    // What has ended is immutable for everybody else.
    await client.query('set session_replication_role = replica')
    for (const { id, endUser = null, tags = null } of calls)
      await client.query("update charges set end_user = $2, end_user_label = 'somebody', tags = $3 where id = $1", [
        id,
        endUser,
        tags,
      ])
    await bookAnew((text) => client.query(text))
  } finally {
    await client.end()
  }
}

async function spend(secret: string) {
  const made: Told[] = []
  for (const operation of ['rerank', 'tag_detail', 'tag_detail', 'chat_completions'])
    made.push(await call(url, secret, operation))
  const costs = await Promise.all(made.map(async (told) => usd(await costOf(url, secret, told))))
  assert.ok(costs.every((cost) => cost > 0n))
  return { made, costs }
}

const sumOf = (...some: readonly (bigint | undefined)[]) => some.reduce<bigint>((sum, one) => sum + (one ?? 0n), 0n)

describe('GET /v1/usage with groups', () => {
  it('tells operations, models and keys apart, to the nano', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const { costs } = await spend(secret)
    const [rerank, tag, other, chat] = costs
    const byOperation = linesOf(await reportOf(secret, '&group_by=operation'))
    assert.deepEqual(
      byOperation.toSorted(),
      [
        `group rerank 1 ${rerank}`,
        `group tag_detail 2 ${sumOf(tag, other)}`,
        `group chat_completions 1 ${chat}`,
      ].toSorted(),
    )
    const report = await reportOf(secret, '&group_by=model')
    const [named] = (report.groups ?? []).filter(({ kind }) => kind === 'group')
    assert.deepEqual(linesOf(report).toSorted(), [
      `group ${named?.value} 1 ${chat}`,
      `none null 3 ${sumOf(rerank, tag, other)}`,
    ])
    const { json } = await ask(url, secret, '/v1/requests?operation=chat_completions')
    assert.equal(Object(Object(json).data[0]).model, named?.value)
    assert.deepEqual(linesOf(await reportOf(secret, '&group_by=key')), [`group ${keyId} 4 ${sumOf(...costs)}`])
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('tells end users and values of a tag apart, each filter narrowing it', async () => {
    const { secret } = await makeCustomer(pool)
    const { made, costs } = await spend(secret)
    const endUser = ids.next()
    await attribute([
      { id: made[0]?.id ?? '', endUser, tags: ['run=1', 'team=search'] },
      { id: made[1]?.id ?? '', endUser, tags: ['team=ads'] },
      { id: made[2]?.id ?? '', tags: ['run=1', 'team=a:b=c'] },
    ])
    const [rerank, tag, other, chat] = costs
    const lines = async (query: string) => linesOf(await reportOf(secret, query)).toSorted()
    assert.deepEqual(
      await lines('&group_by=tag:team'),
      [`group search 1 ${rerank}`, `group ads 1 ${tag}`, `group a:b=c 1 ${other}`, `none null 1 ${chat}`].toSorted(),
    )
    assert.deepEqual(
      await lines('&group_by=end_user'),
      [`group ${endUser} 2 ${sumOf(rerank, tag)}`, `none null 2 ${sumOf(other, chat)}`].toSorted(),
    )
    assert.equal(
      (await reportOf(secret, '&group_by=end_user')).groups?.find(({ value }) => value === endUser)?.label,
      'somebody',
    )
    assert.deepEqual(
      await lines('&group_by=operation&tag=run=1'),
      [`group rerank 1 ${rerank}`, `group tag_detail 1 ${other}`].toSorted(),
    )
    assert.deepEqual(await lines(`&group_by=operation&end_user=${endUser}&operation=rerank`), [
      `group rerank 1 ${rerank}`,
    ])
    assert.deepEqual(
      await lines('&group_by=tag:run&operation=tag_detail'),
      [`group 1 1 ${other}`, `none null 1 ${tag}`].toSorted(),
    )
    const filtered = await reportOf(secret, '&tag=team=a%3Ab%3Dc')
    assert.deepEqual([filtered.totals.requests, filtered.groups], [1, undefined])
    assert.equal((await reportOf(secret, `&key=${ids.next()}`)).totals.requests, 0)

    const listed = async (query: string) => {
      const { status, json, text } = await ask(url, secret, `/v1/requests?${query}`)
      assert.equal(status, 200, text)
      return (json as unknown as { data: { id: string }[] }).data.map(({ id }) => id).toReversed()
    }
    const [first, second, third, fourth] = made.map(({ id }) => id)
    assert.deepEqual(await listed('tag=run=1'), [first, third])
    assert.deepEqual(await listed('tag=run='), [])
    assert.deepEqual(await listed(`end_user=${endUser}`), [first, second])
    assert.deepEqual(await listed(`end_user=${endUser}&tag=team=ads`), [second])
    const most = costs.reduce((all, cost) => (cost > all ? cost : all))
    const dearest = made.filter((_, at) => costs[at] === most).map(({ id }) => id)
    assert.deepEqual(await listed(`min_cost_usd=${Number(most) / 1e9}`), dearest)
    assert.deepEqual((await listed(`max_cost_usd=${Number(most) / 1e9}`)).length, 4)
    const { json } = await ask(url, secret, `/v1/requests/${first}`)
    assert.deepEqual(Object(json).tags, { run: '1', team: 'search' })
    assert.deepEqual(Object(json).end_user, { id: endUser, label: 'somebody' })
    const model = Object(Object((await ask(url, secret, `/v1/requests/${fourth}`)).json)).model
    assert.deepEqual(await listed(`model=${encodeURIComponent(model)}`), [fourth])
  })

  it('has buckets of an hour where they are asked for, which add up to the day', async () => {
    const { secret } = await makeCustomer(pool)
    await spend(secret)
    const report = await reportOf(secret, '&group_by=operation&bucket=hour')
    assert.equal(report.bucket_width, '1h')
    assert.ok(report.buckets.every(({ start_time, end_time }) => end_time - start_time <= 3_600))
    assert.equal(
      report.buckets.reduce((sum, { requests }) => sum + requests, 0),
      4,
    )
    for (const { buckets, totals } of report.groups ?? assert.fail()) {
      assert.equal(sumOf(...buckets.map((one) => usd(one.charged_usd))), usd(totals.charged_usd))
      for (const { start_time } of buckets) assert.ok(report.buckets.some((one) => one.start_time === start_time))
    }
    assert.equal(report.group_by, 'operation')
    assert.equal(report.other_groups, 0)
  })

  it('USAGE-1 has no member more than the specification says where nothing of it is asked for', async () => {
    const { secret } = await makeCustomer(pool)
    await call(url, secret, 'rerank')
    const { text } = await ask(url, secret, '/v1/usage?start_time=1')
    assert.match(
      text,
      /^\{"scope":"key","currency":"USD","start_time":1,"end_time":\d+,"bucket_width":"1d","totals":\{"requests":1,"failed_requests":0,"input_tokens":\d+,"output_tokens":\d+,"cache_read_tokens":0,"cache_write_tokens":0,"usage_value_micros_usd":\d+,"charged_micros_usd":\d+\},"buckets":\[\{"start_time":\d+,"end_time":\d+,"requests":1,[^[\]{}]*\}\]\}$/,
    )
  })

  const WRONG = [
    ['group_by=colour', /group_by must be/],
    ['group_by=tag:', /group_by must be/],
    ['group_by=model&group_by=key', /group_by must be/],
    ['bucket=week', /bucket must be/],
    ['tag=team', /tag must be written name=value/],
    ['tag=', /tag must be one text/],
    ['tag=team=', /tag must be written name=value/],
    ['end_user=somebody', /end_user must be an id/],
    ['key=1', /key must be an id/],
    ['model=a%00b', /model must be one text/],
    ['group_by=tag:team&tag=run=1', /one tag or about end users/],
    ['group_by=end_user&tag=run=1', /one tag or about end users/],
  ] as const
  for (const [query, words] of WRONG)
    it(`USAGE-3 refuses ?${query} with one sentence`, async () => {
      const { secret } = await makeCustomer(pool)
      const { status, json } = await ask(url, secret, `/v1/usage?start_time=1&${query}`)
      assert.equal(status, 400)
      assert.deepEqual(Object.keys(json), ['error'])
      assert.match(String(json.error), words)
    })
})
