import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, call, ids } from '../acceptance/installation.ts'
import { ask, join, listIn, makeTeam, startHouse } from '../account/house.ts'
import { createVisitor, filledIn } from '../people/visitor.ts'

/** Tickets in the console, and the page of whoever holds one: what they show, and what nobody gets by them. */

const database = await freshDatabase()
const lines: string[] = []
const house = await startHouse(database.url, {
  env: { FAREBOX_LOG_LEVEL: 'info' },
  onLine: (line) => lines.push(line),
})
after(house.stop)
const { pool, siteUrl } = house
const team = await makeTeam(pool, ['owner', 'viewer'])

function browserOf({ headers }: { readonly headers: Readonly<Record<string, string>> }) {
  const visitor = createVisitor({ url: siteUrl })
  const [name = '', value = ''] = (headers.cookie ?? '').split('=', 2)
  visitor.cookies.set(name, value)
  return visitor
}

const owner = browserOf(team.of('owner'))
const keys = `/console/${team.workspaceId}/test/keys`
const told = async (id: string) =>
  (await ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/keys/${id}`)).json

async function give(name: string, values: Readonly<Record<string, string>> = {}) {
  const { text: page } = await owner.get(`${keys}/new-ticket`)
  const fields = { ...filledIn(page, keys), scopes: '', addresses: '', name, ...values }
  const made = await owner.post(keys, fields)
  const [link = '', secret = ''] = /http[^"<]*\/ticket#(fb_test_\w+)/.exec(made.text) ?? []
  const { rows } = await pool.query<{ id: string }>('select id from api_keys where name = $1', [name])
  return { made, fields, link, secret, id: rows[0]?.id ?? '' }
}

describe('a ticket in the console', () => {
  it('is proposed with a total and a last day, and its link is shown once', async () => {
    const { made, fields, link, secret, id } = await give('Workshop')
    assert.equal(made.status, 200, made.text)
    assert.equal(link, `${siteUrl}/ticket#${secret}`)
    const key = await told(id)
    const ends = new Date(String(key.expires_at))
    assert.deepEqual(
      [key.kind, Object(key.budget).period, ends.toISOString().slice(11)],
      ['ticket', 'total', '00:00:00.000Z'],
    )
    const days = (ends.getTime() - Date.now()) / 86_400_000
    assert.ok(days > 7 && days <= 8, 'the last day is a week from now, and works until its end')
    assert.doesNotMatch((await owner.post(keys, fields)).text, new RegExp(secret))
    for (const path of [`${keys}/${id}`, keys, `${keys}?kind=ticket`, `${keys}/${id}/edit`])
      assert.doesNotMatch((await owner.get(path)).text, new RegExp(secret), path)
    assert.match((await owner.get(`${keys}?kind=ticket`)).text, /Workshop/)
  })

  it('is lengthened and raised, gets another link, and is ended', async () => {
    const { id, secret } = await give('Long')
    const edit = (await owner.get(`${keys}/${id}/edit`)).text
    const changes = { amount: '7.50', expires: '2099-01-31', scopes: '', addresses: '' }
    const saved = await owner.post(`${keys}/${id}`, { ...filledIn(edit, `${keys}/${id}`), ...changes })
    assert.equal(saved.location, `${keys}/${id}`, saved.text)
    const key = await told(id)
    assert.deepEqual(
      [Object(Object(key.budget).amount).usd, key.expires_at],
      ['7.500000000', '2099-02-01T00:00:00.000Z'],
    )
    const page = (await owner.get(`${keys}/${id}`)).text
    const rotated = await owner.post(`${keys}/${id}/rotate`, filledIn(page, `${keys}/${id}/rotate`))
    const [, other = ''] = /\/ticket#(fb_test_\w+)/.exec(rotated.text) ?? []
    assert.notEqual(other, secret)
    const ending = (await owner.get(`${keys}/${id}/revoke`)).text
    assert.match(ending, /What is left stays with the workspace/)
    await owner.post(`${keys}/${id}/revoke`, filledIn(ending, `${keys}/${id}/revoke`))
    assert.match((await owner.get(`${keys}/${id}`)).text, /Ended.*Nothing was taken from your balance/s)
  })

  it('says what is wrong above what was sent', async () => {
    const { made } = await give('No end', { expires: '' })
    assert.equal(made.status, 400)
    assert.match(made.text, /No ticket was made.*A ticket has an end.*value="No end"/s)
  })

  it('is not given by a page of somebody else, nor by who may not make keys', async () => {
    const { fields } = await give('Mine')
    assert.equal((await owner.post(keys, fields, { origin: 'https://evil.example' })).status, 403)
    assert.equal((await owner.post(keys, { ...fields, form_token: 'other', idempotency_key: 'x' })).status, 403)
    const viewer = browserOf(team.of('viewer'))
    assert.doesNotMatch((await viewer.get(keys)).text, /Give a ticket/)
    const own = filledIn((await viewer.get(`${keys}/new-ticket`)).text, keys)
    assert.equal((await viewer.post(keys, { ...own, name: 'x' })).status, 403)
  })

  it('shows its name as text, whatever it says', async () => {
    const { made, id } = await give(`<img src=x onerror=alert(1)>"'</title><script>alert(2)</script>`)
    for (const text of [made.text, (await owner.get(keys)).text, (await owner.get(`${keys}/${id}/edit`)).text]) {
      assert.match(text, /&lt;img src=x onerror=alert\(1\)&gt;/)
      assert.doesNotMatch(text, /<img|<script>alert/)
    }
  })
})

describe('the page of the holder', () => {
  it('is the same for everybody: it runs only our script, asks only us, tells nobody where somebody came from, and is framed by nobody', async () => {
    const visitor = createVisitor({ url: siteUrl })
    const { status, headers, text, setCookies } = await visitor.get('/ticket')
    assert.deepEqual([status, setCookies], [200, []])
    const policy = String(headers['content-security-policy']).split('; ')
    for (const part of [
      ...["default-src 'none'", "script-src 'self'", "connect-src 'self'", "require-trusted-types-for 'script'"],
      ...["frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"],
    ])
      assert.ok(policy.includes(part), `${part} in ${policy.join('; ')}`)
    assert.deepEqual([headers['referrer-policy'], headers['x-frame-options']], ['strict-origin', 'DENY'])
    assert.match(text, /\/v1\/balance/, 'without a script it says how to ask')
    assert.equal((await owner.get('/ticket')).text, text)
    assert.doesNotMatch(text, /fb_(live|test)_[0-9a-f]{35}/)
  })

  it('is not opened with a secret in the part of an address that servers are sent', async () => {
    const { secret } = await give('Careless')
    const visitor = createVisitor({ url: siteUrl })
    for (const path of [`/ticket?${secret}`, `/ticket/${secret}`]) {
      const { text } = await visitor.get(path)
      assert.doesNotMatch(text, new RegExp(secret), path)
    }
    await ask(siteUrl, null, '/ticket', { method: 'POST', body: { secret } })
    assert.notEqual(lines.length, 0)
    assert.doesNotMatch(lines.join('\n'), new RegExp(secret))
  })
})

describe('what is saved of a key', () => {
  it('is what was changed, and nothing else', async () => {
    const { json } = await ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/keys?mode=test`, {
      method: 'POST',
      body: { name: 'kept', budget: { period: 'month', amount_usd: '1' }, expires_at: '2099-01-31T12:34:56.000Z' },
    })
    const id = String(json.id)
    const edit = (await owner.get(`${keys}/${id}/edit`)).text
    const fields = { ...filledIn(edit, `${keys}/${id}`), scopes: '', addresses: '', requests: '7' }
    assert.equal((await owner.post(`${keys}/${id}`, fields)).status, 303)
    const key = await told(id)
    assert.deepEqual([key.expires_at, Object(key.rates).requests_per_minute], ['2099-01-31T12:34:56.000Z', 7])
    const { rows } = await pool.query('select action from audit where subject = $1 order by action', [id])
    assert.deepEqual(
      rows.map(({ action }) => action),
      ['key.changed', 'key.created'],
    )
  })
})

describe('what a budget has spent', () => {
  it('is told apart from what is held, as the ledger has both', async () => {
    const { workspaceId, secret, of } = await makeTeam(pool)
    const path = `/workspaces/${workspaceId}/budgets?mode=test`
    const set = { method: 'POST', body: { period: 'month', amount_usd: '5' } } as const
    assert.equal((await ask(siteUrl, of('owner'), path, set)).status, 201)
    const spent = async () => {
      const { costUsd } = await call(house.gateway.url, secret, 'rerank')
      return Number(costUsd)
    }
    const stateOf = async () => Object(listIn(await ask(siteUrl, of('owner'), path))[0]?.state)
    // A new budget is known to every process within a second.
    await until(
      async () => (await spent()) > 0 && Number((await stateOf()).spent.usd) > 0,
      PATIENCE_MS,
      'that it counts',
    )
    const before = await stateOf()
    assert.equal(before.held.usd, '0.000000000')
    await pool.query(
      'update kept_periods set held = held + 1000 where allowance_id in (select id from budgets where account_id = (select test_account_id from workspaces where id = $1))',
      [workspaceId],
    )
    const after = await stateOf()
    assert.equal(after.held.usd, '0.000001000')
    assert.equal(Number(after.spent.usd).toFixed(9), (Number(before.spent.usd) + 0.000001).toFixed(9))
  })
})

describe('a workspace beyond the first hundred', () => {
  it('is found, and that of others is not', async () => {
    const member = await join(pool, team.workspaceId, 'owner')
    const browser = browserOf(member)
    for (let at = 0; at < 101; at += 1)
      await createWorkspace({ pool, ids }, ACTOR, { name: `Place ${at}`, ownerEmail: member.email })
    const { rows } = await pool.query<{ workspace_id: string }>(
      'select workspace_id from members where person_id = $1',
      [member.personId],
    )
    assert.equal(rows.length, 102)
    for (const { workspace_id: id } of rows) {
      const { status } = await browser.get(`/console/${id}/test/keys`)
      assert.equal(status, 200, id)
    }
    const other = await makeTeam(pool)
    assert.equal((await browser.get(`/console/${other.workspaceId}/test/keys`)).status, 404)
  })
})
