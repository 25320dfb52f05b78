import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { request } from 'undici'
import { startChild } from '../../harness/child.ts'
import { judge } from '../../harness/figures.ts'
import { COMMAND_DEADLINE_MS, FAREBOX, startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'

const database = await freshDatabase()

function farebox(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [FAREBOX, ...args], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: COMMAND_DEADLINE_MS,
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
    await until(async () => (await request(`${gateway.url}/readyz`)).statusCode === 200, PATIENCE_MS, 'readiness')
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null })
  })

  it('exposes to operators the metrics of docs/metrics.md with their types and labels, and no others, and none to callers', async () => {
    const gateway = await startGateway({ databaseUrl: database.url })
    after(() => gateway.stop())
    await request(`${gateway.url}/v1/models`)
    const exposed = await (await request(`${gateway.adminUrl}/metrics`)).body.text()
    assert.match(exposed, /nodejs_eventloop_lag_p99_seconds/)
    assert.equal((await request(`${gateway.url}/metrics`)).statusCode, 401)
    const written = readFileSync(path.join(ROOT, 'docs/metrics.md'), 'utf8')
    const documented = new Map(
      [...written.matchAll(/^### (\w+)\n\n.+\n\n- Type: (\w+)\n- Labels: (.+)$/gm)].map(
        ([, name = '', type = '', labels = '']) => [name, { type, labels: labels.match(/(?<=`)\w+(?=`)/g) ?? [] }],
      ),
    )
    assert.equal(documented.size, written.match(/^### /gm)?.length)
    const types = [...exposed.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type]) => ({ name, type }))
    for (const { name, type } of types)
      assert.equal(documented.get(name)?.type, type, `${name} is not in docs/metrics.md`)
    if (process.platform === 'linux') assert.equal(types.length, documented.size)
    const labelled = [...exposed.matchAll(/^(\w+?)(?:_bucket|_sum|_count)?\{(.+)\} /gm)]
    assert.ok(labelled.some(([, name]) => name === 'farebox_http_requests_total'))
    for (const [line, name = '', labels = ''] of labelled)
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g))
        assert.ok(['le', 'quantile', ...(documented.get(name)?.labels ?? [])].includes(label), line)
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
    assert.match(output, /every invariant holds/)
  })

  it('ends with a line that names the setting when one of its ports is taken, and lets go of the other', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    after(() => other.close())
    await once(other, 'listening')
    const taken = `127.0.0.1:${(other.address() as AddressInfo).port}`
    for (const role of ['admin', 'agent', 'site', 'gateway']) {
      const { code, output } = farebox(['serve'], {
        FAREBOX_DATABASE_URL: database.url,
        FAREBOX_LISTEN_GATEWAY: '127.0.0.1:0',
        FAREBOX_LISTEN_SITE: '127.0.0.1:0',
        FAREBOX_LISTEN_AGENT: '127.0.0.1:0',
        FAREBOX_LISTEN_ADMIN: '127.0.0.1:0',
        [`FAREBOX_LISTEN_${role.toUpperCase()}`]: taken,
      })
      assert.equal(code, 1, output)
      const told = output.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":"info"'))
      const variable = `FAREBOX_LISTEN_${role.toUpperCase()}`
      assert.deepEqual(told, [
        `farebox: listen.${role} (${variable}): ${taken} is taken (EADDRINUSE): stop what listens there, or choose another port`,
      ])
    }
  })

  it('ends at once when it is told to during its start', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    after(() => silent.close())
    await once(silent, 'listening')
    const url = `postgres://u:canary-31@127.0.0.1:${(silent.address() as AddressInfo).port}/x`
    const child = startChild(process.execPath, [FAREBOX, 'serve'], {
      env: { ...process.env, FAREBOX_DATABASE_URL: url },
    })
    after(() => child.kill())
    await once(silent, 'connection')
    const toldAtMs = performance.now()
    assert.deepEqual(await child.stop(), { code: 0, signal: null }, child.output())
    // PostgreSQL, which has not said a word, would have been waited for much longer, and it would have failed then.
    judge('boot', 'an end during the start', { unit: 'ms', atMost: 3_000 }, [performance.now() - toldAtMs])
    assert.ok(!child.output().includes('canary'))
  })

  it('ends with a scrubbed line in its log on an error that nobody caught', async () => {
    const url = new URL(database.url)
    url.password = 'canary-58'
    for (const failing of ['throw new Error(text)', 'Promise.reject(new Error(text))']) {
      const preload = `const text = 'in ' + process.env.FAREBOX_DATABASE_URL + ' canary-58\\nfb_live_canary'
        process.on('SIGUSR2', () => { ${failing} })`
      const gateway = await startGateway({
        databaseUrl: url.href,
        env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}` },
      })
      assert.deepEqual(await gateway.stop('SIGUSR2'), { code: 1, signal: null })
      assert.match(gateway.output(), /"level":"error".*"message":"in \[redacted\].*nobody caught/)
      assert.ok(!gateway.output().includes('canary'), gateway.output())
    }
  })

  const unusable: Readonly<Record<string, readonly [change: (url: URL) => void, line: RegExp]>> = {
    'is not there': [
      (url) => {
        url.port = '1'
      },
      /^farebox: database\.url: can't reach 127\.0\.0\.1:1 \(ECONNREFUSED\): start PostgreSQL or correct the address$/,
    ],
    'is not there, on a host of several addresses': [
      (url) => {
        url.host = 'localhost:1'
      },
      /^farebox: database\.url: can't reach localhost:1 \(ECONNREFUSED\): start PostgreSQL/,
    ],
    'has no such database': [
      (url) => {
        url.pathname = '/nowhere'
      },
      /^farebox: database\.url: PostgreSQL at 127\.0\.0\.1:\d+ has no database of that name \(3D000\): create it/,
    ],
  }
  for (const [what, [change, line]] of Object.entries(unusable)) {
    it(`says in one line what to change, and not the secret, when PostgreSQL ${what}`, () => {
      const url = new URL(database.url)
      url.password = 'canary-77'
      change(url)
      for (const command of [['serve'], ['migrate'], ['config', 'check']]) {
        const { code, output } = farebox(command, { FAREBOX_DATABASE_URL: url.href })
        assert.equal(code, 1)
        const told = output
          .trim()
          .split('\n')
          .filter((one) => one !== 'The configuration is valid.')
        assert.equal(told.length, 1, output)
        assert.match(told[0] ?? '', line)
        assert.ok(!output.includes('canary'), output)
      }
    })
  }

  it('says in one line what to change when PostgreSQL refuses the password', async () => {
    const postgres = await startPostgres({ password: 'right-canary' })
    after(() => postgres.remove())
    const url = postgres.url().replace('right-canary', 'wrong-canary')
    const { code, output } = farebox(['serve'], { FAREBOX_DATABASE_URL: url })
    assert.equal(code, 1)
    assert.match(
      output,
      /^farebox: database\.url: .* rejected the user name or the password \(28P01\): correct them\n$/,
    )
    assert.ok(!output.includes('canary'))
  })

  it('says its version, which is that of the package', () => {
    const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
    assert.deepEqual(farebox(['--version'], {}), { code: 0, output: `${version}\n` })
  })
})
