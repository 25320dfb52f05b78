import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startSite } from '../people/site.ts'
import { createVisitor, filledIn, signIn, signUp, type Visitor } from '../people/visitor.ts'
import {
  authorized,
  authorizePath,
  createOauthClient,
  exchange,
  newPkce,
  type OauthClient,
  refresh,
  registered,
} from './client.ts'

/** Programs without a browser, and what is kept of all that clients and browsers bring. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const COMMAND_LINE = { redirect_uris: [], grant_types: [DEVICE_CODE, 'refresh_token'], client_name: 'Command line' }

async function begin(client: OauthClient) {
  const clientId = await registered(client, COMMAND_LINE)
  const { status, json, text } = await client.post('/oauth/device', { client_id: clientId })
  assert.equal(status, 200, text)
  const poll = (id = clientId) =>
    client.post('/oauth/token', { grant_type: DEVICE_CODE, client_id: id, device_code: String(json.device_code) })
  return { clientId, poll, code: String(json.user_code), device: String(json.device_code), json }
}

/** What a person sees who types a code. */
async function type(person: Visitor, code: string) {
  return person.fill('/device', { user_code: code })
}

async function decide(person: Visitor, code: string, decision: 'allow' | 'deny') {
  const { text } = await type(person, code)
  const fields = { decision, mode: 'live', amount: '1.00', days: '30' }
  return person.post('/device/decide', { ...filledIn(text, '/device/decide'), ...fields })
}

describe('a device', () => {
  it('waits until the person who types its code lets it in, and gets tokens once', async () => {
    const client = createOauthClient(site)
    const person = await signIn(site, await signUp(site))
    const { poll, clientId, code, json } = await begin(client)
    assert.equal(json.verification_uri, `${site.url}/device`)
    assert.equal((await poll()).json.error, 'authorization_pending')
    const shown = await type(person, code.toLowerCase().replace('-', ' '))
    assert.match(shown.text, /Command line/)
    assert.match(shown.text, /Is it your own device\?/)
    assert.equal((await poll()).json.error, 'authorization_pending')
    assert.match((await decide(person, code, 'allow')).text, /Your device is connected/)
    const tokens = await poll()
    assert.equal(tokens.status, 200, tokens.text)
    assert.match(String(tokens.json.access_token), /^fb_at_/)
    assert.ok(tokens.json.refresh_token)
    assert.equal((await poll()).json.error, 'slow_down')
    await site.pool.query(
      "update oauth_states set consumed_at = consumed_at - interval '2 minutes' where kind = 'DeviceCode'",
    )
    assert.equal((await poll()).json.error, 'invalid_grant')
    assert.equal((await refresh(client, clientId, tokens.json.refresh_token)).status, 400, 'somebody else has it too')
  })

  it('gets tokens that work by one of several polls at once', async () => {
    const client = createOauthClient(site)
    const person = await signIn(site, await signUp(site))
    const { poll, clientId, code } = await begin(client)
    await decide(person, code, 'allow')
    const polls = await Promise.all(Array.from({ length: 6 }, () => poll()))
    const [tokens, ...others] = polls.toSorted((one, other) => one.status - other.status)
    assert.equal(tokens?.status, 200, tokens?.text)
    assert.deepEqual(new Set(others.map(({ json }) => json.error)), new Set(['slow_down']))
    assert.equal((await refresh(client, clientId, tokens?.json.refresh_token)).status, 200)
  })

  it('has a code that the person types: no link fills it in', async () => {
    const person = await signIn(site, await signUp(site))
    const { code, json } = await begin(createOauthClient(site))
    assert.equal('verification_uri_complete' in json, false)
    const { status, text } = await person.get(`/device?user_code=${code}`)
    assert.equal(status, 200)
    assert.match(text, /name="user_code"/)
    assert.equal(text.includes(code), false)
  })

  it('gets no code for nothing', async () => {
    const client = createOauthClient(site)
    const clientId = await registered(client, COMMAND_LINE)
    const { status, json } = await client.post('/oauth/device', { client_id: clientId, scope: 'openid' })
    assert.deepEqual([status, json.error], [400, 'invalid_scope'])
  })

  it('is told where it was not let in', async () => {
    const client = createOauthClient(site)
    const person = await signIn(site, await signUp(site))
    const { poll, code } = await begin(client)
    assert.match((await decide(person, code, 'deny')).text, /The device is not connected/)
    assert.equal((await poll()).json.error, 'access_denied')
  })

  it('has a code that is nothing to another client, and that nobody answers twice', async () => {
    const client = createOauthClient(site)
    const person = await signIn(site, await signUp(site))
    const { poll, code } = await begin(client)
    const other = await registered(client, COMMAND_LINE)
    await decide(person, code, 'allow')
    assert.equal((await poll(other)).json.error, 'invalid_grant')
    const again = await type(person, code)
    assert.equal(again.status, 400)
    assert.equal((await poll()).status, 200)
  })

  it('has a code that can’t be guessed: who is signed in may try ten times, and nobody else at all', async () => {
    const person = await signIn(site, await signUp(site))
    const stranger = createVisitor(site)
    assert.match((await stranger.get('/device')).location, /^\/sign-in/)
    assert.equal((await stranger.post('/device', { user_code: 'BBBB-BBBB' })).status, 403)
    const statuses: number[] = []
    for (let count = 0; count < 12; count += 1) statuses.push((await type(person, 'BBBB-BBBB')).status)
    assert.deepEqual(statuses, [...Array(10).fill(400), 429, 429])
  })
})

describe('what is kept', () => {
  it('holds no code, token, secret or cookie that anybody could use', async () => {
    const client = createOauthClient(site)
    const person = await signIn(site, await signUp(site))
    const { device, code: userCode } = await begin(client)
    const secretive = await client.register({ redirect_uris: ['http://127.0.0.1:1/'] })
    const clientId = await registered(client)
    const pkce = newPkce()
    const open = await person.get(authorizePath({ clientId, pkce }))
    const code = await authorized(person, { clientId, pkce })
    const unused = await authorized(person, { clientId, pkce })
    const tokens = await exchange(client, { clientId, code, pkce })
    const values = {
      ...{ device, userCode, plainUserCode: userCode.replace('-', ''), code, unused },
      ...{ clientSecret: String(secretive.json.client_secret), access: String(tokens.json.access_token) },
      ...{ refresh: String(tokens.json.refresh_token), interaction: open.location.split('/').at(-1) ?? '' },
    }
    const { rows: tables } = await site.pool.query(
      "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    )
    const found: string[] = []
    for (const { name } of tables) {
      const { rows } = await site.pool.query(`select row::text as text from "${name}" row`)
      for (const { text } of rows)
        for (const [what, value] of Object.entries(values)) {
          assert.ok(value.length >= 8, what)
          if (String(text).includes(value)) found.push(`${what} in ${name}`)
        }
    }
    assert.deepEqual(found, [])
    // The rows are there all the same, by their hashes.
    const { rows } = await site.pool.query('select distinct kind from oauth_states order by kind')
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['AuthorizationCode', 'DeviceCode', 'Interaction', 'RefreshToken'],
    )
  })
})
