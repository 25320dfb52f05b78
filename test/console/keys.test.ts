import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { call } from '../acceptance/installation.ts'
import { ask, join, makeTeam, startHouse } from '../account/house.ts'
import { filledIn } from '../people/visitor.ts'
import { browserOf } from './browser.ts'

/** Keys in the console: what the forms change is what the account API tells. */

const database = await freshDatabase()
const house = await startHouse(database.url)
after(house.stop)
const { pool, siteUrl } = house
const team = await makeTeam(pool, ['owner', 'viewer'])

const owner = browserOf(siteUrl, team.of('owner'))
const keys = `/console/${team.workspaceId}/test/keys`
const told = async (id: string) =>
  (await ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/keys/${id}`)).json

async function make(name: string, values: Readonly<Record<string, string>> = {}) {
  const page = (await owner.get(`${keys}/new`)).text
  const made = await owner.post(keys, { ...filledIn(page, keys), scopes: '', addresses: '', name, ...values })
  assert.equal(made.status, 200, made.text)
  const [secret = ''] = /fb_test_[0-9a-f]{35}_\w+/.exec(made.text) ?? []
  const { rows } = await pool.query<{ id: string }>('select id from api_keys where name = $1', [name])
  return { secret, id: rows[0]?.id ?? assert.fail(name), text: made.text }
}

describe('keys in the console', () => {
  it('are made with what the form says, and told their secret once, in every snippet', async () => {
    const { id, secret, text } = await make('nightly', {
      ...{ amount: '12.50', period: 'week', requests: '60', calls: '3', expires: '2099-01-31' },
      ...{ scopes: 'rerank\nmodels', addresses: '203.0.113.0/24, 198.51.100.7' },
    })
    const key = await told(id)
    assert.deepEqual(
      [Object(key.budget).period, Object(Object(key.budget).amount).usd, key.scopes, key.expires_at],
      ['week', '12.500000000', ['rerank', 'models'], '2099-01-31T00:00:00.000Z'],
    )
    assert.deepEqual(key.rates, { requests_per_minute: 60, tokens_per_minute: null, concurrency: 3 })
    assert.deepEqual(key.allowed_addresses, ['203.0.113.0/24', '198.51.100.7/32'])
    assert.ok(text.split(secret).length > 5, 'curl, Python, TypeScript, Claude Code and Codex have it')
    assert.doesNotMatch((await owner.get(`${keys}/${id}`)).text, new RegExp(secret))
  })

  it('show what was charged, to the nano, and why calls were refused, with the fix', async () => {
    const { id, secret } = await make('spends')
    const { costUsd } = await call(house.gateway.url, secret, 'rerank')
    // What a process counts is written once a minute.
    await pool.query(
      `insert into refusals (credential_id, hour, reason, count) values ($1, date_trunc('hour', clock_timestamp()), 'budget_exceeded', 7)`,
      [id],
    )
    const { text } = await owner.get(`${keys}/${id}`)
    assert.match(text, new RegExp(`charged <b><data class="fb-money" value="${costUsd}"`))
    assert.match(text, /A budget was used up.*budget_exceeded.*>7<.*Raise the budget/s)
    assert.match((await owner.get(keys)).text, new RegExp(`href="${keys}/${id}"`))
  })

  it('are changed, and what somebody else changed meanwhile is not overwritten', async () => {
    const { id } = await make('changes')
    const path = `${keys}/${id}`
    const form = { ...filledIn((await owner.get(`${path}/edit`)).text, path), scopes: '', addresses: '' }
    const changed = await owner.post(path, { ...form, amount: '7', period: 'day' })
    assert.deepEqual([changed.status, changed.location], [303, path])
    assert.equal(Object(Object((await told(id)).budget).amount).usd, '7.000000000')
    const late = await owner.post(path, { ...form, idempotency_key: 'another', amount: '8' })
    assert.equal(late.status, 412)
    assert.match(late.text, /Somebody else has changed the key/)
    const wrong = {
      ...filledIn((await owner.get(`${path}/edit`)).text, path),
      scopes: 'nothing_like_it',
      addresses: '',
    }
    const refused = await owner.post(path, wrong)
    assert.equal(refused.status, 400)
    assert.match(refused.text, /Nothing was changed.*nothing_like_it/s)
  })

  it('are rotated with an overlap, and revoked after a question', async () => {
    const { id, secret } = await make('rotates')
    const path = `${keys}/${id}`
    const action = `${path}/rotate`
    const rotated = await owner.post(action, filledIn((await owner.get(path)).text, action))
    const [next = ''] = /fb_test_[0-9a-f]{35}_\w+/.exec(rotated.text) ?? []
    assert.notEqual(next, '')
    assert.notEqual(next, secret)
    for (const one of [secret, next]) assert.equal((await call(house.gateway.url, one, 'rerank')).status, 200)
    const asked = await owner.get(`${path}/revoke`)
    assert.match(asked.text, /Revoke <bdi>rotates<\/bdi>\?/)
    assert.equal((await told(id)).state, 'active')
    const done = await owner.post(`${path}/revoke`, filledIn(asked.text, `${path}/revoke`))
    assert.equal(done.location, path)
    assert.equal((await told(id)).state, 'revoked')
    assert.match((await owner.get(`${keys}?state=revoked`)).text, /rotates/)
  })

  it('are seen by who may not change them, and those of another workspace by nobody', async () => {
    const { id } = await make('seen')
    const viewer = browserOf(siteUrl, team.of('viewer'))
    const { text } = await viewer.get(`${keys}/${id}`)
    assert.match(text, /<h1><bdi>seen<\/bdi><\/h1>/)
    assert.doesNotMatch(text, /Revoke|Rotate/)
    const other = await makeTeam(pool)
    const stranger = browserOf(siteUrl, await join(pool, other.workspaceId))
    assert.equal((await stranger.get(`/console/${other.workspaceId}/test/keys/${id}`)).status, 404)
    assert.equal((await owner.get(`/console/${team.workspaceId}/live/keys/${id}`)).status, 404)
  })
})
