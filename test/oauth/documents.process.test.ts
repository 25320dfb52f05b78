import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { recordProof } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS } from '../../harness/until.ts'
import { KNOWN_DOCUMENTS } from '../../server/src/authorization/known-documents.ts'
import { createAuthorizationServer } from '../../server/src/authorization/server.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { createOutbound, type Outbound } from '../../server/src/outbound/outbound.ts'
import { loadAssets } from '../../server/src/pages/assets.ts'
import { createPages } from '../../server/src/pages/page.ts'
import { createAttempts } from '../../server/src/people/attempts.ts'
import { hashOf } from '../../server/src/people/tokens.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { hostileUrls } from '../acceptance/ssrf-urls.ts'
import { connect } from '../ledger/world.ts'
import { startCanary } from '../outbound/canary.ts'
import { HOSTILE_HOSTS, hostileUrlsOf, otherSchemes } from '../outbound/hostile-hosts.ts'
import { PRIVATE_ADDRESSES } from '../outbound/private-addresses.ts'
import { BESIDE, startSite } from '../people/site.ts'
import { createVisitor, filledIn, signIn, signUp, type Visitor } from '../people/visitor.ts'
import { authorized, authorizePath, createOauthClient, exchange, newPkce, refresh, toConsent } from './client.ts'
import { startDocumentHost } from './document-host.ts'

/** Clients whose id is the address of a document: who is asked for it, and what of it is believed. */
const host = await startDocumentHost()
const database = await freshDatabase()
const MCP = { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' }
const SETTINGS = {
  ...MCP,
  ...{ FAREBOX_OUTBOUND_ACCESS: 'listed', FAREBOX_OUTBOUND_ALLOWED_ORIGINS: host.origin },
  ...{ NODE_EXTRA_CA_CERTS: host.certificate, FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal() },
}
const site = await startSite(database.url, SETTINGS)
after(site.stop)
/** Another process of the same server, which has not seen any document. */
const beside = await startSite(database.url, { ...SETTINGS, ...BESIDE, FAREBOX_HTTP_SITE_URL: site.url })
after(beside.stop)
const person = await signIn(site, await signUp(site))

/** As Claude Code publishes its own, which says nothing of the kind of application that it is. */
function claudeCode(clientId: string) {
  return {
    ...{ client_id: clientId, client_name: 'Claude Code', client_uri: 'https://claude.ai' },
    redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    token_endpoint_auth_method: 'none',
  }
}

function publish(path: string, document: object): string {
  host.documents.set(path, { body: JSON.stringify(document) })
  return host.origin + path
}

/** Somebody's browser, whose next request another process answers. */
function sameBrowserAt(other: Pick<typeof site, 'url'>, { cookies }: Visitor): Visitor {
  const visitor = createVisitor(other, { origin: site.url })
  for (const [name, value] of cookies) visitor.cookies.set(name, value)
  return visitor
}

describe('a client with a document', () => {
  it('MCP-4 is let in on any port of this machine, and its host is shown as who vouches for it', async () => {
    const clientId = `${host.origin}/oauth/claude-code-client-metadata`
    publish('/oauth/claude-code-client-metadata', claudeCode(clientId))
    const redirect_uri = 'http://localhost:54545/callback'
    const pkce = newPkce()
    const changed = { redirect_uri, prompt: 'consent', scope: 'agent offline_access' }
    const { location } = await person.get(authorizePath({ clientId, pkce, changed }))
    const { text } = await person.get(location)
    assert.ok(text.includes(`<b>${new URL(host.origin).host}</b>`), text)
    const code = await authorized(person, { clientId, pkce, changed })
    const client = createOauthClient(site)
    const tokens = await exchange(client, { clientId, code, pkce }, { redirect_uri })
    assert.equal(tokens.status, 200, tokens.text)
    assert.equal((await refresh(client, clientId, tokens.json.refresh_token)).status, 200)
    assert.equal(host.asked.filter((path) => path.includes('claude-code')).length, 1, 'it is cached')
    assert.equal((await site.pool.query('select from oauth_clients')).rowCount, 0)
  })

  it('is decided about by the name that it asked with: no page asks for its document', async () => {
    const clientId = `${host.origin}/renamed`
    publish('/renamed', claudeCode(clientId))
    const changed = { redirect_uri: 'http://localhost:54545/callback' }
    const path = await toConsent(person, { clientId, pkce: newPkce(), changed })
    const asked = host.asked.length
    const later = sameBrowserAt(beside, person)
    publish('/renamed', { ...claudeCode(clientId), client_name: 'Your Bank' })
    assert.match((await later.get(path)).text, /<h1><bdi>Claude Code<\/bdi>/)
    host.documents.set('/renamed', { status: 503, body: '' })
    const { status, text } = await later.get(path)
    assert.equal(status, 200, text)
    assert.match(text, /<h1><bdi>Claude Code<\/bdi>/)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    assert.equal((await later.post(path, choice)).status, 303)
    const { rows } = await site.pool.query('select client_name as name from grants where client_id = $1', [clientId])
    assert.deepEqual(rows, [{ name: 'Claude Code' }])
    assert.equal(host.asked.length, asked)
  })

  it('goes on refreshing while its host is down, in a process that has not seen its document', async () => {
    const clientId = `${host.origin}/steady`
    publish('/steady', claudeCode(clientId))
    const redirect_uri = 'http://localhost:54545/callback'
    const pkce = newPkce()
    const code = await authorized(person, { clientId, pkce, changed: { redirect_uri } })
    const tokens = await exchange(createOauthClient(site), { clientId, code, pkce }, { redirect_uri })
    host.documents.set('/steady', { status: 503, body: '' })
    const asked = host.asked.length
    const fields = {
      grant_type: 'refresh_token',
      client_id: clientId,
      refresh_token: String(tokens.json.refresh_token),
    }
    const headers = { host: new URL(site.url).host }
    const refreshed = await createOauthClient(beside).post('/oauth/token', fields, headers)
    assert.equal(refreshed.status, 200, refreshed.text)
    assert.equal(host.asked.length, asked + 1)
    const { rows } = await site.pool.query(
      'select confirmed_at is not null as kept from oauth_documents where hash = $1',
      [hashOf(clientId)],
    )
    assert.deepEqual(rows, [{ kept: true }])
  })

  it('is not asked for again at once where its host does not answer', async () => {
    host.documents.set('/down', { status: 503, body: '' })
    const path = authorizePath({ clientId: `${host.origin}/down`, pkce: newPkce() })
    for (let count = 0; count < 5; count += 1) assert.equal((await person.get(path)).status, 400)
    assert.equal(host.asked.filter((one) => one === '/down').length, 1)
  })

  it('is told to wait where its network names too many', async () => {
    const visitor = createVisitor(site)
    const statuses: number[] = []
    for (let count = 0; count < 31; count += 1) {
      const clientId = `${host.origin}/none-${count}`
      statuses.push((await visitor.get(authorizePath({ clientId, pkce: newPkce() }))).status)
    }
    assert.deepEqual(statuses, [...Array(30).fill(400), 429])
  })

  it('is refused on a page where its document is not what it should be', async () => {
    const wrong: Readonly<Record<string, object>> = {
      '/another': claudeCode(`${host.origin}/not-this`),
      '/secret': { ...claudeCode(`${host.origin}/secret`), token_endpoint_auth_method: 'client_secret_basic' },
      '/keys': { ...claudeCode(`${host.origin}/keys`), token_endpoint_auth_method: 'private_key_jwt' },
      '/script': { ...claudeCode(`${host.origin}/script`), redirect_uris: ['javascript:alert(1)'] },
      '/large': { ...claudeCode(`${host.origin}/large`), padding: 'x'.repeat(20_000) },
      '/none': { client_id: `${host.origin}/none` },
    }
    for (const [path, document] of Object.entries(wrong)) publish(path, document)
    host.documents.set('/text', { type: 'text/html', body: JSON.stringify(claudeCode(`${host.origin}/text`)) })
    host.documents.set('/moved', { status: 302, location: `${host.origin}/another`, body: '' })
    host.documents.set('/broken', { body: '{' })
    for (const path of [...Object.keys(wrong), '/text', '/moved', '/broken', '/missing', '/a/../another', '/x#y']) {
      const changed = { redirect_uri: 'http://localhost:54545/callback' }
      const reply = await person.get(authorizePath({ clientId: host.origin + path, pkce: newPkce(), changed }))
      assert.deepEqual([reply.status, reply.location], [400, ''], path)
    }
  })

  it('can name no origin that the operator does not list', async () => {
    const asked = host.asked.length
    for (const clientId of [host.origin.replace('localhost', '127.0.0.1'), 'https://example.com'].map(
      (it) => `${it}/c`,
    )) {
      const reply = await person.get(authorizePath({ clientId, pkce: newPkce() }))
      assert.deepEqual([reply.status, reply.location], [400, ''])
    }
    assert.equal(host.asked.length, asked)
  })
})

const canary = await startCanary()
// Signing keys are under the master key of whoever made them.
const here = await freshDatabase()
const { pools } = connect(here.url)
after(() => pools.close())
const seal = createSeal({ current: makeMasterKey() })
const unlimited = { take: async () => {} }

/** The server in this process, over an outbound client of the test's own. */
function serverOver(outbound: Outbound | null) {
  const pages = createPages({ assets: loadAssets(), siteUrl: undefined })
  return createAuthorizationServer(
    {
      ...{ pool: pools.rest, ids: createIds({ clock: systemClock }), clock: systemClock, log: silentLog, outbound },
      ...{ seal, siteUrl: 'https://site.example', baseUrl: undefined },
      ...{ mcpUrl: 'https://site.example/mcp', attempts: { ...createAttempts({ pool: pools.rest }), ...unlimited } },
      ...{ introspectionSecret: null, clientDocuments: [], tellReuse: async () => {} },
    },
    pages,
  )
}

const SHORT = { connectMs: 300, headersMs: 300, idleMs: 300, totalMs: 500 }
const PATIENT = { connectMs: PATIENCE_MS, headersMs: PATIENCE_MS, idleMs: PATIENCE_MS, totalMs: PATIENCE_MS }

/** To which every name leads to this machine, and the canary's port is as good as 443. Who is allowed is waited for. */
function hostileOutbound(allowedOrigins: readonly string[] = []): Outbound {
  const deadlines = allowedOrigins.length === 0 ? SHORT : PATIENT
  const outbound = createOutbound({
    ...{
      access: 'public',
      allowedOrigins,
      clock: systemClock,
      log: silentLog,
      resolve: async () => ['127.0.0.1', '::1'],
    },
    limits: { ports: [443, canary.port], deadlines },
  })
  after(outbound.close)
  return outbound
}

describe('the address of a document', () => {
  it('leads to no connection to this machine or a private network, however it is written', async () => {
    const provider = await serverOver(hostileOutbound()).provider()
    const urls = [
      ...HOSTILE_HOSTS.flatMap((name) => hostileUrlsOf(name, canary.port)),
      ...Object.values(PRIVATE_ADDRESSES)
        .flat()
        .flatMap((address) => hostileUrlsOf(address.includes(':') ? `[${address}]` : address, canary.port)),
      ...otherSchemes(canary.port),
      ...hostileUrls(canary.port),
    ]
    let found = 0
    for (const url of urls) {
      const client = await provider.Client.find(url).catch(() => undefined)
      if (client !== undefined) found += 1
    }
    assert.equal(found, 0)
    assert.equal(canary.connects(), 0)
    recordProof('authorization-server', 'addresses of documents', { urls: urls.length, connects: canary.connects() })
  })

  it('is the only one that is asked: what a document names is not', async () => {
    setDefaultCACertificates([...getCACertificates('default'), host.pem])
    const at = `http://127.0.0.1:${canary.port}`
    const named = [
      'logo_uri',
      'jwks_uri',
      'sector_identifier_uri',
      'client_uri',
      'policy_uri',
      'tos_uri',
      'initiate_login_uri',
    ]
    const clientId = `${host.origin}/naming`
    for (const scheme of [at, at.replace('http:', 'https:')]) {
      publish('/naming', {
        ...claudeCode(clientId),
        ...Object.fromEntries(named.map((name) => [name, `${scheme}/${name}`])),
        ...{ jwks: { keys: [] }, backchannel_logout_uri: `${scheme}/logout`, request_uris: [`${scheme}/request`] },
      })
      const provider = await serverOver(hostileOutbound([host.origin])).provider()
      const client = await provider.Client.find(clientId)
      assert.equal(client?.clientName, 'Claude Code')
      assert.equal(client.logoUri ?? client.jwksUri ?? client.sectorIdentifierUri, undefined)
    }
    assert.equal(canary.connects(), 0)
  })

  it('is known of well-known clients where their hosts are not reached, and what a host says goes before', async () => {
    const nowhere: Outbound = { send: () => Promise.reject(new Error('no route to host')), close: async () => {} }
    const provider = await serverOver(nowhere).provider()
    for (const { url, name, redirects } of KNOWN_DOCUMENTS) {
      const client = await provider.Client.find(url)
      assert.deepEqual([client?.clientName, client?.redirectUris], [name, redirects])
    }
    const [{ url } = assert.fail()] = KNOWN_DOCUMENTS
    const body = Buffer.from(JSON.stringify({ ...claudeCode(url), client_name: 'Claude Code, newer' }))
    const headers = { 'content-type': 'application/json' }
    const there: Outbound = { send: async () => ({ status: 200, headers, body }), close: async () => {} }
    assert.equal((await (await serverOver(there).provider()).Client.find(url))?.clientName, 'Claude Code, newer')
  })

  it('says whose egress it is where a host is not reached', async () => {
    const path = authorizePath({ clientId: 'https://nowhere.invalid/client', pkce: newPkce() })
    const { status, text } = await person.get(path)
    assert.equal(status, 400)
    assert.match(text, /this server could not reach that host/)
    assert.doesNotMatch(text, /tell the maker/)
  })

  it('is not offered where no host may be asked, so that clients register', async () => {
    const listed = await startSite((await freshDatabase()).url, { ...MCP, FAREBOX_OUTBOUND_ACCESS: 'listed' })
    try {
      const { json } = await createOauthClient(listed).get('/.well-known/oauth-authorization-server')
      assert.equal(json.client_id_metadata_document_supported, undefined)
    } finally {
      await listed.stop()
    }
  })

  it('is not asked for where egress is closed, and the metadata says so', async () => {
    const provider = await serverOver(null).provider()
    assert.equal(await provider.Client.find(`${host.origin}/naming`), undefined)
    const closed = await startSite((await freshDatabase()).url, { ...MCP, FAREBOX_OUTBOUND_ACCESS: 'none' })
    try {
      const { json } = await createOauthClient(closed).get('/.well-known/oauth-authorization-server')
      assert.equal(json.client_id_metadata_document_supported, undefined)
    } finally {
      await closed.stop()
    }
  })
})
