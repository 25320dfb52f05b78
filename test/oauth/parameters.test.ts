import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startSite } from '../people/site.ts'
import { createVisitor } from '../people/visitor.ts'
import { authorizePath, createOauthClient, newPkce, OPERATOR_SECRET, registered } from './client.ts'

/** What clients may write into their requests, whoever they are. */
const database = await freshDatabase()
const site = await startSite(database.url, {
  ...{ FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp', FAREBOX_OAUTH_INTROSPECTION_SECRET: OPERATOR_SECRET },
})
after(site.stop)
const client = createOauthClient(site)
const clientId = await registered(client)
const pkce = newPkce()
const visitor = createVisitor(site)

describe('a parameter', () => {
  it('with a control character, or longer than any is, is refused and fails nowhere', async () => {
    for (const odd of ['a\u0000b', 'a\nb', 'a\u0085b', 'x'.repeat(5_000)]) {
      for (const name of ['state', 'client_id', 'scope', 'nonce', 'resource', 'login_hint']) {
        const { status } = await visitor.get(authorizePath({ clientId, pkce, changed: { [name]: odd } }))
        assert.equal(status, 400, `${name} ${JSON.stringify(odd.slice(0, 5))}`)
      }
      const right = { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'x', token: 'x' }
      for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/device'])
        for (const name of ['client_id', 'token', 'scope', 'client_secret']) {
          const { status, text } = await client.post(path, { ...right, [name]: odd })
          assert.ok(status >= 400 && status < 500, `${path} ${name} ${status} ${text}`)
        }
    }
    const authorization = `Basic ${Buffer.from('a%00b:secret').toString('base64')}`
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect']) {
      const { status, text } = await client.post(path, { grant_type: 'refresh_token', token: 'x' }, { authorization })
      assert.ok(status >= 400 && status < 500, `${path} ${status} ${text}`)
    }
  })

  it('is one of at most 50', async () => {
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`p${at}`, 'x']))
    assert.equal((await client.post('/oauth/token', many)).status, 400)
  })
  it('may have a question mark in it, and what follows is read too', async () => {
    const path = authorizePath({ clientId, pkce, changed: { state: '' } })
    const { status, location, text } = await visitor.get(path.replace('?', '?state=where?now&'))
    assert.equal(status, 303, text)
    const { rows } = await site.pool.query("select payload #>> '{params,state}' as state from oauth_states")
    assert.match(location, /^\/consent\//)
    assert.deepEqual(rows, [{ state: 'where?now' }])
  })
})
