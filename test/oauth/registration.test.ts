import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createUpkeep } from '../../server/src/authorization/upkeep.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { signIn, signUp } from '../people/visitor.ts'
import { authorized, createOauthClient, decide, exchange, newPkce, REDIRECT, registered, toConsent } from './client.ts'

/** Clients that register themselves: what of it is taken, how often, and for how long it is kept. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const person = await signIn(site, await signUp(site))
// Each client that they let in takes a place of the tier.
await site.pool.query("update workspaces set tier_granted = 'growth'")
const upkeep = createUpkeep({ pool: site.pool, ids: { next: () => assert.fail('no key is made') }, seal: null })

const CURSOR = {
  ...{ client_name: 'Cursor', application_type: 'web', token_endpoint_auth_method: 'none' },
  redirect_uris: ['cursor://anysphere.cursor-retrieval/oauth/user-anysphere/callback'],
  ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
}
const VS_CODE = {
  ...{ client_name: 'Visual Studio Code', client_uri: 'https://code.visualstudio.com' },
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  ...{ response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native' },
  redirect_uris: [
    ...['https://insiders.vscode.dev/redirect', 'https://vscode.dev/redirect'],
    ...['http://127.0.0.1/', 'http://127.0.0.1:33418/'],
  ],
}

describe('a registration', () => {
  it('MCP-4 is taken as Cursor, VS Code and command lines send theirs', async () => {
    for (const [metadata, redirect_uri] of [
      [CURSOR, CURSOR.redirect_uris[0] ?? ''],
      [VS_CODE, 'http://127.0.0.1:40001/'],
      [VS_CODE, 'https://vscode.dev/redirect'],
      [
        { redirect_uris: ['http://localhost/callback'], token_endpoint_auth_method: 'none' },
        'http://localhost:3118/callback',
      ],
      [
        { redirect_uris: ['com.example.app:/callback'], token_endpoint_auth_method: 'none' },
        'com.example.app:/callback',
      ],
      [
        { redirect_uris: ['vscode-insiders://maker.app/callback'], token_endpoint_auth_method: 'none' },
        'vscode-insiders://maker.app/callback',
      ],
      [{ redirect_uris: ['http://[::1]/callback'], token_endpoint_auth_method: 'none' }, 'http://[::1]:3118/callback'],
    ] as const) {
      const client = createOauthClient(site)
      const clientId = await registered(client, metadata)
      const pkce = newPkce()
      const code = await authorized(person, { clientId, pkce, changed: { redirect_uri } })
      const tokens = await exchange(client, { clientId, code, pkce }, { redirect_uri })
      assert.equal(tokens.status, 200, tokens.text)
    }
  })

  it('gives a client that wants a secret one, which is compared and never stored', async () => {
    for (const method of ['client_secret_basic', 'client_secret_post', undefined]) {
      const client = createOauthClient(site)
      const { status, json } = await client.register({
        ...{ redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] },
        ...(method !== undefined && { token_endpoint_auth_method: method }),
      })
      assert.equal(status, 201)
      const [clientId, secret] = [String(json.client_id), String(json.client_secret)]
      const { rows } = await site.pool.query('select metadata::text as text from oauth_clients where id = $1', [
        clientId,
      ])
      assert.equal(String(rows[0]?.text).includes(secret), false)
      const pkce = newPkce()
      const code = await authorized(person, { clientId, pkce })
      const fields = { code, redirect_uri: REDIRECT, code_verifier: pkce.verifier, grant_type: 'authorization_code' }
      const ask = (given: string) =>
        method === 'client_secret_post'
          ? client.post('/oauth/token', { ...fields, client_id: clientId, client_secret: given })
          : client.post('/oauth/token', fields, {
              authorization: `Basic ${Buffer.from(`${clientId}:${given}`).toString('base64')}`,
            })
      assert.equal((await ask(`${secret.slice(0, -1)}~`)).status, 401)
      assert.equal((await ask(String(rows[0]?.text).match(/sha256:[\w-]+/)?.[0] ?? '')).status, 401)
      assert.equal((await ask(secret)).status, 200)
    }
  })

  it('is refused where an address could lead somewhere else', async () => {
    const wrong = [
      ...['javascript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://a.example/x'],
      ...[
        'http://example.com/cb',
        'http://10.0.0.1/cb',
        'http://127.0.0.1.example.com/cb',
        'http://localhost.example/cb',
      ],
      ...['https://*.example.com/cb', 'https://example.com/*', 'https://example.com/cb#f', 'https://example.com/cb#'],
      ...['https://user@example.com/cb', 'https://user:pass@example.com/cb', 'https://example.com\\@evil.example/'],
      ...['https://example.com/a/../b', 'https://EXAMPLE.com/cb', 'https://example.com:443/cb', 'https://éxample.com/'],
      ...[
        'https://127.0.0.1/cb',
        'https://localhost/cb',
        'http://127.1/cb',
        'http://0x7f000001/cb',
        'http://[::ffff:127.0.0.1]/cb',
      ],
      ...['ms-msdt:/id', 'search-ms:query=x', 'ms-word:ofe', 'ms-settings:x', 'evilapp://callback', 'urn:a:b'],
      ...['x-apple.systempreferences:x', 'com.apple.systempreferences:x', 'web+evil://callback', 'a.b+c://callback'],
      ...[
        '/cb',
        '',
        'cb',
        'about:blank',
        'ftp://example.com/',
        'mailto:a@example.com',
        'intent://x',
        'x:y',
        'https://',
      ],
      ...[
        `https://example.com/${'a'.repeat(600)}`,
        'https://example.com/\tcb',
        ' https://example.com/cb',
        'https://example.com/cb\u0000',
      ],
    ]
    for (const address of wrong) {
      const client = createOauthClient(site)
      const { status, json } = await client.register({
        redirect_uris: [REDIRECT, address],
        token_endpoint_auth_method: 'none',
      })
      assert.deepEqual([status, json.error], [400, 'invalid_redirect_uri'], address)
    }
  })

  it('is refused, or taken without what is odd about it, where it is odd', async () => {
    const refused = [
      [{ redirect_uris: 'http://127.0.0.1/' }, 'invalid_redirect_uri'],
      [{ redirect_uris: Array.from({ length: 21 }, (_, at) => `http://127.0.0.1/${at}`) }, 'invalid_redirect_uri'],
      [{ redirect_uris: [] }, 'invalid_redirect_uri'],
      [{}, 'invalid_redirect_uri'],
      [{ redirect_uris: [REDIRECT], grant_types: ['implicit'] }, 'invalid_client_metadata'],
      [{ redirect_uris: [REDIRECT], token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
    ] as const
    for (const [metadata, error] of refused) {
      const { status, json } = await createOauthClient(site).register(metadata)
      assert.deepEqual([status, json.error], [400, error], JSON.stringify(metadata))
    }
    const client = createOauthClient(site)
    for (const [body, type, status] of [
      ['{', 'application/json', 400],
      ['[]', 'application/json', 400],
      ['null', 'application/json', 400],
      ['a=b', 'application/x-www-form-urlencoded', 400],
      [JSON.stringify({ redirect_uris: [REDIRECT], x: 'y'.repeat(20_000) }), 'application/json', 413],
    ] as const)
      assert.equal(
        (await client.send('POST', '/oauth/register', body, { 'content-type': type })).status,
        status,
        body.slice(0, 50),
      )
    const { json } = await createOauthClient(site).register({
      ...{
        redirect_uris: [REDIRECT],
        token_endpoint_auth_method: 'none',
        client_name: `A\u202Eb\u0007${'x'.repeat(500)}`,
      },
      ...{
        logo_uri: 'http://127.0.0.1:1/logo',
        jwks_uri: 'http://127.0.0.1:1/jwks',
        sector_identifier_uri: 'https://127.0.0.1/s',
      },
      ...{ client_id: 'operator', client_secret: 'mine', scope: 'account.read everything', __proto__: { a: 1 } },
    })
    assert.equal(
      json.logo_uri ?? json.jwks_uri ?? json.sector_identifier_uri ?? json.scope ?? json.client_secret,
      undefined,
    )
    assert.notEqual(json.client_id, 'operator')
    assert.match(String(json.client_name), /^Abx{98}$/)
  })
})

describe('many registrations', () => {
  it('are limited for a network, and no other network is', async () => {
    const address = freshAddress()
    const statuses: number[] = []
    for (let count = 0; count < 25; count += 1) {
      const { status, headers } = await createOauthClient(site, address).register({ redirect_uris: [REDIRECT] })
      statuses.push(status)
      if (status === 429) assert.ok(Number(headers['retry-after']) > 0)
    }
    assert.deepEqual(statuses, [...Array(20).fill(201), ...Array(5).fill(429)])
    assert.equal((await createOauthClient(site).register({ redirect_uris: [REDIRECT] })).status, 201)
  })

  it('are forgotten after a day where nobody allowed them, and after 32 where nobody uses them or has a grant', async () => {
    const [unconfirmed, confirmed, used, idle, granted] = [
      await registered(createOauthClient(site)),
      await registered(createOauthClient(site)),
      await registered(createOauthClient(site)),
      await registered(createOauthClient(site)),
      await registered(createOauthClient(site)),
    ]
    for (const clientId of [confirmed, used, idle, granted])
      await decide(person, await toConsent(person, { clientId, pkce: newPkce() }))
    await site.pool.query("update oauth_clients set created_at = created_at - interval '25 hours' where id = any($1)", [
      [unconfirmed, confirmed, used, idle, granted],
    ])
    await site.pool.query('update grants set revoked_at = clock_timestamp() where client_id = any($1)', [
      [confirmed, idle],
    ])
    const unused = 'update oauth_clients set used_at = used_at - make_interval(days => $2) where id = any($1)'
    await site.pool.query(unused, [[confirmed, granted], 33])
    await site.pool.query(unused, [[idle], 31])
    await upkeep.prune()
    const { rows } = await site.pool.query('select id from oauth_clients where id = any($1)', [
      [unconfirmed, confirmed, used, idle, granted],
    ])
    assert.deepEqual(rows.map(({ id }) => id).sort(), [used, idle, granted].sort())
  })
})
