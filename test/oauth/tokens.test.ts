import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createScrubber } from '../../server/src/telemetry/scrubber.ts'
import { startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import {
  authorized,
  createOauthClient,
  exchange,
  newPkce,
  type OauthClient,
  OPERATOR_SECRET,
  refresh,
  registered,
} from './client.ts'

/** What is done with codes and tokens that are stolen, repeated or somebody else's. */
const database = await freshDatabase()
const MCP = 'http://127.0.0.1:9/mcp'
const site = await startSite(database.url, {
  ...{ FAREBOX_HTTP_MCP_URL: MCP, FAREBOX_HTTP_PUBLIC_URL: 'http://127.0.0.1:8' },
  FAREBOX_OAUTH_INTROSPECTION_SECRET: OPERATOR_SECRET,
})
after(site.stop)
const email = await signUp(site)
const person = await signIn(site, email)
// Each client that they let in takes a place of the tier.
await site.pool.query("update workspaces set tier_granted = 'growth'")

async function letIn(client: OauthClient, changed: Record<string, string> = {}) {
  const clientId = await registered(client)
  const pkce = newPkce()
  const code = await authorized(person, { clientId, pkce, changed })
  return { clientId, pkce, code }
}

async function tokensFor(client: OauthClient, changed: Record<string, string> = {}) {
  const given = await letIn(client, changed)
  const reply = await exchange(client, given)
  assert.equal(reply.status, 200, reply.text)
  return { ...given, access: String(reply.json.access_token), refresh: String(reply.json.refresh_token), reply }
}

/** What an operator is told of a token. */
async function introspected(client: OauthClient, token: string) {
  const authorization = `Basic ${Buffer.from(`operator:${OPERATOR_SECRET}`).toString('base64')}`
  const { status, json, text } = await client.post('/oauth/introspect', { token }, { authorization })
  assert.equal(status, 200, text)
  return json
}

/** As if a token had been taken so long ago. */
async function takenAgo(seconds: number): Promise<void> {
  await site.pool.query(
    `update oauth_states set consumed_at = clock_timestamp() - make_interval(secs => $1)
     where kind = 'RefreshToken' and consumed_at is not null`,
    [seconds],
  )
}

describe('an authorization code', () => {
  it('works once: the second time it is refused, and what the first has got works no more', async () => {
    const client = createOauthClient(site)
    const given = await tokensFor(client)
    assert.equal((await introspected(client, given.access)).active, true)
    const again = await exchange(client, given)
    assert.equal(again.status, 400)
    assert.equal(again.json.error, 'invalid_grant')
    assert.match(String(again.json.error_description), /^The code was used before/)
    const stranger = await refresh(client, given.clientId, 'nothing')
    assert.match(String(stranger.json.error_description), /^The refresh token is not known/)
    const { pkce } = given
    const wrong = await exchange(client, { ...(await letIn(client)), pkce })
    assert.equal(wrong.json.error_description, 'code_verifier does not match the code_challenge of the request.')
    assert.deepEqual(await introspected(client, given.access), { active: false })
    assert.equal((await refresh(client, given.clientId, given.refresh)).status, 400)
  })

  it('is taken by one of many who bring it at once, and then by nobody', async () => {
    const client = createOauthClient(site)
    const given = await letIn(client)
    const replies = await Promise.all(Array.from({ length: 8 }, () => exchange(client, given)))
    const good = replies.filter(({ status }) => status === 200)
    assert.ok(good.length <= 1, `${good.length} got tokens`)
    for (const { json } of good)
      assert.deepEqual(await introspected(client, String(json.access_token)), { active: false })
  })

  it('is worth nothing to another client, without its verifier, or at another address', async () => {
    const client = createOauthClient(site)
    const given = await letIn(client)
    const other = await registered(client)
    const wrong = [
      { client_id: other },
      { code_verifier: newPkce().verifier },
      { code_verifier: '' },
      { redirect_uri: 'http://127.0.0.1:9876/other' },
      { redirect_uri: 'http://127.0.0.1:9877/callback' },
    ]
    for (const changed of wrong) {
      const { status, json } = await exchange(client, given, changed)
      assert.equal(status, 400, JSON.stringify(changed))
      assert.match(String(json.error), /^invalid_(grant|request)$/)
    }
    // None of them used it up.
    assert.equal((await exchange(client, given)).status, 200)
  })
})

describe('a refresh token', () => {
  it('may come again within two minutes, and every answer works', async () => {
    const client = createOauthClient(site)
    const { clientId, refresh: first } = await tokensFor(client)
    const replies = await Promise.all(Array.from({ length: 5 }, () => refresh(client, clientId, first)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200, 200],
    )
    assert.equal(new Set(replies.map(({ json }) => json.refresh_token)).size, 5)
    await takenAgo(100)
    assert.equal((await refresh(client, clientId, first)).status, 200)
    for (const { json } of replies) assert.equal((await refresh(client, clientId, json.refresh_token)).status, 200)
  })

  it('is renewed by who names all scopes that it first asked for, as Codex does, and not with more', async () => {
    const client = createOauthClient(site)
    const given = await tokensFor(client, { scope: 'agent offline_access' })
    let token = given.refresh
    for (const scope of ['agent offline_access', 'offline_access', 'agent']) {
      const { status, json, text } = await refresh(client, given.clientId, token, { scope })
      assert.deepEqual([status, json.scope], [200, 'agent'], text)
      token = String(json.refresh_token)
    }
    const more = await refresh(client, given.clientId, token, { scope: 'agent calls' })
    assert.deepEqual([more.status, more.json.error], [400, 'invalid_scope'])
  })

  it('ends its grant where it comes again after that, and the person is told', async () => {
    const client = createOauthClient(site)
    const { clientId, access, refresh: first } = await tokensFor(client)
    const second = await refresh(client, clientId, first)
    await takenAgo(121)
    const reused = await refresh(client, clientId, first)
    assert.equal(reused.status, 400)
    assert.equal(reused.json.error, 'invalid_grant')
    assert.deepEqual(await introspected(client, access), { active: false })
    assert.deepEqual(await introspected(client, String(second.json.access_token)), { active: false })
    assert.equal((await refresh(client, clientId, second.json.refresh_token)).status, 400)
    const mail = await site.mailTo(email, 2)
    assert.match(mail.subject, /Tram Planner/)
    assert.match(mail.text, /used a\s+second\s+time/)
  })

  it('has a bounded number of successors, however fast they are asked for: more of them end the grant', async () => {
    const client = createOauthClient(site)
    const { clientId, refresh: first } = await tokensFor(client)
    const replies = await Promise.all(Array.from({ length: 40 }, () => refresh(client, clientId, first)))
    assert.ok(replies.filter(({ status }) => status === 200).length <= 20)
    const { rows } = await site.pool.query('select revoked_at is null as lives from grants where client_id = $1', [
      clientId,
    ])
    assert.deepEqual(rows, [{ lives: false }])
    const ended = await site.pool.query(
      `select count(*)::integer as count from audit where action = 'grant.revoked' and subject in (
         select id::text from grants where client_id = $1)`,
      [clientId],
    )
    assert.deepEqual(ended.rows, [{ count: 1 }], 'it is ended once')
  })

  it('is worth nothing to another client, whose try harms nobody', async () => {
    const client = createOauthClient(site)
    const { clientId, refresh: first } = await tokensFor(client)
    const other = await registered(client)
    await refresh(client, clientId, first)
    await takenAgo(300)
    const foreign = await refresh(client, other, first)
    assert.equal(foreign.status, 400)
    const { rows } = await site.pool.query('select revoked_at from grants where client_id = $1', [clientId])
    assert.deepEqual(rows, [{ revoked_at: null }])
  })

  it('gives a token for what was granted and for nothing more', async () => {
    const client = createOauthClient(site)
    const { clientId, refresh: first } = await tokensFor(client)
    const elsewhere = await refresh(client, clientId, first, { resource: 'http://127.0.0.1:8' })
    assert.equal(elsewhere.json.error, 'invalid_target')
    const more = await refresh(client, clientId, first, { scope: 'agent account.read' })
    assert.equal(more.json.error, 'invalid_scope')
  })
})

describe('a token near the end of its grant', () => {
  it('ends with it, and the client and the audit log are told so', async () => {
    const client = createOauthClient(site)
    const { clientId, refresh: first, reply } = await tokensFor(client)
    assert.equal(reply.json.expires_in, 3_600)
    const { rows: ends } = await site.pool.query(
      `update grants set expires_at = clock_timestamp() + interval '10 minutes' where client_id = $1
       returning id, expires_at as "expiresAt"`,
      [clientId],
    )
    const { json } = await refresh(client, clientId, first)
    assert.ok(Number(json.expires_in) > 0 && Number(json.expires_in) <= 600, String(json.expires_in))
    const { rows } = await site.pool.query(
      `select after ->> 'expiresAt' as "expiresAt" from audit where action = 'grant.token_issued' and subject = $1
       order by at desc limit 1`,
      [ends[0]?.id],
    )
    assert.ok(new Date(String(rows[0]?.expiresAt)) <= ends[0]?.expiresAt)
  })
})

describe('codes and refresh tokens', () => {
  it('have a form that is known, and taken out of a log', async () => {
    const { code, refresh: token } = await tokensFor(createOauthClient(site))
    assert.match(code, /^fb_ac_[0-9a-f]{64}$/)
    assert.match(token, /^fb_rt_[0-9a-f]{64}$/)
    assert.equal(createScrubber([])(`a ${code} b ${token}`), 'a [redacted] b [redacted]')
  })
})

describe('what a token is for', () => {
  it('is the agents’ tools where a client names nothing, in the spelling that is stored', async () => {
    const client = createOauthClient(site)
    const { access, reply } = await tokensFor(client)
    assert.match(access, /^fb_at_[0-9a-f]{35}_/)
    assert.equal(reply.json.scope, 'agent')
    const told = await introspected(client, access)
    assert.equal(told.aud, MCP)
    assert.equal(told.scope, 'agent')
  })

  it('is base_url where a client names that, with or without a slash', async () => {
    const client = createOauthClient(site)
    for (const resource of ['http://127.0.0.1:8', 'http://127.0.0.1:8/']) {
      const { access } = await tokensFor(client, { resource, scope: 'calls account.read' })
      const told = await introspected(client, access)
      assert.equal(told.aud, 'http://127.0.0.1:8')
      assert.equal(told.scope, 'calls account.read')
    }
  })

  it('is told to operators alone', async () => {
    const client = createOauthClient(site)
    const { clientId, access } = await tokensFor(client)
    const asClient = await client.post('/oauth/introspect', { token: access, client_id: clientId })
    assert.notEqual(asClient.json.active, true)
    const authorization = `Basic ${Buffer.from('operator:another-secret-of-the-same-length').toString('base64')}`
    assert.equal((await client.post('/oauth/introspect', { token: access }, { authorization })).status, 401)
  })
})

describe('revocation', () => {
  it('by either token ends the grant, and leaves one row in the audit log', async () => {
    const client = createOauthClient(site)
    for (const which of ['access', 'refresh'] as const) {
      const given = await tokensFor(client)
      const { status } = await client.post('/oauth/revoke', { client_id: given.clientId, token: given[which] })
      assert.equal(status, 200)
      assert.deepEqual(await introspected(client, given.access), { active: false })
      assert.equal((await refresh(client, given.clientId, given.refresh)).status, 400)
      const { rows } = await site.pool.query(
        `select count(*)::integer as count from audit where action = 'grant.revoked' and subject in (
           select id::text from grants where client_id = $1)`,
        [given.clientId],
      )
      assert.deepEqual(rows, [{ count: 1 }])
    }
  })

  it('of somebody else’s token does nothing', async () => {
    const client = createOauthClient(site)
    const given = await tokensFor(client)
    const other = await registered(client)
    await client.post('/oauth/revoke', { client_id: other, token: given.refresh })
    await client.post('/oauth/revoke', { client_id: other, token: given.access })
    assert.equal((await refresh(client, given.clientId, given.refresh)).status, 200)
  })
})
