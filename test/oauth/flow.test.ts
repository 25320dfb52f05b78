import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createResources, metadataPathOf, protectedResourceMetadata } from '../../server/src/authorization/resources.ts'
import { startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, exchange, newPkce, refresh, registered } from './client.ts'

const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)

describe('a client that a person lets in', () => {
  it('MCP-4 finds its way from the metadata to a token, a refreshed one, and none once it is revoked', async () => {
    const client = createOauthClient(site)
    const told = await client.get('/.well-known/oauth-authorization-server')
    assert.equal(told.status, 200, told.text)
    const { issuer, scopes_supported: scopes, code_challenge_methods_supported: challenges } = told.json
    assert.equal(issuer, site.url)
    assert.deepEqual(challenges, ['S256'])
    assert.deepEqual(scopes, ['agent', 'calls', 'openid', 'offline_access'], 'nothing that reaches into accounts')
    assert.equal(told.json.authorization_response_iss_parameter_supported, true)
    assert.equal(told.json.client_id_metadata_document_supported, true)
    assert.deepEqual(told.json.response_types_supported, ['code'])
    for (const name of ['authorization', 'token', 'registration', 'revocation', 'device_authorization'])
      assert.match(String(told.json[`${name}_endpoint`]), new RegExp(`^${site.url}/oauth/`), name)
    // Where clients look beside.
    for (const path of ['oauth-authorization-server/mcp', 'openid-configuration', 'openid-configuration/mcp'])
      assert.deepEqual((await client.get(`/.well-known/${path}`)).json, told.json, path)
    assert.equal((await client.get('/.well-known/nothing')).status, 404)
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

describe('what a resource says of itself', () => {
  it('names who issues its tokens, and the least that a client needs there', async () => {
    const baseUrl = site.gateway.url
    const resources = createResources({ siteUrl: site.url, baseUrl, mcpUrl: 'http://127.0.0.1:9/mcp' })
    const told = resources.all.map((resource) => protectedResourceMetadata(resource, site.url))
    assert.deepEqual(
      told.map(({ resource, scopes_supported: scopes }) => [resource, scopes]),
      [
        ['http://127.0.0.1:9/mcp', ['agent']],
        [baseUrl, ['calls']],
        [`${site.url}/account/v1`, []],
      ],
    )
    assert.deepEqual(told[0]?.authorization_servers, [site.url])
    assert.equal(metadataPathOf('http://127.0.0.1:9/mcp'), '/.well-known/oauth-protected-resource/mcp')
    assert.equal(metadataPathOf('http://127.0.0.1:9'), '/.well-known/oauth-protected-resource')
  })

  it('names no issuer where the operator has named no address for it: there is none', async () => {
    const bare = await startSite((await freshDatabase()).url, {
      ...{ FAREBOX_HTTP_PUBLIC_URL: 'http://127.0.0.1:8', FAREBOX_HTTP_SITE_URL: '' },
    })
    try {
      const base = await fetch(`${bare.gateway.url}/.well-known/oauth-protected-resource`)
      assert.equal(base.status, 401, 'nothing is there, and nobody is told what is')
      const tools = await (await fetch(`${bare.gateway.agentUrl}/.well-known/oauth-protected-resource/mcp`)).json()
      assert.equal('authorization_servers' in Object(tools), false)
      for (const path of ['/.well-known/oauth-authorization-server', '/oauth/authorize', '/oauth/keys', '/device'])
        assert.equal((await fetch(bare.gateway.siteUrl + path)).status, 404, path)
    } finally {
      await bare.stop()
    }
  })

  it('is read by anybody at base_url, where the operator has named that', async () => {
    const named = await startSite((await freshDatabase()).url, { FAREBOX_HTTP_PUBLIC_URL: 'http://127.0.0.1:8' })
    try {
      const answer = await fetch(`${named.gateway.url}/.well-known/oauth-protected-resource`)
      assert.equal(answer.status, 200)
      const expected = {
        resource: 'http://127.0.0.1:8',
        authorization_servers: [named.url],
        scopes_supported: ['calls'],
      }
      assert.deepEqual(await answer.json(), { ...expected, bearer_methods_supported: ['header'] })

      const home = { website_url: named.url, documentation_url: `${named.url}/docs` }
      for (const at of [named.gateway.url, named.gateway.agentUrl]) {
        const root = await fetch(`${at}/`)
        assert.deepEqual([root.status, await root.json()], [200, home])
      }
      const place = 'resource_metadata="http://127.0.0.1:8/.well-known/oauth-protected-resource"'
      for (const [authorization, says] of [
        ['', `Bearer ${place}`],
        ['Bearer x', `Bearer error="invalid_token", ${place}`],
      ] as const) {
        const refused = await fetch(`${named.gateway.url}/v1/models`, {
          headers: authorization ? { authorization } : {},
        })
        assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, says])
        const { website_url, documentation_url } = Object(await refused.json()).error
        assert.deepEqual({ website_url, documentation_url }, home)
      }
    } finally {
      await named.stop()
    }
  })
})
