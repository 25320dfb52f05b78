import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { formTokenOf } from '../../server/src/pages/form-token.ts'
import { call } from '../acceptance/installation.ts'
import { join, makeTeam, startHouse } from '../account/house.ts'
import { createVisitor, filledIn } from '../people/visitor.ts'
import { browserOf } from './browser.ts'

/** What pages of the console are made of, and what nobody gets by them. */

const database = await freshDatabase()
const house = await startHouse(database.url)
after(house.stop)
const { pool, siteUrl } = house
const team = await makeTeam(pool, ['owner', 'viewer'])

const owner = browserOf(siteUrl, team.of('owner'))
const at = (path = '', mode = 'test') => `/console/${team.workspaceId}/${mode}${path}`

describe('a page of the console', () => {
  it('runs only our script, asks only us, and is framed by nobody', async () => {
    const { headers, status } = await owner.get(at())
    assert.equal(status, 200)
    const policy = String(headers['content-security-policy']).split('; ')
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "require-trusted-types-for 'script'",
      "frame-ancestors 'none'",
      "form-action 'self'",
      "base-uri 'none'",
    ])
      assert.ok(policy.includes(part), `${part} in ${policy.join('; ')}`)
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['content-encoding'], undefined)
    const other = await owner.get('/sessions')
    assert.doesNotMatch(String(other.headers['content-security-policy']), /script-src|connect-src/)
  })

  it('leads whoever is not signed in to the sign-in and back', async () => {
    const { location } = await createVisitor({ url: siteUrl }).get(at())
    assert.equal(location, `/sign-in?return_to=${encodeURIComponent(at())}`)
  })

  it('begins with test money as long as nothing was charged', async () => {
    assert.equal((await owner.get('/console')).location, at())
  })

  it('is not there for who is no member, nor in a mode that there is not', async () => {
    const stranger = browserOf(siteUrl, await join(pool, (await makeTeam(pool)).workspaceId))
    for (const path of [at(), at('', 'other'), '/console/none/test']) {
      assert.equal((await stranger.get(path)).status, 404, path)
    }
    assert.equal((await owner.get(at('', 'other'))).status, 404)
  })

  it('shows what was stored as text, whatever it says', async () => {
    const evil = `<img src=x onerror=alert(1)>"'</title><script>alert(2)</script>`
    const { workspaceId } = await makeTeam(pool)
    const member = browserOf(siteUrl, await join(pool, workspaceId))
    await pool.query('update workspaces set name = $2 where id = $1', [workspaceId, evil])
    await pool.query('update api_keys set name = $2 where workspace_id = $1', [workspaceId, evil])
    const { text } = await member.get(`/console/${workspaceId}/test`)
    assert.match(text, /&lt;img src=x onerror=alert\(1\)&gt;/)
    assert.doesNotMatch(text, /<img|<script>/)
  })
})

describe('a key that is made by a page', () => {
  const path = at('/first-key', 'live')

  it('is shown once: the same form sent again makes no other, and shows none', async () => {
    const fields = filledIn((await owner.get(at('', 'live'))).text, path)
    const made = await owner.post(path, fields)
    assert.equal(made.status, 200, made.text)
    const [secret = ''] = /fb_live_\w+/.exec(made.text) ?? []
    assert.notEqual(secret, '')
    assert.equal((await owner.post(path, fields)).location, at('', 'live'))
    assert.doesNotMatch((await owner.get(at('', 'live'))).text, /fb_live_\w+/)
    const { rows } = await pool.query("select from api_keys where workspace_id = $1 and name = 'First key'", [
      team.workspaceId,
    ])
    assert.equal(rows.length, 1)
  })

  it('is not made by a page of somebody else, nor for who may not make keys', async () => {
    const { rowCount: before } = await pool.query('select from api_keys where workspace_id = $1', [team.workspaceId])
    const session = owner.cookies.get('fb_session') ?? ''
    const form = { form_token: formTokenOf(session), idempotency_key: 'one' }
    assert.equal((await owner.post(path, { idempotency_key: 'one' })).status, 403)
    assert.equal((await owner.post(path, form, { origin: 'https://evil.example' })).status, 403)
    const viewer = browserOf(siteUrl, team.of('viewer'))
    const own = { form_token: formTokenOf(viewer.cookies.get('fb_session') ?? ''), idempotency_key: 'two' }
    const refused = await viewer.post(path, own)
    assert.equal(refused.status, 403)
    assert.match(refused.text, /Your role is viewer/)
    const { rowCount } = await pool.query('select from api_keys where workspace_id = $1', [team.workspaceId])
    assert.equal(rowCount, before)
  })
})

describe('calls as they end', () => {
  it('are told once each to all who watch, with what they cost', async () => {
    const { headers } = team.of('owner')
    const url = `${siteUrl}/account/v1/workspaces/${team.workspaceId}/requests/live?mode=test&seconds=3`
    const watching = [1, 2].map(async () => (await fetch(url, { headers: { ...headers } })).text())
    const { id, costUsd } = await call(house.gateway.url, team.secret, 'rerank')
    for (const text of await Promise.all(watching)) {
      assert.equal(text.split(id).length - 1, 1, text)
      assert.match(text, new RegExp(`event: request\\ndata: .*"usd":"${costUsd}"`))
    }
  })

  it('has room for four streams of a person', async () => {
    const { headers } = team.of('viewer')
    const url = `${siteUrl}/account/v1/workspaces/${team.workspaceId}/requests/live?mode=test&seconds=2`
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => fetch(url, { headers: { ...headers } })))
    const statuses = answers.map(({ status }) => status).toSorted()
    await Promise.all(answers.map((answer) => answer.text()))
    assert.deepEqual(statuses, [200, 200, 200, 200, 429])
  })
})

describe('the overview', () => {
  it('tells balance, spend and calls as the account API does, to the nano, and nothing of a first call', async () => {
    const { headers } = team.of('owner')
    await call(house.gateway.url, team.secret, 'rerank')
    const read = async (path: string) =>
      Object(
        await (
          await fetch(`${siteUrl}/account/v1/workspaces/${team.workspaceId}${path}`, { headers: { ...headers } })
        ).json(),
      )
    const month = new Date().toISOString().slice(0, 7)
    const { totals } = await read(`/usage?mode=test&group_by=operation&start=${month}-01T00:00:00Z`)
    const { available, held } = await read('/balance?mode=test')
    const { text } = await owner.get(at())
    assert.match(text, /<h1>Overview<\/h1>/)
    assert.doesNotMatch(text, /Make your first call/)
    assert.ok(text.includes(`Month</td><td class="fb-end">${totals.requests}</td>`), text)
    assert.ok(text.includes(`<data class="fb-money" value="${totals.charged.usd}">`), totals.charged.usd)
    assert.ok(text.includes(`<data class="fb-money" value="${held.usd}">`), held.usd)
    assert.ok(text.includes(`value="${available.usd.slice(0, -3)}">`), available.usd)
    assert.match(text, /Latest requests.*rerank.*Charged/s)
  })
})
