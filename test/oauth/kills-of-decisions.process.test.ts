import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { recordProof } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createCookies } from '../../server/src/pages/cookies.ts'
import { openSession } from '../../server/src/people/sessions.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { type Answer, createVisitor, filledIn, type Visitor } from '../people/visitor.ts'
import { authorizePath, createOauthClient, exchange, newPkce, REDIRECT, type Reply, registered } from './client.ts'
import { SITE } from './server-here.ts'
import { atEveryStatement, openDoors, type Send } from './under-death.ts'

/** What strangers and people send before there is a token: registrations, consents, decisions about devices. */
const { url } = await freshDatabase()
const masterKey = makeMasterKey()
const { pools } = connect(url)
after(() => pools.close())
const pool = pools.rest
const { living, underDeath } = await openDoors({ url, masterKey, pool })
const [door] = living
// A grant takes a place of the tier.
const { workspaceId } = await makeCustomer(pool, { paid: 500_000_000_000n })
const CHOICE = { decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

/** A browser in which a member is signed in. Whichever process answers, it is the same one. */
async function signedIn(): Promise<{ readonly personId: string; readonly browser: (at: { url: string }) => Visitor }> {
  const { personId } = await makeMember(pool, workspaceId)
  const opened = await inTransaction(pool, (query) =>
    openSession(query, ids, visitorOf('203.0.113.9'), { personId, password: null }),
  )
  assert.ok(opened !== null)
  const cookies = new Map<string, string>()
  const [, name = '', value = ''] =
    /^([^=]+)=([^;]*)/.exec(createCookies({ isSecure: true }).put('session', opened.session)) ?? []
  cookies.set(name, value)
  return { personId, browser: (at) => browserWith(at, cookies) }
}

/** One that knows the same, at whichever process. */
function browserWith(at: { readonly url: string }, cookies: ReadonlyMap<string, string>): Visitor {
  const visitor = createVisitor(at, { origin: SITE })
  for (const [name, value] of cookies) visitor.cookies.set(name, value)
  return visitor
}

async function grantsOf(personId: string) {
  const { rows } = await pool.query<{ id: string; rows: number }>(
    `select id, (select count(*)::integer from audit where subject = grants.id::text and action = 'grant.made') as rows
     from grants where person_id = $1`,
    [personId],
  )
  return rows
}

/** A consent that a person is looking at. */
async function givenConsent() {
  const clientId = await registered(createOauthClient(door))
  const pkce = newPkce()
  const { personId, browser } = await signedIn()
  const first = browser(door)
  const { location, text } = await first.get(authorizePath({ clientId, pkce }))
  const path = new URL(location, SITE).pathname
  const page = await first.get(path)
  assert.equal(page.status, 200, text + page.text)
  const fields = { ...filledIn(page.text, path), ...CHOICE }
  const send: Send<Answer> = (at) => browserWith(at, first.cookies).post(path, fields)
  const goOn: Send<Answer> = (at) => browserWith(at, first.cookies).get(`/oauth/authorize/${path.split('/').at(-1)}`)
  return { clientId, pkce, personId, send, goOn }
}

async function givenDevice() {
  const client = createOauthClient(door)
  const metadata = { redirect_uris: [], grant_types: [DEVICE_CODE, 'refresh_token'], client_name: 'Command line' }
  const clientId = await registered(client, metadata)
  const { json } = await client.post('/oauth/device', { client_id: clientId })
  const { personId, browser } = await signedIn()
  const { text } = await browser(door).fill('/device', { user_code: String(json.user_code) })
  const fields = { ...filledIn(text, '/device/decide'), ...CHOICE }
  const send: Send<Answer> = (at) => browser(at).post('/device/decide', fields)
  const poll = () =>
    client.post('/oauth/token', { grant_type: DEVICE_CODE, client_id: clientId, device_code: String(json.device_code) })
  return { personId, send, poll }
}

const codeIn = ({ location }: Answer) => (location === '' ? null : new URL(location, SITE).searchParams.get('code'))

describe('a process that is killed', () => {
  it('within a consent leaves one grant and one row, and the browser that goes on gets a code that works', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenConsent()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      assert.ok(answers.filter(({ status }) => status === 303).length <= 1)
      const grants = await grantsOf(given.personId)
      assert.deepEqual(
        grants.map(({ rows }) => rows),
        [1],
      )
      const code = codeIn(await given.goOn(living[0]))
      assert.ok(code !== null)
      const { status, text } = await exchange(createOauthClient(living[0]), { ...given, code })
      assert.equal(status, 200, text)
      return true
    })
    recordProof('authorization-server-kills-of-decisions', 'consents', { deaths, grantsTooMany: 0 })
  })

  it('while the browser goes on gives one code at the most', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenConsent()
      await given.send(living[1])
      const answers = await underDeath(given.goOn, death)
      if (answers === null) return false
      assert.ok(answers.filter((one) => codeIn(one) !== null).length <= 1)
      const { rows } = await pool.query(
        `select count(*)::integer as count from oauth_states where kind = 'AuthorizationCode' and grant_id = any($1)`,
        [(await grantsOf(given.personId)).map(({ id }) => id)],
      )
      assert.ok(rows[0]?.count <= 1)
      return true
    })
    recordProof('authorization-server-kills-of-decisions', 'browsers that go on', { deaths, codesTooMany: 0 })
  })

  it('within the decision about a device leaves one grant and one row, and the device is let in once', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenDevice()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      const grants = await grantsOf(given.personId)
      assert.deepEqual(
        grants.map(({ rows }) => rows),
        [1],
      )
      const { status, text } = await given.poll()
      assert.equal(status, 200, text)
      assert.equal((await given.poll()).status, 400)
      return true
    })
    recordProof('authorization-server-kills-of-decisions', 'decisions about devices', { deaths, grantsTooMany: 0 })
  })

  it('within a registration leaves what was answered, and at most one that nobody knows', async () => {
    const deaths = await atEveryStatement(async (death) => {
      // So that the bound of one network forgets none of those that are looked at.
      await pool.query('delete from oauth_clients where confirmed_at is null')
      const send: Send<Reply> = (at) =>
        createOauthClient(at).register({ redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' })
      const answers = await underDeath(send, death)
      if (answers === null) return false
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 201],
      )
      const { rowCount } = await pool.query('select from oauth_clients where confirmed_at is null')
      assert.ok(rowCount === 2 || rowCount === 3, `there are ${rowCount}`)
      const { personId, browser } = await signedIn()
      for (const { json } of answers) {
        const asked = { clientId: String(json.client_id), pkce: newPkce() }
        assert.equal((await browser(living[0]).get(authorizePath(asked))).status, 303)
      }
      assert.deepEqual(await grantsOf(personId), [])
      return true
    })
    recordProof('authorization-server-kills-of-decisions', 'registrations', { deaths, answeredAndLost: 0 })
  })
})
