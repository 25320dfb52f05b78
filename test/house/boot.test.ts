import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { request } from 'undici'
import { startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()

function farebox(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { code: number | null; output: string } {
  const program = path.join(ROOT, 'server/src/main.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 30_000,
  })
  return { code: status, output: stdout + stderr }
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(sql)
  await client.end()
}

describe('a server', () => {
  it('starts, answers and stops with 0 when it is told to', async () => {
    const gateway = await startGateway({ databaseUrl: database.url })
    const live = await request(`${gateway.url}/livez`)
    assert.equal(live.statusCode, 200)
    const deadline = Date.now() + 5_000
    let status = 0
    while (status !== 200 && Date.now() < deadline) status = (await request(`${gateway.url}/readyz`)).statusCode
    assert.equal(status, 200)
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null })
  })

  it('serves metrics to operators and not to callers', async () => {
    const gateway = await startGateway({ databaseUrl: database.url })
    after(() => gateway.stop())
    const metrics = await request(`${gateway.adminUrl}/metrics`)
    assert.match(await metrics.body.text(), /nodejs_eventloop_lag_p99_seconds/)
    assert.equal((await request(`${gateway.url}/metrics`)).statusCode, 401)
  })

  it('refuses to start on a wrong setting, a line each, without the secret', () => {
    const env = { FAREBOX_DATABASE_URL: 'postgres://canary-5b1', FAREBOX_LOG_LEVEL: 'loud', FAREBOX_NONSENSE: '1' }
    const { code, output } = farebox(['serve'], env)
    assert.equal(code, 1)
    assert.equal(output.trim().split('\n').length, 2, output)
    assert.ok(!output.includes('canary'))
  })

  it('refuses to start on a database that was not migrated', async () => {
    const bare = new URL(database.url)
    await execute(database.url, 'create database bare_boot')
    after(() => execute(database.url, 'drop database bare_boot with (force)'))
    bare.pathname = '/bare_boot'
    const { code, output } = farebox(['serve'], { FAREBOX_DATABASE_URL: bare.href })
    assert.equal(code, 1)
    assert.match(output, /^farebox: .*run farebox migrate/m)
  })

  it('refuses to start where PostgreSQL may forget what it acknowledged', async () => {
    const postgres = await startPostgres({ settings: { fsync: 'off', synchronous_commit: 'off' } })
    after(() => postgres.remove())
    assert.equal(farebox(['migrate'], { FAREBOX_DATABASE_URL: postgres.url() }).code, 0)
    for (const command of [['serve'], ['config', 'check']]) {
      const { code, output } = farebox(command, { FAREBOX_DATABASE_URL: postgres.url() })
      assert.equal(code, 1, output)
      assert.match(output, /fsync is off/)
      assert.match(output, /synchronous_commit is off/)
    }
  })

  it('says on `farebox config check` that all is well when it is', () => {
    const { code, output } = farebox(['config', 'check'], { FAREBOX_DATABASE_URL: database.url })
    assert.equal(code, 0, output)
    assert.match(output, /valid[\s\S]*safe[\s\S]*version/)
  })

  it('verifies an empty ledger', () => {
    const { code, output } = farebox(['ledger', 'verify'], { FAREBOX_DATABASE_URL: database.url })
    assert.equal(code, 0, output)
    assert.match(output, /Every promise/)
  })

  it('prints its database secret nowhere when the database can not be reached', () => {
    const { code, output } = farebox(['serve'], { FAREBOX_DATABASE_URL: 'postgres://u:canary-77@127.0.0.1:1/x' })
    assert.equal(code, 1)
    assert.ok(!output.includes('canary'), output)
  })
})
