import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startSite } from '../people/site.ts'
import { hiddenIn, PASSWORD, signIn, signUp } from '../people/visitor.ts'
import { authorizePath, createOauthClient, decide, exchange, newPkce, registered, toConsent } from './client.ts'

/** Clients that want to know when the person proved who they are, and those that want it proven anew. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const HOUR_SECONDS = 3_600

/** Somebody who has been signed in for an hour, and when that was. */
async function signedInLongAgo() {
  const email = await signUp(site)
  const person = await signIn(site, email)
  const { rows } = await site.pool.query(
    `update browser_sessions session set created_at = session.created_at - make_interval(secs => $2)
     from people where people.id = person_id and email = $1 and ended_at is null returning session.created_at`,
    [email, HOUR_SECONDS],
  )
  assert.equal(rows.length, 1, 'the session of the sign-up has ended')
  return { email, person, at: Math.floor(rows[0].created_at.getTime() / 1_000) }
}

function claimsOf(token: unknown): Record<string, unknown> {
  const [, payload = ''] = String(token).split('.')
  return Object(JSON.parse(Buffer.from(payload, 'base64url').toString()))
}

async function grants(): Promise<number> {
  const { rows } = await site.pool.query('select count(*)::integer as count from grants')
  return Number(rows[0]?.count)
}

describe('when somebody signed in', () => {
  it('is told as auth_time: the time of the sign-in, not that of the consent', async () => {
    const { person, at } = await signedInLongAgo()
    const client = createOauthClient(site)
    const asked = { clientId: await registered(client), pkce: newPkce() }
    const changed = { scope: 'openid agent', max_age: String(2 * HOUR_SECONDS) }
    const back = await decide(person, await toConsent(person, { ...asked, changed }))
    const { json, text } = await exchange(client, { ...asked, code: back.searchParams.get('code') ?? '' })
    assert.equal(claimsOf(json.id_token).auth_time, at, text)
  })

  it('is not asked again of who allows a client that says nothing of it, or only wants consent', async () => {
    const { person } = await signedInLongAgo()
    const clientId = await registered(createOauthClient(site))
    for (const changed of [{}, { prompt: 'consent' }]) {
      const path = await toConsent(person, { clientId, pkce: newPkce(), changed })
      assert.equal((await person.get(path)).status, 200)
    }
  })
})

describe('a client that wants it proven anew', () => {
  for (const changed of [{ prompt: 'login' }, { prompt: 'login consent' }, { max_age: '60' }, { max_age: '0' }])
    it(`has the person sign in once more, with nothing decided before: ${JSON.stringify(changed)}`, async () => {
      const { email, person, at } = await signedInLongAgo()
      const client = createOauthClient(site)
      const asked = { clientId: await registered(client), pkce: newPkce() }
      const { location } = await person.get(authorizePath({ ...asked, changed: { scope: 'openid agent', ...changed } }))
      const path = new URL(location, site.url).pathname
      const led = await person.get(path)
      assert.deepEqual([led.status, led.location], [303, `/sign-in?note=again&return_to=${encodeURIComponent(path)}`])
      const shown = await person.get(led.location)
      assert.equal(shown.status, 200, 'the form, though somebody is signed in')

      const before = await grants()
      const choice = {
        ...hiddenIn(shown.text, '/sign-in'),
        decision: 'allow',
        mode: 'live',
        amount: '1.00',
        days: '30',
      }
      assert.equal((await person.post(path, choice)).location, led.location)
      assert.equal(await grants(), before)

      assert.equal((await person.fill(led.location, { email, password: 'another' }, '/sign-in')).status, 400)
      assert.equal((await person.get(path)).status, 303)
      const signedIn = await person.fill(led.location, { email, password: PASSWORD }, '/sign-in')
      assert.equal(signedIn.location, path)
      const back = await decide(person, path)
      const { json } = await exchange(client, { ...asked, code: back.searchParams.get('code') ?? '' })
      // ID tokens say it where the client limits it.
      const told = claimsOf(json.id_token).auth_time
      if ('max_age' in changed) assert.ok(Number(told) >= at + HOUR_SECONDS, `${told}`)
    })

  it('gets it of a device too', async () => {
    const { email, person } = await signedInLongAgo()
    const client = createOauthClient(site)
    const grant_types = ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token']
    const clientId = await registered(client, { grant_types, redirect_uris: [], client_name: 'Command line' })
    const { json, text } = await client.post('/oauth/device', {
      client_id: clientId,
      scope: 'openid agent',
      max_age: '60',
    })
    const user_code = String(json.user_code)
    const led = await person.fill('/device', { user_code })
    assert.deepEqual([led.status, led.location], [303, '/sign-in?note=again&return_to=%2Fdevice'], text)
    await person.fill(led.location, { email, password: PASSWORD }, '/sign-in')
    assert.match((await person.fill('/device', { user_code })).text, /asks for a budget/)
  })
})
