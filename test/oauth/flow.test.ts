import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, exchange, newPkce, refresh, registered } from './client.ts'

const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)

describe('a client that a person lets in', () => {
  it('MCP-4 in part: finds its way from the metadata to a token, a refreshed one, and none once it is revoked', async () => {
    const client = createOauthClient(site)
    const told = await client.get('/.well-known/oauth-authorization-server')
    assert.equal(told.status, 200, told.text)
    const clientId = await registered(client)
    const person = await signIn(site, await signUp(site))
    const pkce = newPkce()
    const code = await authorized(person, { clientId, pkce })
    const tokens = await exchange(client, { clientId, code, pkce })
    assert.equal(tokens.status, 200, tokens.text)
    const second = await refresh(client, clientId, tokens.json.refresh_token)
    assert.equal(second.status, 200, second.text)
    const gone = await client.post('/oauth/revoke', { client_id: clientId, token: String(second.json.refresh_token) })
    assert.equal(gone.status, 200, gone.text)
    const third = await refresh(client, clientId, second.json.refresh_token)
    assert.equal(third.status, 400, third.text)
    assert.equal(third.json.error, 'invalid_grant')
  })
})
