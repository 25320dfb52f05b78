import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { type Child, startChild } from '../../harness/child.ts'
import { COMMAND_DEADLINE_MS, FAREBOX, startGateway } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'
import { seedModel } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { connect } from '../ledger/world.ts'
import { bareEnvironment, runFarebox } from './run-farebox.ts'

/** What somebody at a terminal sees: signals, pipes, wrong files and wrong Nodes, each as a sentence. */

const { url: databaseUrl } = await freshDatabase()
const { pools } = connect(databaseUrl)
after(() => pools.close())
const folder = mkdtempSync(path.join(tmpdir(), 'terminal-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const NO_STACK = /^\s+at .*:\d+:\d+\)?$/m

/** An upstream that takes a request and never answers it. */
async function silentVendor(): Promise<{ readonly url: string; readonly asked: () => number }> {
  let asked = 0
  const server = createServer(() => {
    asked += 1
  }).listen(0, '127.0.0.1')
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked }
}

async function untilItEnds(child: Pick<Child, 'hasExited' | 'signal'>, signal: NodeJS.Signals): Promise<void> {
  await until(
    async () => {
      child.signal(signal)
      return child.hasExited()
    },
    PATIENCE_MS,
    `an end by ${signal}`,
  )
}

describe('farebox serve', () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    it(`waits for what it accepted on the first ${signal}, and on a second one stops at once and says what was waiting`, async () => {
      const vendor = await silentVendor()
      const pool = pools.rest
      await seedModel(pool, { id: `maker/${signal}`, protocols: ['openai'] })
      const settings = { slot: 'openai', mode: 'live', baseUrl: vendor.url, kind: 'native', credential: null } as const
      const upstreamId = await saveUpstream({ pool, ids, seal: null }, settings)
      const gateway = await startGateway({ databaseUrl })
      const { secret } = await makeCustomer(pool, { paid: 1_000_000_000n })
      const call = fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: `maker/${signal}`,
          max_tokens: 5,
          messages: [{ role: 'user', content: 'Hello' }],
        }),
      }).then(
        () => 'answered',
        () => 'cut',
      )
      await until(async () => vendor.asked() === 1, PATIENCE_MS, 'the call at the vendor')
      gateway.signal(signal)
      await until(async () => /"msg":"stopping"/.test(gateway.output()), PATIENCE_MS, 'the beginning of the stop')
      assert.equal(gateway.hasExited(), false)
      await untilItEnds(gateway, signal)
      assert.deepEqual(await gateway.exited, { code, signal: null })
      assert.equal(await call, 'cut')
      const [line = ''] = gateway
        .output()
        .split('\n')
        .filter((one) => one.includes('told twice'))
      const { level, reason } = JSON.parse(line)
      assert.equal(level, 'warn')
      assert.equal(
        reason,
        '1 requests were not answered and 1 calls had not ended; what they hold stays held as unsettled: farebox ledger unsettled',
      )
      await pool.query('delete from upstreams where id = $1', [upstreamId])
    })

  it('warns once where npx has started it, which would leave it behind, and not where nobody else has', async () => {
    const npx = startChild('npx', ['farebox', 'serve'], {
      cwd: ROOT,
      env: {
        ...bareEnvironment(),
        FAREBOX_DATABASE_URL: databaseUrl,
        FAREBOX_LISTEN_GATEWAY: '127.0.0.1:0',
        FAREBOX_LISTEN_SITE: '127.0.0.1:0',
        FAREBOX_LISTEN_AGENT: '127.0.0.1:0',
        FAREBOX_LISTEN_ADMIN: '127.0.0.1:0',
      },
    })
    after(() => npx.kill())
    await until(async () => npx.output().includes('"ready":true'), PATIENCE_MS, 'readiness')
    const warnings = (output: string) => output.split('\n').filter((line) => line.includes('does not pass SIGTERM on'))
    assert.equal(warnings(npx.output()).length, 1, npx.output())
    assert.match(warnings(npx.output())[0] ?? '', /"level":"warn".*started by npx, .* Start it with exec node instead/)
    const direct = await startGateway({ databaseUrl, env: { npm_command: '' } })
    assert.deepEqual(warnings(direct.output()), [])
    await direct.stop()
  })

  it('finishes and stops where nobody reads its log any more', async () => {
    const shell = `"$NODE" "$PROGRAM" serve | head -1; echo "status \${PIPESTATUS[0]}"`
    const running = startChild('bash', ['-c', shell], {
      env: {
        ...bareEnvironment(),
        NODE: process.execPath,
        PROGRAM: FAREBOX,
        FAREBOX_DATABASE_URL: databaseUrl,
        FAREBOX_LISTEN_GATEWAY: '127.0.0.1:0',
        FAREBOX_LISTEN_SITE: '127.0.0.1:0',
        FAREBOX_LISTEN_AGENT: '127.0.0.1:0',
        FAREBOX_LISTEN_ADMIN: '127.0.0.1:0',
      },
    })
    after(() => running.kill())
    await running.exited
    assert.match(running.output(), /\nstatus 0\n$/)
    assert.doesNotMatch(running.output(), NO_STACK)
  })
})

describe('a command', () => {
  it('ends quietly where whoever reads what it prints has left', async () => {
    await pools.rest.query(
      "insert into audit (actor, action, subject) select 'operator many', 'key.created', repeat('x', 500) from generate_series(1, 500)",
    )
    const shell = `"$NODE" "$PROGRAM" audit --json | head -1 | cut -c 1-10; echo "status \${PIPESTATUS[0]}"`
    const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
      const env = { ...bareEnvironment(), NODE: process.execPath, PROGRAM: FAREBOX, FAREBOX_DATABASE_URL: databaseUrl }
      execFile('bash', ['-c', shell], { env, timeout: COMMAND_DEADLINE_MS }, (_, stdout, stderr) =>
        resolve({ stdout, stderr }),
      )
    })
    assert.equal(stderr, '')
    assert.match(stdout, /^.{10}\nstatus 0\n$/)
  })

  it('says that PostgreSQL can not be reached, in one line', async () => {
    for (const line of [['ledger', 'verify'], ['migrate'], ['serve'], ['accounts', 'list']]) {
      const { code, output } = await runFarebox(line, { FAREBOX_DATABASE_URL: 'postgres://u:canary-3@127.0.0.1:1/x' })
      assert.equal(code, 1)
      assert.equal(
        output,
        "farebox: database.url: can't reach 127.0.0.1:1 (ECONNREFUSED): start PostgreSQL or correct the address\n",
      )
    }
  })

  for (const [what, yaml, says] of [
    [
      'a list',
      '- a\n- b\n',
      /^farebox: \S+\.yaml is a list: write settings by their names, such as log: and below it "level: warn"$/m,
    ],
    ['a text', 'gateway\n', /^farebox: \S+\.yaml is a text: /m],
    [
      'a section that is a list',
      'http:\n  - body_bytes\n',
      /^farebox: http in \S+ is a list: write its settings below it, each as "name: value" \(body_bytes, model_body_bytes, header_bytes, json_depth and others\)$/m,
    ],
    ['a section that is a number', 'log: 5\n', /^farebox: log in \S+ is a number: .* \(level, calls\)$/m],
    [
      'a value that is a list',
      'listen:\n  gateway: [127.0.0.1, 8700]\n',
      /^farebox: listen\.gateway \(FAREBOX_LISTEN_GATEWAY\) must be a text, and is a list$/m,
    ],
    [
      'an entry that is a section',
      'http:\n  cors_origins:\n    - https: //a.example\n',
      /^farebox: http\.cors_origins \(FAREBOX_HTTP_CORS_ORIGINS\) must be a text, and is a section with settings of its own$/m,
    ],
    ['no YAML', 'http:\n  body_bytes: 1\n - x\n', /^farebox: \S+\.yaml is not valid YAML: /m],
  ] as const)
    it(`says what is wrong with a file of settings that has ${what}`, async () => {
      const file = path.join(folder, `${what.replaceAll(' ', '-')}.yaml`)
      writeFileSync(file, yaml)
      const { code, output } = await runFarebox(['config', 'check'], {
        FAREBOX_CONFIG: file,
        FAREBOX_DATABASE_URL: databaseUrl,
      })
      assert.equal(code, 1)
      assert.match(output, says)
      assert.doesNotMatch(output, NO_STACK)
      assert.doesNotMatch(output, /Invalid input/)
    })

  it('says which Node it needs on one that is too old, in one line', async () => {
    const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`
    const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
      const args = [
        '--import',
        `data:text/javascript,${encodeURIComponent(older)}`,
        path.join(ROOT, 'server/bin/farebox.js'),
        '--help',
      ]
      execFile(
        process.execPath,
        args,
        { env: bareEnvironment(), timeout: COMMAND_DEADLINE_MS },
        (error, stdout, stderr) => resolve({ code: error?.code, output: stdout + stderr }),
      )
    })
    assert.equal(code, 1)
    assert.equal(
      output,
      'farebox: this is Node 20.20.2, and Node 24.12 or newer is needed: install it, or run the line behind scripts/with-node in a checkout\n',
    )
  })

  it('helps, as scripts of the project do', async () => {
    const scripts = readdirSync(path.join(ROOT, 'scripts')).filter((file) => file.endsWith('.ts'))
    assert.ok(scripts.length > 10)
    for (const script of scripts) {
      const run = (option: string) =>
        new Promise<string>((resolve) => {
          const args = [path.join(ROOT, 'scripts', script), option]
          execFile(process.execPath, args, { timeout: COMMAND_DEADLINE_MS }, (_, stdout, stderr) =>
            resolve(stdout + stderr),
          )
        })
      assert.match(await run('--help'), /^Usage: (npm|node) [\s\S]*\n$/)
      assert.match(await run('--nonsense'), /^Unknown option '--nonsense'\. Usage: (npm|node) [\s\S]*\n$/)
    }
  })
})
