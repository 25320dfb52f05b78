import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { canonicalBytes } from '../../server/src/contracts/canonical.ts'
import { connect } from '../ledger/world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const gateway = await startGateway({ databaseUrl: database.url, env: { FAREBOX_LOG_LEVEL: 'error' } })
const site = gateway.siteUrl
after(async () => {
  await gateway.stop()
  await pools.close()
})

type Version = { readonly contentHash: string; readonly docsRevision: string }

async function versionAt(url: string): Promise<Version> {
  const { contentHash, docsRevision } = Object(await (await fetch(`${url}/api/contracts/version`)).json())
  return { contentHash, docsRevision }
}

const source = (query: string, init: RequestInit = {}, url = site) =>
  fetch(`${url}/api/contracts/source?${query}`, init)
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())
const sha256 = (bytes: Buffer) => hash('sha256', bytes, 'hex')
const version = await versionAt(site)
const { contentHash } = version

/** Headers that say which contract an answer is about. */
function assertAbout({ headers }: Response, { contentHash, docsRevision }: Version): void {
  assert.equal(headers.get('x-farebox-contract-hash'), contentHash)
  assert.equal(headers.get('x-farebox-docs-revision'), docsRevision)
  assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
}

async function assertRefused(response: Response, status: number, code: string): Promise<Record<string, unknown>> {
  assert.equal(response.status, status)
  assert.match(response.headers.get('content-type') ?? '', /^application\/problem\+json/)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  const problem = Object(await response.json())
  assert.equal(problem.code, code)
  return problem
}

describe('SITE-1 the contract at site_url', () => {
  it('has a version: the hash of the bytes, and what identifies their input', async () => {
    const response = await fetch(`${site}/api/contracts/version`)
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
    assert.equal(response.headers.get('cache-control'), 'no-cache')
    const body = Object(await response.json())
    assert.deepEqual(Object.keys(body), ['contentHash', 'docsRevision'])
    for (const value of Object.values(body)) assert.match(String(value), /^[0-9a-f]{64}$/)
    assert.notEqual(body.contentHash, body.docsRevision)
    assertAbout(response, body)
  })

  it('is served bundled, in bytes whose SHA-256 is the hash, for good', async () => {
    const response = await source(`hash=${contentHash}&bundled=1`)
    assert.equal(response.status, 200)
    assertAbout(response, version)
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    const bytes = await bytesOf(response)
    assert.equal(sha256(bytes), contentHash)
    assert.ok(canonicalBytes(JSON.parse(bytes.toString('utf8'))).equals(bytes))
  })

  it('is served by operation: its own place alone, and everything that it refers to', async () => {
    for (const { id } of [...catalogue.operations, { id: 'get_usage' }]) {
      const response = await source(`hash=${contentHash}&operation_id=${id}`)
      assert.equal(response.status, 200, id)
      assertAbout(response, version)
      assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
      const text = await response.text()
      const { openapi, info, paths, components } = JSON.parse(text)
      assert.equal(openapi, '3.0.3')
      assert.equal(info.version, '1.0.0')
      const operations = Object.values(paths).flatMap((methods) => Object.values(Object(methods)))
      assert.deepEqual(
        operations.map((one) => Object(one).operationId),
        [id],
      )
      for (const [, kind = '', name = ''] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g))
        assert.ok(Object.hasOwn(components[kind] ?? {}, name), `${id} ${kind} ${name}`)
    }
  })

  it('answers 304 to whoever has the bytes, and the headers alone to HEAD', async () => {
    for (const path of [
      `source?hash=${contentHash}&bundled=1`,
      `source?hash=${contentHash}&operation_id=rerank`,
      'version',
    ]) {
      const tag = (await fetch(`${site}/api/contracts/${path}`)).headers.get('etag') ?? ''
      for (const known of [tag, `"other", W/${tag}`, '*']) {
        const again = await fetch(`${site}/api/contracts/${path}`, { headers: { 'if-none-match': known } })
        assert.equal(again.status, 304, known)
        assertAbout(again, version)
      }
      const other = await fetch(`${site}/api/contracts/${path}`, { headers: { 'if-none-match': '"other"' } })
      assert.equal(other.status, 200)
      const head = await fetch(`${site}/api/contracts/${path}`, { method: 'HEAD' })
      assert.equal(head.status, 200)
      assertAbout(head, version)
    }
  })

  it('says how to ask where nobody can tell what is meant', async () => {
    const wrong = [
      ...['', `hash=${contentHash}`, 'bundled=1', `hash=${contentHash}&bundled=0`, `hash=${contentHash}&bundled=1&x=1`],
      ...['hash=abc&bundled=1', `hash=${contentHash.toUpperCase()}&bundled=1`, `hash=${contentHash}&operation_id=`],
      ...[`hash=${contentHash}&bundled=1&operation_id=rerank`, `hash=${contentHash}&hash=${contentHash}&bundled=1`],
    ]
    for (const query of wrong) {
      const response = await source(query)
      assertAbout(response, version)
      await assertRefused(response, 400, 'invalid_request')
    }
    await assertRefused(await source(`hash=${contentHash}&operation_id=nothing_such`), 404, 'resource_not_found')
  })
})

const OLD = canonicalBytes({ openapi: '3.0.3', info: { version: '0.9.0' }, paths: {}, components: {} })

async function keepOld(lastServed: string): Promise<void> {
  await pool.query(
    `insert into contracts (content_hash, docs_revision, bytes, last_served_at)
       values ($1, repeat('0', 64), $2, now() - $3::interval)
       on conflict (content_hash) do update set last_served_at = excluded.last_served_at, bytes = excluded.bytes`,
    [sha256(OLD), OLD, lastServed],
  )
}

describe('SITE-2 a contract by its hash', () => {
  it('is refused with 409 where it is neither the current nor a kept one, and told what is', async () => {
    const response = await source(`hash=${'0'.repeat(64)}&bundled=1`)
    assertAbout(response, version)
    const problem = await assertRefused(response, 409, 'contract_hash_mismatch')
    assert.equal(problem.content_hash, contentHash)
  })

  it('can be read after it was replaced, for as long as it is kept, and is then refused', async () => {
    await keepOld('364 days')
    const response = await source(`hash=${sha256(OLD)}&bundled=1`)
    assert.equal(response.status, 200)
    assertAbout(response, { contentHash: sha256(OLD), docsRevision: '0'.repeat(64) })
    assert.equal(sha256(await bytesOf(response)), sha256(OLD))
    await keepOld('366 days')
    await assertRefused(await source(`hash=${sha256(OLD)}&bundled=1`), 409, 'contract_hash_mismatch')
  })

  it('is kept for as long as the operator says', async () => {
    await keepOld('3 days')
    const short = await startGateway({
      databaseUrl: database.url,
      env: { FAREBOX_LOG_LEVEL: 'error', FAREBOX_CONTRACT_KEPT_DAYS: '2', FAREBOX_ROLES: 'gateway,site' },
    })
    try {
      const response = await source(`hash=${sha256(OLD)}&bundled=1`, {}, short.siteUrl)
      await assertRefused(response, 409, 'contract_hash_mismatch')
      assert.equal((await source(`hash=${sha256(OLD)}&bundled=1`)).status, 200)
    } finally {
      await short.stop()
    }
  })

  it('can be read from a process that serves another one', async () => {
    const other = await startGateway({
      databaseUrl: database.url,
      env: { FAREBOX_LOG_LEVEL: 'error', FAREBOX_NAMES_SOCIAL_A: 'elsewhere' },
    })
    try {
      const theirs = await versionAt(other.siteUrl)
      assert.notEqual(theirs.contentHash, contentHash)
      for (const [url, wanted] of [
        [site, theirs],
        [other.siteUrl, version],
      ] as const) {
        const response = await source(`hash=${wanted.contentHash}&bundled=1`, {}, url)
        assertAbout(response, wanted)
        assert.equal(sha256(await bytesOf(response)), wanted.contentHash)
      }
    } finally {
      await other.stop()
    }
  })

  it('is not served where its bytes are damaged: 503, and the table takes none that are', async () => {
    await keepOld('1 day')
    const damage = "update contracts set bytes = bytes || ' ' where content_hash = $1"
    await assert.rejects(pool.query(damage, [sha256(OLD)]), /contracts_check|content_hash_check/)
    await pool.query('alter table contracts drop constraint contracts_check')
    await pool.query(damage, [sha256(OLD)])
    const response = await source(`hash=${sha256(OLD)}&bundled=1`)
    assertAbout(response, version)
    assert.equal(response.headers.get('retry-after'), '1')
    await assertRefused(response, 503, 'contract_unavailable')
  })

  it('is 503 in all forms where nothing could be verified, while calls go on', async () => {
    const broken = await startGateway({
      databaseUrl: database.url,
      changes: 'test/contract/unsound-server.ts',
      env: { FAREBOX_LOG_LEVEL: 'silent' },
    })
    try {
      for (const path of [
        'version',
        `source?hash=${contentHash}&bundled=1`,
        `source?hash=${contentHash}&operation_id=rerank`,
      ])
        await assertRefused(await fetch(`${broken.siteUrl}/api/contracts/${path}`), 503, 'contract_unavailable')
      assert.equal((await fetch(`${broken.url}/readyz`)).status, 200)
    } finally {
      await broken.stop()
    }
  })

  it('goes on from memory without PostgreSQL, and says of others that it can not tell', async () => {
    await pool.query('alter table contracts rename to contracts_elsewhere')
    try {
      assert.equal((await source(`hash=${contentHash}&bundled=1`)).status, 200)
      assert.equal((await fetch(`${site}/api/contracts/version`)).status, 200)
      await assertRefused(await source(`hash=${'1'.repeat(64)}&bundled=1`), 503, 'contract_unavailable')
    } finally {
      await pool.query('alter table contracts_elsewhere rename to contracts')
    }
  })
})
