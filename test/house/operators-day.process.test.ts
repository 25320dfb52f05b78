import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freePort } from '../../harness/free-port.ts'
import { SANDBOX_LIMITS } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { formatUsd, nanos, usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { call, ask as callerAsks, codeOf, ids, makeCustomer } from '../acceptance/installation.ts'
import { limited, question } from '../acceptance/models/streams.ts'
import { startHouse } from '../account/house.ts'
import { startShell } from './command-shell.ts'
import { bareEnvironment } from './run-farebox.ts'

/** What an operator does on a day, over three processes: each question is one command, and its answer is what the ledger has. */
const { url: databaseUrl } = await freshDatabase()
const house = await startHouse(databaseUrl, { processes: 3 })
after(house.stop)
const { pool, gateway } = house
const urls = [gateway, ...house.more].map(({ url }) => url)
const { farebox, said } = startShell({ ...bareEnvironment(), ...house.env, FAREBOX_DATABASE_URL: databaseUrl })

const COSTED = 'day/costed'
const BROKEN = 'day/broken'
const conversations = [
  { model: COSTED, slot: 'openai' },
  { model: BROKEN, slot: 'broken' },
] as const
for (const { model, slot } of conversations) {
  await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model, input: '2', output: '8', providerInput: '1.5', providerOutput: '6' })
  await saveRoute({ pool, ids }, { model, slot, protocol: 'openai', upstreamModel: 'sandbox/text' })
}
const brokenId = await saveUpstream(
  { pool, ids, seal: null },
  { slot: 'broken', mode: 'test', baseUrl: `http://127.0.0.1:${await freePort()}`, kind: 'native', credential: null },
)

const chat = (url: string, secret: string, model: string) => {
  const { path, body } = question('openai', model, 'Hello', limited('openai', 50))
  return callerAsks(url, secret, path, { body })
}

const rowsOf = (printed: string): readonly Record<string, unknown>[] =>
  printed
    .trim()
    .split('\n')
    .map((line) => Object(JSON.parse(line)))
const json = async (...args: readonly string[]) =>
  rowsOf(await said(...args, '--json'))[0] ?? assert.fail(args.join(' '))
const listIn = (value: unknown) => (Array.isArray(value) ? value.map((one) => Object(one)) : assert.fail(String(value)))

/** By the charges and entries themselves. */
async function ledgerBy(item: 'account_id' | 'model' | 'operation' | 'route') {
  const { rows } = await pool.query(
    `select item, sum(charged)::bigint as charged, sum(cost)::bigint as cost, sum(calls)::integer as calls from (
       select c.${item}::text as item, amount as charged, upstream_cost as cost, executed::integer as calls
       from charges c join accounts a on a.id = c.account_id where a.mode = 'test'
       union all select e.${item}::text, e.charged, 0, 0 from entries e join accounts a on a.id = e.account_id
       where a.mode = 'test' and e.credential_id is not null and e.charged <> 0
     ) of_all group by item having sum(charged) <> 0 or sum(cost) <> 0 or sum(calls) <> 0`,
  )
  return new Map(
    rows.map((row) => [
      row.item,
      { charged: formatUsd(nanos(row.charged)), cost: formatUsd(nanos(row.cost)), calls: row.calls },
    ]),
  )
}

async function reportBy(by: string) {
  const { top, total } = await json('spend', 'top', by, '--test')
  const shown = listIn(top).map((one) => [
    one.id,
    { charged: one.charged_usd, cost: one.cost_usd, calls: one.requests },
  ])
  return { shown: new Map<unknown, unknown>(Object.values(shown).map(([id, one]) => [id, one])), total: Object(total) }
}

describe("the operator's day", () => {
  it('who was charged most, by customer, model, operation and upstream: to the nano what the ledger has, also after a refund', async () => {
    const customers = [await makeCustomer(pool), await makeCustomer(pool)]
    for (const [at, { secret }] of customers.entries())
      for (const url of urls) {
        for (let more = 0; more <= at; more += 1) assert.equal((await chat(url, secret, COSTED)).status, 200)
        assert.equal((await call(url, secret, 'tag_detail')).status, 200)
      }
    const workspaceOf = new Map(customers.map(({ accountId, workspaceId }) => [accountId, workspaceId]))
    const compare = async () => {
      for (const [by, column] of [
        ['customer', 'account_id'],
        ['model', 'model'],
        ['operation', 'operation'],
        ['upstream', 'route'],
      ] as const) {
        const ledger = await ledgerBy(column)
        const { shown, total } = await reportBy(by)
        const named = new Map([...ledger].map(([item, sums]) => [workspaceOf.get(item) ?? item, sums]))
        assert.deepEqual(new Map([...shown].sort()), new Map([...named].sort()), by)
        const charged = [...ledger.values()].reduce((sum, one) => sum + usd(one.charged), 0n)
        assert.equal(total.charged_usd, formatUsd(nanos(charged)), by)
      }
    }
    await compare()
    const { shown } = await reportBy('customer')
    assert.equal([...shown.keys()][0], customers[1]?.workspaceId, 'the one with twice as many calls comes first')
    // While sums are made and after it.
    await until(
      async () => (await pool.query('select count(*)::integer as rows from usage_tail')).rows[0].rows === 0,
      PATIENCE_MS,
      'sums',
    )
    await compare()

    const answered = await chat(urls[1] ?? '', customers[0]?.secret ?? '', COSTED)
    const explained = await said('ledger', 'explain', answered.id)
    assert.match(explained, new RegExp(String(answered.costUsd).replaceAll('.', '\\.')))
    const refunded = await json('charges', 'refund', answered.id, '--reason', 'It was cut off.')
    assert.equal(refunded.amount_usd, answered.costUsd)
    const again = await json('charges', 'refund', answered.id, '--reason', 'It was cut off.')
    assert.equal(again.refund_id, refunded.refund_id)
    const { rows } = await pool.query('select charged from entries where corrects = $1', [answered.id])
    assert.deepEqual(rows, [{ charged: -usd(String(answered.costUsd)) }])
    await compare()
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('that an upstream is down, since when, for whom, and that it is up again', async () => {
    const { secret } = await makeCustomer(pool)
    for (const url of urls) for (let failure = 0; failure < 10; failure += 1) await chat(url, secret, BROKEN)
    const find = async () => {
      const now = await json('status')
      const upstream = listIn(now.upstreams).find(({ id }) => id === brokenId)
      return { now, seen: Object(upstream?.seen) }
    }
    await until(async () => (await find()).seen.asked === 30, PATIENCE_MS, 'the reports of all processes')
    const { now, seen } = await find()
    assert.deepEqual([seen.state, seen.asked, seen.failed], ['down', 30, 30])
    assert.ok(Math.abs(Date.parse(seen.since) - Date.now()) < PATIENCE_MS, seen.since)
    const attention = listIn(now.attention).map(({ what }) => String(what))
    assert.ok(
      attention.some((what) => what.startsWith('Upstream broken (test) is down since')),
      attention.join('\n'),
    )
    const processes = listIn(now.processes)
    assert.deepEqual([processes.length, processes.every((one) => one.is_alive === true)], [3, true])
    const sandbox = listIn(now.upstreams).find(({ name, mode }) => name === 'openai' && mode === 'test')
    assert.equal(Object(sandbox?.seen).state, 'up')
    const screen = await said('status')
    assert.match(screen, /^\d things? needs? attention/)
    assert.match(screen, /broken +test +DOWN since .* 30 +30 \(100\.0 %\)/)
    const page = await (await fetch(`${house.siteUrl}/status`)).text()
    assert.match(page, /broken<span class="fb-sub">Provider\. It kept failing since/)
    assert.match(page, /all 3 processes that run/)

    assert.match(await said('upstreams', 'off', brokenId), /is off/)
    const off = await said('status')
    assert.match(off, /broken +test +off/)
    assert.doesNotMatch(off, /Upstream broken/)
  })

  it('what is held now, to the nano, with what is unsettled', async () => {
    const { held } = await json('status')
    const { rows } = await pool.query("select coalesce(sum(held), 0)::bigint as held from accounts where mode = 'test'")
    assert.equal(Object(Object(held).test).held_usd, formatUsd(nanos(rows[0].held)))
  })

  it('that a process has died, until its lease is forgotten; one that stops is gone at once', async () => {
    const [, second, third] = [gateway, ...house.more]
    const named = async (pid: number | undefined) =>
      listIn((await json('status')).processes).find((one) => Object(one.report).pid === pid)
    await until(async () => (await named(third?.pid))?.is_alive === true, PATIENCE_MS, 'the report')
    await third?.kill()
    await until(async () => (await named(third?.pid))?.is_alive === false, PATIENCE_MS, 'the end of the lease')
    const { attention } = await json('status')
    assert.ok(listIn(attention).some(({ what }) => /was last seen .* it died/.test(String(what))))
    await second?.stop()
    assert.equal(await named(second?.pid), undefined)
  })

  it('and a customer who has to be stopped is stopped by one command, in every process', async () => {
    const { workspaceId, secret } = await makeCustomer(pool)
    assert.equal((await call(urls[0] ?? '', secret, 'tag_detail')).status, 200)
    await said('accounts', 'suspend', workspaceId, '--reason', 'Stolen cards.')
    assert.equal(codeOf(await call(urls[0] ?? '', secret, 'tag_detail')), 'forbidden')
    const refused = await farebox('keys', 'create', workspaceId)
    assert.equal(refused.code, 1)
    await said('accounts', 'resume', workspaceId, '--reason', 'They were theirs.')
    assert.equal((await call(urls[0] ?? '', secret, 'tag_detail')).status, 200)
  })
})
