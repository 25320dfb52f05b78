import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, exchange, newPkce, REDIRECT, refresh, registered } from './client.ts'

/** Somebody registers clients as fast as they can, from many networks. */
const REGISTRATIONS = count({ full: 100_000, reduced: 2_000 })
const OF_NETWORK = 40
const AT_ONCE = 16
/** What is kept of those that nobody allowed, and what may be on its way. */
const BOUND = 10_000 + 100

const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)

describe('a flood of registrations', () => {
  it('fills no table, and no client of others is the worse for it', async () => {
    const person = await signIn(site, await signUp(site))
    const client = createOauthClient(site)
    const clientId = await registered(client)
    const pkce = newPkce()
    const tokens = await exchange(client, { clientId, pkce, code: await authorized(person, { clientId, pkce }) })

    const statuses: Record<number, number> = {}
    let next = 0
    const networks = Array.from({ length: Math.ceil(REGISTRATIONS / OF_NETWORK) }, () => freshAddress())
    async function flood(): Promise<void> {
      for (let n = next++; n < REGISTRATIONS; n = next++) {
        const address = networks[n % networks.length] ?? ''
        const { status } = await createOauthClient(site, address).register({ redirect_uris: [REDIRECT] })
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, flood))
    assert.deepEqual(Object.keys(statuses), ['201', '429'])
    const { rows } = await site.pool.query('select count(*)::integer as count from oauth_clients')
    const kept = Number(rows[0]?.count)
    assert.ok(kept <= BOUND, `${kept} are kept`)

    assert.equal((await refresh(client, clientId, tokens.json.refresh_token)).status, 200)
    const another = createOauthClient(site)
    const newcomer = await registered(another)
    const code = await authorized(person, { clientId: newcomer, pkce })
    assert.equal((await exchange(another, { clientId: newcomer, pkce, code })).status, 200)
    recordProof('authorization-server-flood', 'registrations', {
      ...{ sent: REGISTRATIONS, taken: statuses[201] ?? 0, refused: statuses[429] ?? 0, kept },
    })
  })
})
