import assert from 'node:assert/strict'
import { createPublicKey, verify } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { readSigningKeys, rotateSigningKeys } from '../../server/src/authorization/signing-keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { connect } from '../ledger/world.ts'
import { BESIDE, startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, exchange, newPkce, type OauthClient, refresh, registered } from './client.ts'

/** Keys that sign what we say of people: one goes and another comes, and nobody is logged out. */
describe('the signing keys', () => {
  it('are made once, by however many processes, and published before they sign', async () => {
    const database = await freshDatabase()
    const { pools } = connect(database.url)
    after(() => pools.close())
    const seal = createSeal({ current: makeMasterKey() })
    const parts = { pool: pools.rest, seal, ids: createIds({ clock: systemClock }) }
    const all = await Promise.all(Array.from({ length: 5 }, () => readSigningKeys(parts)))
    assert.equal(new Set(all.map((keys) => keys.map(({ kid }) => kid).join(' '))).size, 1)
    const [first] = await readSigningKeys(parts)
    const age = (interval: string) =>
      pools.rest.query(`update signing_keys set created_at = created_at - interval '${interval}'`)
    await Promise.all(Array.from({ length: 5 }, () => rotateSigningKeys(parts)))
    assert.equal((await readSigningKeys(parts)).length, 1, 'it is not time yet')

    await age('31 days')
    await Promise.all(Array.from({ length: 5 }, () => rotateSigningKeys(parts)))
    const published = await readSigningKeys(parts)
    assert.equal(published.length, 2)
    assert.equal(published[0]?.kid, first?.kid, 'the old one signs while the new one gets known')
    await age('2 hours')
    const signing = await readSigningKeys(parts)
    assert.notEqual(signing[0]?.kid, first?.kid)
    assert.equal(signing[1]?.kid, first?.kid, 'what it signed can be checked')
    await age('3 days')
    await rotateSigningKeys(parts)
    assert.deepEqual(
      (await readSigningKeys(parts)).map(({ kid }) => kid),
      [signing[0]?.kid],
    )
    const { rows } = await pools.rest.query("select encode(sealed, 'escape') as text from signing_keys")
    assert.doesNotMatch(String(rows[0]?.text), /"d"/)
  })

  it('rotate without logging anybody out: tokens go on, and both keys check what they signed', async () => {
    const database = await freshDatabase()
    const masterKey = makeMasterKey()
    const env = { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp', FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal() }
    const site = await startSite(database.url, env)
    after(site.stop)
    const person = await signIn(site, await signUp(site))
    const client = createOauthClient(site)
    const clientId = await registered(client)
    const pkce = newPkce()
    const asked = { clientId, pkce, changed: { scope: 'openid agent' } }
    const before = await exchange(client, { clientId, pkce, code: await authorized(person, asked) })
    assert.equal(before.status, 200, before.text)
    const old = await signedBy(client, String(before.json.id_token))

    await site.pool.query("update signing_keys set created_at = created_at - interval '31 days'")
    const parts = { pool: site.pool, ids: createIds({ clock: systemClock }), seal: createSeal({ current: masterKey }) }
    await rotateSigningKeys(parts)
    await site.pool.query("update signing_keys set created_at = created_at - interval '2 hours'")
    // A process reads its keys again within a minute, or when it starts.
    const next = await startSite(database.url, { ...env, ...BESIDE })
    after(next.stop)
    const there = createOauthClient(next)
    const renewed = await refresh(there, clientId, before.json.refresh_token)
    assert.equal(renewed.status, 200, renewed.text)
    const kid = await signedBy(there, String(renewed.json.id_token))
    assert.notEqual(kid, old)
    assert.equal(await signedBy(there, String(before.json.id_token)), old)
    assert.equal(
      (await refresh(client, clientId, renewed.json.refresh_token)).status,
      200,
      'also where the old keys are',
    )
  })
})

/** The key that signed a token, as it is published; fails where none did. */
async function signedBy(client: OauthClient, token: string): Promise<string> {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
  const { json } = await client.get('/oauth/keys')
  const keys = json.keys as readonly { kid: string; d?: string }[]
  for (const key of keys) assert.equal(key.d, undefined)
  const jwk = keys.find((key) => key.kid === kid)
  assert.ok(jwk !== undefined, `${kid} is not published`)
  const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' } as const
  assert.ok(verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
  const { sub, iss } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  assert.ok(sub && iss)
  return kid
}
