import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { defaultNames } from '../../harness/recorded-contract.ts'
import { sandboxPrefixOf } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isSoldByUnit, spell } from '../../server/src/catalogue/operation.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { converse } from '../edge/raw-http.ts'
import { ask, CALLS, call, chargesOf, makeCustomer, startInstallation } from './installation.ts'
import { hostileTargets, hostileUrls } from './ssrf-urls.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const { secret, accountId } = await makeCustomer(pool)
const gatewayPort = Number(new URL(url).port)

/** Listens where nobody has any business, on both loopback addresses, and counts who comes all the same. */
async function startCanary() {
  let connections = 0
  const onConnection = (socket: Socket) => {
    connections += 1
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ncaught')
  }
  const four = createServer(onConnection).listen(0, '127.0.0.1')
  await once(four, 'listening')
  const { port } = four.address() as AddressInfo
  const six = createServer(onConnection).listen(port, '::1')
  await Promise.race([once(six, 'listening'), once(six, 'error')])
  after(() => {
    four.close()
    six.close()
  })
  return { port, connections: () => connections }
}

const canary = await startCanary()
const URLS = hostileUrls(canary.port)
/** Of the sandbox, which is all that is configured. */
const UPSTREAM_PATHS: ReadonlySet<string> = new Set(
  catalogue.operations
    .filter(isSoldByUnit)
    .filter(({ actsFor }) => actsFor === undefined)
    .map(({ upstream }) => `${sandboxPrefixOf(upstream.slot)}${spell(upstream.path, defaultNames())}`),
)
const SENT_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'api-key',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'x-api-key',
  'x-request-id',
])

/** Nobody but the configured upstreams was asked, at their own paths, with our headers and our credential. */
async function assertContained(what: string): Promise<void> {
  assert.equal(canary.connections(), 0, `${what}: somebody came to the canary`)
  for (const { path, credential, header_names } of await sandbox.journal()) {
    assert.ok(UPSTREAM_PATHS.has(path), `${what}: ${path}`)
    assert.equal(credential, 'right', what)
    for (const name of header_names) assert.ok(SENT_HEADERS.has(name.toLowerCase()), `${what}: ${name}`)
  }
}

describe('an address that a caller gives', () => {
  it('is never asked: the canary is there to be seen', async () => {
    const seen = await startCanary()
    assert.equal(await (await fetch(`http://127.0.0.1:${seen.port}/`)).text(), 'caught')
    assert.equal(seen.connections(), 1)
    assert.ok(URLS.length + hostileTargets(0).length >= 200)
  })

  it('as the value of a parameter is passed to the upstream as a text, and to nobody as an address', async () => {
    const operations = catalogue.operations.filter(({ method }) => method === 'GET').map(({ id }) => id)
    const before = (await sandbox.journal()).length
    for (const [at, one] of URLS.entries()) {
      const { status } = await call(url, secret, operations[at % operations.length] ?? '', one)
      assert.ok([200, 400].includes(status), `${status} for ${one}`)
    }
    assert.equal((await sandbox.journal()).length, before + URLS.length)
    await assertContained('parameters')
  })

  it('in the query, the instruction or the documents of a reranking is a text, and no model', async () => {
    for (let at = 0; at < URLS.length; at += 10) {
      const documents = URLS.slice(at, at + 10)
      const [query = '', instruction = ''] = documents
      const refused = await ask(url, secret, '/v1/rerank', { body: { model: query, query, documents } })
      assert.equal(refused.status, 400)
      const { status, json } = await ask(url, secret, '/v1/rerank', { body: { instruction, query, documents } })
      assert.equal(status, 200)
      assert.equal((json.results as unknown[]).length, documents.length)
    }
    await assertContained('documents')
  })

  it('as a name or a list of parameters changes nothing', async () => {
    for (const one of URLS.slice(0, 40)) {
      const name = encodeURIComponent(one)
      await ask(url, secret, `/apis/v1/social_b/post/comments?url=a&${name}=${name}&callback=${name}&url[]=${name}`)
    }
    await assertContained('names')
  })

  it('in the request line leads to no route but our own', async () => {
    for (const target of hostileTargets(canary.port)) {
      const head = `GET ${target} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${secret}\r\nconnection: close\r\n\r\n`
      const { responses } = await converse(gatewayPort, head, { quietMs: 2_000 })
      assert.ok([200, 400, 404].includes(responses[0]?.status ?? 0), `${responses[0]?.status} for ${target}`)
      assert.ok(!responses[0]?.body.includes('caught'))
    }
    await assertContained('targets')
  })

  it('in a header is not passed on, and names no upstream', async () => {
    const address = `127.0.0.1:${canary.port}`
    const headers = [
      `host: ${address}`,
      `x-forwarded-host: ${address}`,
      `forwarded: host=${address};proto=http`,
      `x-original-url: http://${address}/`,
      `x-rewrite-url: http://${address}/`,
      `x-forwarded-server: ${address}`,
      `x-host: ${address}`,
      `referer: http://${address}/`,
      `origin: http://${address}`,
      `proxy: http://${address}`,
      `http_proxy: http://${address}`,
      `location: http://${address}/`,
      `destination: http://${address}/`,
      `idempotency-key: http://${address}/`,
      `x-request-id: http://${address}/`,
      `x-farebox-upstream: http://${address}/`,
      `traceparent: http://${address}/`,
      `cookie: upstream=http://${address}/`,
      'connection: x-request-id, authorization',
      `x-injected: a\r\n x-folded: http://${address}`,
    ]
    const { path } = CALLS.tag_detail?.('headers') ?? { path: '' }
    for (const header of headers) {
      const host = header.startsWith('host:') ? '' : 'host: gateway\r\n'
      const closing = header.startsWith('connection:') ? '' : 'connection: close\r\n'
      const head = `GET ${path} HTTP/1.1\r\n${host}authorization: Bearer ${secret}\r\n${closing}${header}\r\n\r\n`
      const { responses } = await converse(gatewayPort, head, { quietMs: 300 })
      assert.ok([200, 400].includes(responses[0]?.status ?? 0), `${responses[0]?.status} for ${header}`)
    }
    await assertContained('headers')
  })
})

describe('an upstream that sends us elsewhere', () => {
  it('trap: a 302 beats the SSRF guard', async () => {
    const before = (await sandbox.journal()).length
    const places = URLS.filter((one) => /^[!-~]+$/.test(one) && !/[,&]/.test(one))
    assert.ok(places.length > 100)
    const statuses = [301, 302, 303, 307, 308]
    for (const [at, place] of places.entries()) {
      const status = statuses[at % statuses.length]
      const operation = at % 2 === 0 ? 'tag_detail' : 'rerank'
      const told = await call(url, secret, operation, `sandbox:status=${status} sandbox:redirect=${place}`)
      assert.equal(told.status, status)
      assert.equal(told.headers.get('location'), null)
      assert.equal(told.headers.get('refresh'), null)
    }
    // One request for each: no redirect was followed, not even to the sandbox itself.
    assert.equal((await sandbox.journal()).length, before + places.length)
    const again = await call(url, secret, 'tag_detail', `sandbox:redirect=${sandbox.url}/reseller/again`)
    assert.equal(again.status, 302)
    assert.equal((await sandbox.journal()).length, before + places.length + 1)
    await assertContained('redirects')
  })
})

it('leaves a ledger that adds up, with a charge for what was executed alone', async () => {
  const asked = new Set((await sandbox.journal()).map(({ request_id }) => request_id))
  for (const [id, amount] of await chargesOf(pool, accountId)) if (amount > 0n) assert.ok(asked.has(id))
  assert.deepEqual(await verifyLedger(pool), [])
})
