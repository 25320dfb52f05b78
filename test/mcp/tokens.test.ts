import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { AUDIENCE, expiredToken, FACES_ENV, issueToken, MCP_AUDIENCE, makeGranted } from '../identity/granted.ts'
import { askRaw, callBody, callHeaders } from './raw-agent.ts'

/** The tools as they are reached with tokens of the authorization server. */
const SITE = 'https://site.example.com'
const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: { ...FACES_ENV, FAREBOX_HTTP_SITE_URL: SITE } })
after(installation.stop)
const { pool, gateways } = installation
const listener = gateways[0]?.agentUrl ?? ''
const { host, pathname } = new URL(MCP_AUDIENCE)
const PLACE = `/.well-known/oauth-protected-resource${pathname}`

const customer = await makeCustomer(pool)
const AGENT = { workspaceId: customer.workspaceId, mode: 'test', audiences: [MCP_AUDIENCE], scopes: ['agent'] } as const

function search(credential: string) {
  const headers = { ...callHeaders('search'), host }
  return askRaw(listener + pathname, credential, { headers, body: callBody('search', { query: 'hashtag' }) })
}

describe('a credential for the tools', () => {
  it('AUTH-5 is an access token for mcp_url, or an API key, and both are answered alike', async () => {
    const { token } = await makeGranted(pool, AGENT)
    const [byToken, byKey] = [await search(token), await search(customer.secret)]
    assert.deepEqual([byToken.status, byKey.status], [200, 200])
    const found = ({ message }: typeof byKey) => Object(message.result).structuredContent.operations.length
    assert.ok(found(byToken) > 0)
    assert.equal(found(byToken), found(byKey))
  })

  it('AUTH-5 is no token for another resource, and none that has ended', async () => {
    const calls = await makeGranted(pool, { ...AGENT, audiences: [AUDIENCE], scopes: ['calls'] })
    const both = await makeGranted(pool, { ...AGENT, audiences: [MCP_AUDIENCE, AUDIENCE], scopes: ['agent', 'calls'] })
    const forBase = await issueToken(pool, both, { audience: AUDIENCE, scopes: ['calls'] })
    const expired = await expiredToken(pool, both)
    for (const token of [
      calls.token,
      forBase.token,

      expired.token,
      `${both.token}x`,
      'fb_at_nothing',
    ]) {
      const { status, headers, text } = await search(token)
      assert.equal(status, 401)
      assert.match(text, /sign in again/i)
      assert.doesNotMatch(text, /\bkey\b/)
      assert.equal(
        headers['www-authenticate'],
        `Bearer error="invalid_token", resource_metadata="https://${host}${PLACE}", scope="agent"`,
      )
    }
    assert.equal((await search(both.token)).status, 200, 'the same grant has a right one')
  })

  it('AUTH-5 is described by RFC 9728 metadata, with mcp_url as the operator wrote it and who issues tokens', async () => {
    for (const path of [PLACE, '/.well-known/oauth-protected-resource']) {
      const { status, message } = await askRaw(listener + path, '', { method: 'GET', headers: { host } })
      assert.equal(status, 200)
      assert.deepEqual(message, {
        ...{ resource: MCP_AUDIENCE, authorization_servers: [SITE], scopes_supported: ['agent'] },
        ...{ bearer_methods_supported: ['header'], resource_name: 'Farebox tools for agents' },
      })
    }
  })
})
