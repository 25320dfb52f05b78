import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { call, ask as send } from '../acceptance/installation.ts'
import { ask, join, listIn, makeTeam, startHouse } from '../account/house.ts'
import { browserOf } from './browser.ts'

/** Requests in the console: what a page shows is what the account API tells and the ledger has. */

const database = await freshDatabase()
const house = await startHouse(database.url)
after(house.stop)
const { pool, siteUrl, gateway } = house
const team = await makeTeam(pool, ['owner', 'viewer'])
const owner = browserOf(siteUrl, team.of('owner'))
const requests = `/console/${team.workspaceId}/test/requests`
const api = `/workspaces/${team.workspaceId}/requests`

const CHAT = { model: 'sandbox/text', messages: [{ role: 'user', content: 'Which tram goes to the harbour?' }] }

async function chat(headers: Readonly<Record<string, string>> = {}) {
  const told = await send(gateway.url, team.secret, '/v1/chat/completions', { body: CHAT, headers })
  await kept(told.id)
  return told
}

/** How a call ran is written behind its answer. */
async function kept(id: string): Promise<void> {
  const isKept = async () => (await pool.query('select from request_records where id = $1', [id])).rowCount === 1
  await until(isKept, PATIENCE_MS, `the record of ${id}`)
}

const told = async (path: string) => (await ask(siteUrl, team.of('owner'), `${api}${path}`)).json
const moneyIn = (text: string) =>
  [...text.matchAll(/<data class="fb-money" value="([^"]+)"/g)].map(([, value]) => value)

describe('one request', () => {
  it('shows what it cost, its formula, ledger, time and upstreams, to the nano', async () => {
    const { id, costUsd } = await chat({ 'x-farebox-tags': 'team=search', 'x-farebox-end-user': 'alice' })
    const request = await told(`/${id}?mode=test`)
    const { rows } = await pool.query<Record<'held' | 'amount', bigint>>(
      'select held, amount from charges where id = $1',
      [id],
    )
    const [{ held, amount } = assert.fail()] = rows
    const { status, text } = await owner.get(`${requests}/${id}`)
    assert.equal(status, 200)
    const shown = moneyIn(text)
    assert.equal(Object(request.cost).usd, costUsd)
    assert.equal(usd(String(costUsd)), amount)
    assert.ok(shown.includes(String(costUsd)))
    const postings: { entry: string; amount: { usd: string } }[] = Object(request.postings)
    assert.deepEqual(
      postings.map(({ entry, amount: moved }) => [entry, usd(moved.usd)]),
      [
        ['hold', held],
        ['charge', amount],
        ['release', held - amount],
      ],
    )
    for (const { amount: moved } of postings) assert.ok(shown.includes(moved.usd), moved.usd)
    const terms: { count: string; price_usd: string; cost_usd: string }[] = Object(request.terms)
    assert.ok(terms.length > 0)
    for (const { cost_usd: cost } of terms)
      assert.ok(
        shown.some((one) => one === cost || one?.startsWith(cost)),
        cost,
      )
    assert.match(text, /<b>BEGIN<\/b>.*upstream 1.*<b>END<\/b>/s)
    assert.match(text, /Both sides agree.*Upstreams asked.*Answered/s)
    assert.match(text, /Tag team.*search.*/s)
    assert.match(text, new RegExp(`key <a href="[^"]+/keys/${team.keyId}">`))
  })

  it('says why nothing was charged, and what came back', async () => {
    const failed = await call(gateway.url, team.secret, 'rerank', 'sandbox:reset=before-headers')
    await kept(failed.id)
    const { text } = await owner.get(`${requests}/${failed.id}`)
    assert.match(text, /Not charged/)
    assert.match(text, /the connection was closed before its answer ended/)
    assert.match(text, /What was held came back at once/)
  })

  it('shows a refund as a line of its own, and what is left of the charge', async () => {
    const { id, costUsd } = await chat()
    await pool.query('select reverse_charge(gen_random_uuid(), $1, 1)', [id])
    const { text } = await owner.get(`${requests}/${id}`)
    assert.match(text, /Refund/)
    assert.match(text, /Given back/)
    const left = (await told(`/${id}?mode=test`)).cost
    assert.equal(usd(String(costUsd)) - usd(Object(left).usd), 1n)
    assert.ok(moneyIn(text).includes(Object(left).usd))
  })

  it('of somebody else, or of the other mode, is not there', async () => {
    const { id } = await call(gateway.url, team.secret, 'rerank')
    const other = await makeTeam(pool)
    const stranger = browserOf(siteUrl, await join(pool, other.workspaceId))
    assert.equal((await stranger.get(`/console/${other.workspaceId}/test/requests/${id}`)).status, 404)
    assert.equal((await owner.get(`/console/${team.workspaceId}/live/requests/${id}`)).status, 404)
    assert.equal((await owner.get(`${requests}/nothing`)).status, 404)
  })

  it('is no outage where what was kept of it can not be read', async () => {
    const { id } = await chat()
    await pool.query(`update request_records set detail = '{"timeline": 5}' where id = $1`, [id])
    const { status, text } = await owner.get(`${requests}/${id}`)
    assert.equal(status, 500)
    assert.doesNotMatch(text, /Our database does not answer/)
    await pool.query('delete from request_records where id = $1', [id])
  })
})

describe('the list of requests', () => {
  it('is what the account API lists, by the same filters, with sums to the nano', async () => {
    await chat({ 'x-farebox-tags': 'team=list' })
    await call(gateway.url, team.secret, 'rerank')
    for (const query of [
      '',
      'operation=rerank',
      'outcome=voided',
      'model=sandbox%2Ftext',
      'tag=team%3Dlist',
      `key=${team.keyId}`,
      'min_cost_usd=0.0001',
      'within=hour',
    ]) {
      const listed = listIn({
        json: await told(`?mode=test&limit=50&${query.replace('within=hour', '')}`),
      } as Parameters<typeof listIn>[0])
      assert.ok(listed.length > 0, query)
      const { status, text } = await owner.get(`${requests}?${query}`)
      assert.equal(status, 200, query)
      const shown = [...text.matchAll(/<tr data-id="([^"]+)"/g)].map(([, id]) => id)
      assert.deepEqual(
        shown,
        listed.map(({ id }) => id),
        query,
      )
      const sum = listed.reduce((all, { cost }) => all + usd(Object(cost).usd), 0n)
      const [, charged = ''] = /charged <b data-charged><data class="fb-money" value="([^"]+)"/.exec(text) ?? []
      assert.equal(usd(charged), sum, query)
    }
  })

  it('goes on with older ones, and leads back', async () => {
    const { rows } = await pool.query<{ count: bigint }>('select count(*) from charges where account_id = $1', [
      team.accountId,
    ])
    const count = Number(rows[0]?.count)
    await pool.query(
      `insert into charges select (jsonb_populate_record(null::charges, to_jsonb(c) || jsonb_build_object('id', gen_id, 'ended_at', c.ended_at - n * interval '1 second'))).*
       from (select * from charges where account_id = $1 and outcome = 'posted' limit 1) c,
         lateral (select n, (substr(c.id::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid as gen_id from generate_series(1, 60) n) made`,
      [team.accountId],
    )
    const first = (await owner.get(requests)).text
    const [, older = ''] = /href="([^"]+)" data-older/.exec(first) ?? []
    const second = (await owner.get(older.replaceAll('&amp;', '&'))).text
    const idsOf = (text: string) => [...text.matchAll(/<tr data-id="([0-9a-f-]+)"/g)].map(([, id]) => id)
    assert.equal(new Set([...idsOf(first), ...idsOf(second)]).size, count + 60)
    assert.match(second, /Back to the latest/)
  })

  it('shows those that run with what they hold, and those alone where they are asked for', async () => {
    const id = '019b0000-0000-7000-8000-00000000abcd'
    await pool.query(
      `insert into holds (id, account_id, credential_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, begun_at)
       values ($1, $2, $3, 'video_synthesis', 500000000, '', '{}', '{}', 0, false, clock_timestamp())`,
      [id, team.accountId, team.keyId],
    )
    await pool.query('update accounts set held = held + 500000000 where id = $1', [team.accountId])
    for (const query of ['', '?outcome=open', '?operation=video_synthesis']) {
      const { text } = await owner.get(`${requests}${query}`)
      assert.match(text, new RegExp(`<tr data-id="${id}" data-kind="running">.*0.500000000`), query)
    }
    assert.doesNotMatch((await owner.get(`${requests}?outcome=posted`)).text, new RegExp(id))
    const one = (await owner.get(`${requests}/${id}`)).text
    assert.match(one, /It runs.*Hold/s)
    assert.ok(moneyIn(one).includes('0.500000000'))
    await pool.query('delete from holds where id = $1', [id])
    await pool.query('update accounts set held = held - 500000000 where id = $1', [team.accountId])
  })

  it('leads to one that is looked for by its id, and says where there is none', async () => {
    const { id } = await call(gateway.url, team.secret, 'rerank')
    assert.equal((await owner.get(`${requests}?id=${id}`)).location, `${requests}/${id}`)
    assert.match((await owner.get(`${requests}?id=${id.replace(/.{4}$/, '0000')}`)).text, /No request has this id/)
    assert.match((await owner.get(`${requests}?id=what`)).text, /No request has this id/)
  })

  it('says what is wrong with a filter, and keeps what was filled in', async () => {
    const { status, text } = await owner.get(`${requests}?min_cost_usd=cheap&model=mine`)
    assert.equal(status, 400)
    assert.match(text, /That can not be looked for/)
    assert.match(text, /name="min_cost_usd"[^>]* value="cheap"/)
    assert.match(text, /value="mine"/)
  })

  it('shows what callers and operators have stored as text, whatever it says', async () => {
    const evil = `<img src=x onerror=alert(1)>"'</td><script>alert(2)</script>`
    const { workspaceId, accountId, secret } = await makeTeam(pool)
    const member = browserOf(siteUrl, await join(pool, workspaceId))
    const { id } = await call(gateway.url, secret, 'rerank')
    await kept(id)
    await pool.query('alter table charges disable trigger charges_are_immutable')
    await pool.query(
      `update charges set model = $2, operation = $2, route = $2, end_user = $1::uuid, end_user_label = left($2, 64), tags = array['a=' || $2, $2 || '=b'] where account_id = $3`,
      [id, evil, accountId],
    )
    await pool.query('alter table charges enable trigger charges_are_immutable')
    await pool.query('update api_keys set name = $2 where workspace_id = $1', [workspaceId, evil])
    await pool.query(
      `update request_records set detail = detail || jsonb_build_object('formula', '1 ' || $2 || ' × 0.1 USD', 'model', $2::text,
         'upstream', jsonb_build_array(jsonb_build_object('slot', $2::text, 'outcome', $2::text, 'status', 500, 'reason', $2::text, 'began_ms', 1, 'ended_ms', 2)),
         'evidence', jsonb_build_object('usage_source', $2::text)) where id = $1`,
      [id, evil],
    )
    for (const path of [
      '',
      `/${id}`,
      `?model=${encodeURIComponent(evil)}&tag=${encodeURIComponent(`a=${evil}`)}&id=${encodeURIComponent(evil)}`,
    ]) {
      const { text, status } = await member.get(`/console/${workspaceId}/test/requests${path}`)
      assert.equal(status, 200, text)
      assert.match(text, /&lt;img src=x onerror=alert\(1\)&gt;/)
      assert.doesNotMatch(text, /<img|<script>/)
    }
  })
})

describe('calls as they end', () => {
  it('are told with the key that made them', async () => {
    const { headers } = team.of('owner')
    const watching = fetch(`${siteUrl}/account/v1${api}/live?mode=test&seconds=3`, { headers: { ...headers } })
    const { id } = await call(gateway.url, team.secret, 'rerank')
    const text = await (await watching).text()
    const line = text.split('\n').find((one) => one.includes(id)) ?? assert.fail(text)
    assert.deepEqual(JSON.parse(line.slice('data: '.length)).made_by, { id: team.keyId, kind: 'key', name: 'key' })
  })
})
