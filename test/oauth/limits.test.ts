import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { OAUTH_LIMITS } from '../../server/src/authorization/limits.ts'
import { addressKey, createAttempts, networkKey } from '../../server/src/people/attempts.ts'
import { hashOf } from '../../server/src/people/tokens.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, exchange, newPkce, REDIRECT, refresh, registered } from './client.ts'

/** Whom a limit counts, and what for. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const person = await signIn(site, await signUp(site))
const { left } = createAttempts({ pool: site.pool })

/** Another address of the same network. */
function besides(address: string): string {
  return address.replace(/\.\d+$/, (last) => (last === '.7' ? '.8' : '.7'))
}

async function useUp(limit: { readonly kind: string; readonly most: number }, key: Buffer): Promise<void> {
  await site.pool.query(
    `insert into door_attempts (kind, key, count, ends_at) values ($1, $2, $3, clock_timestamp() + interval '10 minutes')
     on conflict (kind, key) do update set count = excluded.count, ends_at = excluded.ends_at`,
    [limit.kind, key, limit.most],
  )
}

describe('requests for tokens', () => {
  it('count where they fail and not where they succeed, and not against a neighbour', async () => {
    const address = freshAddress()
    const tried = { limit: OAUTH_LIMITS.token, key: addressKey(visitorOf(address)) }
    const client = createOauthClient(site, address)
    const clientId = await registered(client)
    const pkce = newPkce()
    const first = await exchange(client, { clientId, pkce, code: await authorized(person, { clientId, pkce }) })
    const second = await refresh(client, clientId, first.json.refresh_token)
    assert.deepEqual([first.status, second.status], [200, 200])
    // A success is given back once it has been answered.
    await until(async () => (await left(tried)).left === OAUTH_LIMITS.token.most, PATIENCE_MS, 'that neither counts')
    assert.equal((await refresh(client, clientId, 'no token')).status, 400)
    assert.equal((await left(tried)).left, OAUTH_LIMITS.token.most - 1)

    await useUp(tried.limit, tried.key)
    assert.equal((await refresh(client, clientId, second.json.refresh_token)).status, 429)
    const neighbour = createOauthClient(site, besides(address))
    assert.equal((await refresh(neighbour, clientId, second.json.refresh_token)).status, 200)
  })
})

describe('refreshes of a grant', () => {
  it('are limited whoever asks, and leave the token as it was', async () => {
    const client = createOauthClient(site)
    const clientId = await registered(client)
    const pkce = newPkce()
    const { json } = await exchange(client, { clientId, pkce, code: await authorized(person, { clientId, pkce }) })
    const { rows } = await site.pool.query('select id from grants where client_id = $1', [clientId])
    const key = hashOf(String(rows[0]?.id))
    for (const limit of [OAUTH_LIMITS.refreshOfGrant, OAUTH_LIMITS.refreshOfGrantInDay]) {
      await useUp(limit, key)
      const refused = await refresh(createOauthClient(site), clientId, json.refresh_token)
      assert.deepEqual([refused.status, refused.json.error], [429, 'temporarily_unavailable'], refused.text)
      assert.ok(Number(refused.headers['retry-after']) > 0)
      await site.pool.query('delete from door_attempts where key = $1', [key])
    }
    const { rows: taken } = await site.pool.query(
      `select count(*)::integer as tokens, sum(taken)::integer as taken from oauth_states
       where kind = 'RefreshToken' and grant_id = $1`,
      [rows[0]?.id],
    )
    assert.deepEqual(taken, [{ tokens: 1, taken: 0 }])
    assert.equal((await refresh(client, clientId, json.refresh_token)).status, 200)
  })
})

describe('registrations', () => {
  it('of an address leave some for its neighbours, and those of a network end too', async () => {
    const address = freshAddress()
    const visitor = visitorOf(address)
    const register = (from: string) => createOauthClient(site, from).register({ redirect_uris: [REDIRECT] })
    await useUp(OAUTH_LIMITS.register, addressKey(visitor))
    assert.equal((await register(address)).status, 429)
    assert.equal((await register(besides(address))).status, 201)
    await useUp(OAUTH_LIMITS.registerFromNetwork, networkKey(visitor))
    assert.equal((await register(besides(address))).status, 429)
  })
})
