import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { call, codeOf, ask as use } from '../acceptance/installation.ts'
import { ask, listIn, makeTeam, startHouse } from './house.ts'

/** A key that is given away, with a total and an end: who makes it, what its holder sees, and that it is over at its end. */

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway } = house
after(house.stop)

const team = await makeTeam(pool, ['owner', 'developer', 'viewer'])
const owner = team.of('owner')
const KEYS = `/workspaces/${team.workspaceId}/keys`
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const DAY_MS = 86_400_000
const terms = (more: object = {}) => ({
  ...{ kind: 'ticket', name: 'Workshop, table 4', expires_at: inMs(DAY_MS) },
  budget: { period: 'total', amount_usd: '0.01' },
  ...more,
})
const make = (more: object = {}, key?: string) =>
  ask(siteUrl, owner, `${KEYS}?mode=test`, { method: 'POST', body: terms(more), ...(key !== undefined && { key }) })
const change = (id: unknown, body: object) =>
  ask(siteUrl, owner, `${KEYS}/${id}`, { method: 'PATCH', body, headers: { 'if-match': '*' } })
const hold = (secret: unknown, headers = {}) =>
  ask(siteUrl, null, '/ticket', { method: 'POST', body: { secret }, headers })
const usd = (amount: unknown) => String(Object(amount).usd)
const available = async () =>
  usd((await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/balance?mode=test`)).json.available)

/** One that works for so long. */
async function ending(ms: number) {
  const made = await make()
  await pool.query('update api_keys set expires_at = $2 where id = $1', [made.json.id, new Date(Date.now() + ms)])
  return made.json
}

describe('a ticket', () => {
  it('has a total and an end, and never the scope that reads the account', async () => {
    for (const [more, param] of [
      [{ expires_at: null }, 'expires_at'],
      [{ budget: null }, 'budget'],
      [{ budget: { period: 'month', amount_usd: '1' } }, 'budget'],
      [{ scopes: ['account.read', 'rerank'] }, 'scopes'],
    ] as const) {
      const refused = await make(more)
      assert.deepEqual([refused.status, refused.json.code, refused.json.param], [400, 'invalid_request', param])
    }
    const { id } = (await make()).json
    for (const body of [
      ...[{ expires_at: null }, { budget: null }, { budget: { period: 'day', amount_usd: '1' } }],
      { scopes: ['account.read'] },
    ])
      assert.equal((await change(id, body)).status, 400, JSON.stringify(body))
    await assert.rejects(pool.query('update api_keys set expires_at = null where id = $1', [id]), /ticket_has_total/)
  })

  it('is told its link once, with the secret where no server is sent it', async () => {
    const first = await make({}, 'once')
    const { secret, link, id, kind } = first.json
    assert.deepEqual([first.status, kind, link], [201, 'ticket', `${siteUrl}/ticket#${secret}`])
    const again = await make({ expires_at: terms().expires_at }, 'other')
    assert.notEqual(again.json.link, link)
    const read = await ask(siteUrl, owner, `${KEYS}/${id}`)
    assert.equal(read.headers.get('etag'), first.headers.get('etag'))
    assert.doesNotMatch(read.text, /"(secret|link)"/)
    const body = terms()
    const twice = () => ask(siteUrl, owner, `${KEYS}?mode=test`, { method: 'POST', body, key: 'twice' })
    await twice()
    const { json } = await twice()
    assert.deepEqual([json.secret, json.link], [null, null])
    const rotated = await ask(siteUrl, owner, `${KEYS}/${id}/rotate`, { method: 'POST', body: { overlap_seconds: 0 } })
    assert.equal(rotated.json.link, `${siteUrl}/ticket#${rotated.json.secret}`)
    assert.equal((await hold(secret)).status, 404)
    assert.equal((await hold(rotated.json.secret)).status, 200)
    const plain = await ask(siteUrl, owner, `${KEYS}?mode=test`, { method: 'POST', body: { name: 'no ticket' } })
    assert.deepEqual([plain.json.kind, plain.json.link], ['key', null])
    assert.equal((await hold(plain.json.secret)).status, 404)
  })

  it('is listed apart, and is made by whoever may make keys', async () => {
    const { id } = (await make()).json
    const idsOf = async (kind: string) =>
      listIn(await ask(siteUrl, owner, `${KEYS}?mode=test&kind=${kind}&limit=100`)).map((key) => key.id)
    assert.ok((await idsOf('ticket')).includes(id))
    assert.ok(!(await idsOf('key')).includes(id))
    for (const [role, status] of [
      ['developer', 201],
      ['viewer', 403],
    ] as const) {
      const told = await ask(siteUrl, team.of(role), `${KEYS}?mode=test`, { method: 'POST', body: terms() })
      assert.equal(told.status, status, told.text)
    }
  })
})

describe('the holder of a ticket', () => {
  it('sees what is left without an account, and nothing of the account that pays', async () => {
    const before = await available()
    const { secret, expires_at } = (await make({ scopes: ['tag_detail'] })).json
    assert.equal(await available(), before, 'nothing is taken when it is given')
    const { costUsd, headers } = await call(gateway.url, String(secret), 'tag_detail')
    assert.equal(headers.get('x-farebox-balance-usd'), null)
    const { json } = await hold(secret)
    assert.deepEqual(
      [json.name, json.workspace, json.mode, json.state, json.is_covered, json.expires_at, json.scopes],
      ['Workshop, table 4', 'Customer', 'test', 'active', true, expires_at, ['tag_detail']],
    )
    assert.deepEqual([usd(json.amount), usd(json.charged), usd(json.held)], ['0.010000000', costUsd, '0.000000000'])
    assert.equal(usd(json.left), (0.01 - Number(costUsd)).toFixed(9))
    const balance = await use(gateway.url, String(secret), '/v1/balance')
    assert.equal(balance.json.available, undefined)
    assert.deepEqual(
      (balance.json.budgets as { kind: string }[]).map(({ kind }) => kind),
      ['key'],
    )
    assert.equal((await call(gateway.url, String(secret), 'rerank')).status, 403)
  })

  it('is told where the workspace has less than is left', async () => {
    const poor = await makeTeam(pool, ['owner'])
    const given = await ask(siteUrl, poor.of('owner'), `/workspaces/${poor.workspaceId}/keys?mode=live`, {
      method: 'POST',
      body: terms(),
    })
    assert.deepEqual((await hold(given.json.secret)).json.is_covered, false)
  })

  it('looks from where the ticket may be used, and learns nothing by guessing', async () => {
    const { secret } = (await make({ allowed_addresses: ['203.0.113.7'] })).json
    assert.equal((await hold(secret, { 'x-forwarded-for': '198.51.100.1' })).json.code, 'address_not_allowed')
    assert.equal((await hold(secret, { 'x-forwarded-for': '203.0.113.7' })).status, 200)
    const [unknown, other] = [await hold('fb_test_nothing'), await hold(team.secret)]
    assert.deepEqual([unknown.status, unknown.json.detail], [404, other.json.detail])
  })
})

describe('the end of a ticket', () => {
  it('can be put off, and whoever gave it can end it: what is left was never taken', async () => {
    const before = await available()
    const { id, secret } = (await make()).json
    const later = inMs(2 * DAY_MS)
    const longer = await change(id, { expires_at: later, budget: { period: 'total', amount_usd: '0.02' } })
    assert.equal(longer.json.expires_at, later)
    assert.equal(usd((await hold(secret)).json.amount), '0.020000000')
    await ask(siteUrl, owner, `${KEYS}/${id}`, { method: 'DELETE' })
    assert.equal((await hold(secret)).json.state, 'revoked')
    await until(
      async () => (await call(gateway.url, String(secret), 'tag_detail')).status === 401,
      PATIENCE_MS,
      'that it is refused',
    )
    assert.equal(await available(), before)
  })

  it('is told as such, is made final by a worker, and gives its place back', async () => {
    const { id, secret } = await ending(-1)
    const refused = await call(gateway.url, String(secret), 'tag_detail')
    assert.deepEqual([refused.status, codeOf(refused)], [401, 'expired_credential'])
    const isFinal = async () => (await ask(siteUrl, owner, `${KEYS}/${id}`)).json.state === 'revoked'
    await until(isFinal, PATIENCE_MS, 'that a worker has ended it')
    assert.equal((await hold(secret)).json.state, 'expired')
    assert.equal(codeOf(await call(gateway.url, String(secret), 'tag_detail')), 'expired_credential')
    const { rows } = await pool.query("select actor from audit where subject = $1 and action = 'key.revoked'", [id])
    assert.match(rows[0].actor, /^worker /)
  })

  it('refuses a call whose request was on the way when it came', async () => {
    const { secret } = await ending(1_500)
    assert.equal((await call(gateway.url, String(secret), 'tag_detail')).status, 200)
    const { hostname, port } = new URL(gateway.url)
    const body = '{"query": "a quick animal", "documents": ["a snail", "a fox"]}'
    const sent = httpRequest({
      ...{ hostname, port, path: '/v1/rerank', method: 'POST' },
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'content-length': body.length },
    })
    const answered = new Promise<number>((resolve) => sent.on('response', (answer) => resolve(answer.statusCode ?? 0)))
    sent.write(body.slice(0, 10))
    await delay(2_000)
    sent.end(body.slice(10))
    assert.equal(await answered, 401)
  })

  it('by PostgreSQL’s clock, also where it comes while the call waits for its hold: nobody is asked, nothing is charged', async () => {
    const { id, secret } = await ending(2_000)
    assert.equal((await call(gateway.url, String(secret), 'tag_detail')).status, 200)
    const asked = (await house.sandbox.journal()).length
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from accounts where id = $1 for update', [team.accountId])
      const waiting = call(gateway.url, String(secret), 'tag_detail', 'late')
      await delay(2_300)
      await holder.query('commit')
      const late = await waiting
      assert.deepEqual([late.status, codeOf(late)], [401, 'expired_credential'], late.text)
      const { rows } = await pool.query(
        'select outcome, amount::text, executed from charges where credential_id = $1 order by begun_at desc limit 1',
        [id],
      )
      assert.deepEqual(rows, [{ outcome: 'voided', amount: '0', executed: false }])
      const { rows: open } = await pool.query('select from holds where credential_id = $1', [id])
      assert.equal(open.length, 0)
      assert.equal((await house.sandbox.journal()).length, asked)
    } finally {
      holder.release()
    }
  })
})
