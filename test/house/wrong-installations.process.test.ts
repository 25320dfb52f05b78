import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { AHEAD_MAX } from '../../server/src/storage/migrations.ts'
import { makeCustomer } from '../identity/customers.ts'
import { connect } from '../ledger/world.ts'
import { startShell } from './command-shell.ts'
import { runFarebox } from './run-farebox.ts'

/** What operators set up wrongly, and how they are told of it: before callers are. */

const folder = mkdtempSync(path.join(tmpdir(), 'wrong-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const credentialFile = path.join(folder, 'credential')
writeFileSync(credentialFile, 'sandbox-key')

const [masterKey, otherKey] = [makeMasterKey().reveal(), makeMasterKey().reveal()]
const { url: databaseUrl } = await freshDatabase()
const { pools } = connect(databaseUrl)
const pool = pools.rest
after(() => pools.close())
const env = { ...process.env, FAREBOX_DATABASE_URL: databaseUrl, FAREBOX_SECRETS_MASTER_KEY: masterKey }
const { said } = startShell(env)

async function countOf(table: string): Promise<number> {
  const { rows } = await pool.query(`select count(*)::integer as count from ${table}`)
  return rows[0]?.count ?? assert.fail()
}

const chat = (url: string, secret: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'maker/one', messages: [{ role: 'user', content: 'Hello' }] }),
  })

async function sellModel(): Promise<void> {
  await said('models', 'set', 'maker/one', '--context-window', '1000', '--output-cap', '10', '--output-most', '100')
  await said('models', 'price', 'maker/one', '--input', '1', '--output', '2')
  const route = ['--slot', 'vendor', '--protocol', 'openai', '--upstream-model', 'sandbox/text']
  await said('models', 'route', 'maker/one', ...route)
}

describe('an installation', () => {
  it('tells a caller whose operation nobody has set up so, with a code of its own, and why by the kind of its key', async () => {
    await sellModel()
    const gateway = await startGateway({ databaseUrl, env: { FAREBOX_SECRETS_MASTER_KEY: masterKey } })
    after(() => gateway.stop())
    const text = 'This operation is not set up on this installation. Ask the operator.'
    for (const [mode, message] of [
      [
        'live',
        `${text} You sent a live key, and live keys reach live providers only: this installation has none for this operation. A test key may work: it reaches test providers and spends test money, which every workspace has.`,
      ],
      [
        'test',
        `${text} You sent a test key, and test keys reach test providers only: this installation has none for this operation. A live key may work.`,
      ],
    ] as const) {
      const { secret } = await makeCustomer(pool, { paid: 1_000_000_000n, key: { mode } })
      const told = await chat(gateway.url, secret)
      assert.equal(told.status, 503)
      const { error } = JSON.parse(await told.text())
      assert.deepEqual([error.code, error.message], ['not_configured', message])
      // No wait helps, so none is told.
      assert.equal(told.headers.get('retry-after'), null)
    }
  })

  it('tells of a path that an upstream does not know in its log, once, and says nothing of an account to the caller', async () => {
    const sandbox = await startSandbox()
    after(() => sandbox.stop())
    const add = ['upstreams', 'add', 'vendor', `${sandbox.url}/openai/v1`, '--credential-file', credentialFile]
    const [, id = ''] = /^Upstream (\S+)/.exec(await said(...add, '--keep-path')) ?? []
    const { secret } = await makeCustomer(pool, { paid: 1_000_000_000n, key: { mode: 'live' } })
    const gateway = await startGateway({ databaseUrl, env: { FAREBOX_SECRETS_MASTER_KEY: masterKey } })
    after(() => gateway.stop())
    for (const _ of [1, 2]) {
      const told = await chat(gateway.url, secret)
      assert.equal(told.status, 503)
      const { error } = JSON.parse(await told.text())
      assert.deepEqual(
        [error.code, error.message],
        [
          'upstream_not_found',
          'The provider does not know the path or model that we requested. This is on our side; you were not charged.',
        ],
      )
    }
    const lines = () =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes(`"upstream_id":"${id}"`))
    await until(async () => lines().length > 0, PATIENCE_MS, 'the line in the log')
    const [line = '', ...more] = lines()
    assert.deepEqual(more, [])
    const { level, slot, status, path: asked } = JSON.parse(line)
    assert.deepEqual([level, slot, status, asked], ['warn', 'vendor', 404, '/openai/v1/v1/chat/completions'])
    await said('upstreams', 'remove', id)
  })
})

describe('a master key', () => {
  it('that is not the one of what is stored, or is missing, lets no server start and seals nothing', async () => {
    // The first server makes a signing key.
    await (await startGateway({ databaseUrl, env: { FAREBOX_SECRETS_MASTER_KEY: masterKey } })).stop()
    await said('upstreams', 'add', 'vendor', 'https://a.example', '--credential-file', credentialFile)
    const before = [await countOf('upstreams'), await countOf('audit')]
    const add = ['upstreams', 'add', 'vendor', 'https://b.example', '--credential-file', credentialFile]
    for (const [given, says] of [
      [
        { FAREBOX_SECRETS_MASTER_KEY: otherKey },
        /^farebox: secrets\.master_key \(FAREBOX_SECRETS_MASTER_KEY\) is the wrong key \([0-9a-f]{16}\)\. The database has secrets that need another key: 1 credentials of upstreams with the master key ([0-9a-f]{16}), 1 signing keys with the master key \1\. Give that key; while you change the master key, give it as secrets\.previous_master_key\.$/m,
      ],
      [{}, /^farebox: secrets\.master_key \(FAREBOX_SECRETS_MASTER_KEY\) is missing\. The database has secrets/m],
    ] as const) {
      for (const line of [['config', 'check'], ['serve']]) {
        const { code, output } = await runFarebox(line, { FAREBOX_DATABASE_URL: databaseUrl, ...given })
        assert.equal(code, 1, output)
        assert.match(output, says)
        assert.ok(!output.includes(otherKey) && !output.includes(masterKey))
      }
      assert.equal((await runFarebox(add, { FAREBOX_DATABASE_URL: databaseUrl, ...given })).code, 1)
    }
    assert.deepEqual([await countOf('upstreams'), await countOf('audit')], before)
  })

  it('that is the previous one while it is rotated lets everything go on', async () => {
    const keys = { FAREBOX_SECRETS_MASTER_KEY: otherKey, FAREBOX_SECRETS_PREVIOUS_MASTER_KEY: masterKey }
    const gateway = await startGateway({ databaseUrl, env: keys })
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null })
    const { code, output } = await runFarebox(['config', 'check'], { FAREBOX_DATABASE_URL: databaseUrl, ...keys })
    assert.equal(code, 0, output)
    assert.match(output, /The master key opens what is stored\.\n$/)
  })
})

describe('a command', () => {
  it('refuses a database that is ahead of it, behind it or not its own, and changes nothing there', async () => {
    const { url } = await freshDatabase()
    const other = connect(url)
    after(() => other.pools.close())
    const made = async () => (await other.pools.rest.query('select from workspaces')).rowCount
    const newest = (await other.pools.rest.query('select max(version) as version from schema_migrations')).rows[0]
      .version
    const insert = (version: number) =>
      other.pools.rest.query("insert into schema_migrations values ($1, $2, 'unknown')", [
        version,
        `${version}_later.sql`,
      ])
    await insert(newest + 1)
    const line = ['accounts', 'create', '--name', 'Somebody']
    const given = { FAREBOX_DATABASE_URL: url }
    assert.equal((await runFarebox(line, given)).code, 0, 'one ahead is the release that is being rolled out')
    await insert(newest + AHEAD_MAX + 1)
    const ahead = await runFarebox(line, given)
    assert.equal(ahead.code, 1)
    assert.match(
      ahead.output,
      /^farebox: The database is 31 migrations ahead of this program, which accepts 30: run a newer version\.\n$/,
    )
    await other.pools.rest.query('delete from schema_migrations where version >= $1', [newest])
    const behind = await runFarebox(line, given)
    assert.equal(behind.code, 1)
    assert.match(
      behind.output,
      /^farebox: Migration \S+ has not been applied to the database: run farebox migrate\.\n$/,
    )
    assert.equal(await made(), 1)
  })
})
