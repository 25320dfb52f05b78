import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import {
  authorized,
  createOauthClient,
  decide,
  exchange,
  newPkce,
  REDIRECT,
  refresh,
  registered,
  toConsent,
} from './client.ts'

/** Somebody registers clients as fast as they can, from many networks. */
const REGISTRATIONS = count({ full: 100_000, reduced: 1_000 })
/** Of a flood before, so that a smaller one reaches the bound too. They are of today, and of networks of their own. */
const BEFORE = count({ full: 0, reduced: 9_900 })
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
    // Somebody who has begun, and decides when the flood is over.
    const early = createOauthClient(site)
    const waiting = { clientId: await registered(early), pkce }
    const path = await toConsent(person, waiting)
    await site.pool.query(
      `insert into oauth_clients (id, metadata, network)
       select 'before-' || n, '{}', sha256(int4send(n / ${OF_NETWORK})) from generate_series(1, $1::integer) n`,
      [BEFORE],
    )

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
    assert.ok((statuses[201] ?? 0) + BEFORE > BOUND, 'that was no flood')
    assert.ok(kept <= BOUND, `${kept} are kept`)

    assert.equal((await refresh(client, clientId, tokens.json.refresh_token)).status, 200)
    const back = await decide(person, path)
    const late = await exchange(early, { ...waiting, code: back.searchParams.get('code') ?? '' })
    assert.equal(late.status, 200, 'who waited for a person was not pushed out')
    const another = createOauthClient(site)
    const newcomer = await registered(another)
    const code = await authorized(person, { clientId: newcomer, pkce })
    assert.equal((await exchange(another, { clientId: newcomer, pkce, code })).status, 200)
    recordProof('authorization-server-flood', 'registrations', {
      ...{ sent: REGISTRATIONS, taken: statuses[201] ?? 0, refused: statuses[429] ?? 0, kept },
    })
  })
})
