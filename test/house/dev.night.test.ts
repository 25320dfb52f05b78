import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { request } from 'undici'
import { startChild } from '../../harness/child.ts'
import { keptForDevelopment } from '../../harness/development.ts'
import { judge } from '../../harness/figures.ts'
import { COMMAND_DEADLINE_MS } from '../../harness/gateways.ts'
import { processesWith } from '../../harness/processes.ts'
import { ROOT } from '../../harness/root.ts'
import { connectAgent } from '../mcp/clients.ts'

const PROOF = 'development-stack'
const IN_TIME = { unit: 'ms', atMost: 15_000 } as const
let runs = 0

/** Starts it as a person does, through npm, with a mark in its environment that everything it starts inherits. */
function startDev(...args: string[]) {
  const mark = `${process.pid}-${runs++}`
  const lines: string[] = []
  const dev = startChild('npm', ['run', '--silent', 'dev', '--', ...args], {
    env: { ...process.env, DEV_TEST: mark },
    cwd: ROOT,
    // Others on this machine may have the ports that people remember.
    onLine: (line) => !/^npm warn|^Port \d+ is taken/.test(line) && lines.push(line),
  })
  after(() => dev.kill())
  const printed = async (wanted: RegExp) => {
    while (!dev.hasExited() && !lines.some((line) => wanted.test(line))) await sleep(10)
  }
  return { dev, lines, printed, running: () => processesWith(`DEV_TEST=${mark}`) }
}

async function untilNothingRuns(running: () => readonly unknown[]): Promise<void> {
  const deadlineMs = performance.now() + 60_000
  while (running().length > 0 && performance.now() < deadlineMs) await sleep(50)
  assert.deepEqual(running(), [])
}

/** Each from its name to the first line that does not say that it goes on. */
function commandsIn(lines: readonly string[]): readonly string[] {
  return lines.join('\n').match(/^ *curl (?:.*\\\n)*.*$/gm) ?? []
}

function shell(command: string): Promise<string> {
  return run('sh', ['-c', command])
}

async function run(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, [...args], { timeout: COMMAND_DEADLINE_MS, cwd: ROOT })
  return stdout
}

/** What a stream of chat completions says. */
function textIn(stream: string): string {
  const frames = stream.match(/^data: \{.*$/gm) ?? []
  return frames.map((frame) => JSON.parse(frame.slice('data: '.length)).choices[0]?.delta.content ?? '').join('')
}

describe('npm run dev', () => {
  it('prints one JSON line, answers /readyz, and leaves nothing running after Ctrl-C', async () => {
    const startedMs = performance.now()
    const { dev, lines, printed, running } = startDev('--json')
    await printed(/^\{"base_url"/)
    const readyMs = performance.now() - startedMs
    assert.equal(lines.length, 1, dev.output())
    const addresses = JSON.parse(lines[0] ?? '')
    const places = ['base_url', 'mcp_url', 'site_url', 'admin_url', 'sandbox_url']
    assert.deepEqual(Object.keys(addresses), [...places, 'api_key', 'agent_key', 'database_url', 'master_key'])
    const given = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 0.01 }
    for (const key of [addresses.api_key, addresses.agent_key]) {
      const agent = await connectAgent('sdk 2', addresses.mcp_url, key)
      assert.equal((await agent.call('use', given)).structuredContent.cost_usd, '0.001450000')
      await agent.close()
    }
    assert.equal((await request(`${addresses.base_url}/readyz`)).statusCode, 200)
    assert.equal((await request(`${addresses.sandbox_url}/livez`)).statusCode, 200)
    assert.ok(running().length > 3)

    // As a terminal does on Ctrl-C: to the whole foreground group.
    process.kill(-dev.pid, 'SIGINT')
    await dev.exited
    await untilNothingRuns(running)
    judge(PROOF, 'from the command to readiness', IN_TIME, [readyMs])
  })

  it('prints a first call that works as it stands, pasted into a shell, and says in its headers what it cost', async () => {
    const startedMs = performance.now()
    const { dev, lines, printed, running } = startDev()
    await printed(/^Ctrl-C/)
    const [first = '', streamed = '', bill = ''] = commandsIn(lines)
    const called = await shell(first)
    const firstCallMs = performance.now() - startedMs
    assert.match(called, /^HTTP\/1\.1 200 /, `${first}\n${called}`)
    assert.match(called, /^x-farebox-cost-usd: 0\.000000[0-9]{3}\r$/im)
    assert.match(called, /^x-request-id: [0-9a-f-]{36}\r$/im)
    assert.match(called, /"results":\[\{"index":1,.*\{"index":0,.*\{"index":2,/, 'a fox, a snail, a stone')
    const [, mail = ''] = /^ *mail +(\S+)/m.exec(lines.join('\n')) ?? []
    assert.match(await (await request(mail)).body.text(), /No mail yet/)
    const stream = await shell(streamed)
    assert.match(stream, /"cost_usd":"0\.000[0-9]{6}"/)
    assert.equal(textIn(stream), 'Echo: Hello')
    assert.match(stream, /^data: \[DONE\]$/m)
    const { totals } = JSON.parse(await shell(bill))
    assert.equal(totals.requests, 2)
    assert.ok(totals.input_tokens > 0 && totals.output_tokens > 0)
    // The program and the lines for the command line work as they stand, too.
    const text = lines.join('\n')
    const [snippet = ''] = /^ *import OpenAI[\s\S]*?console\.log\(.*$/m.exec(text) ?? []
    assert.equal(await run(process.execPath, ['--input-type=module', '--eval', snippet]), 'Echo: Hello\n')
    const [, exports = ''] = /^Copy this .*\n\n((?: +export .*\n)+)\n/m.exec(text) ?? []
    const [, examples = ''] = /^Then, for example:\n\n((?: +.*\n)+)/m.exec(text) ?? []
    const ran = await shell(`${exports}${examples}`)
    assert.equal(ran.match(/^cost: 0\.000\d{6} USD$/gm)?.length, 2, ran)
    assert.match(ran, /^\S+ {2}Development {2}growth {2}2 keys {2}0\.000000000 USD {2}99\.99\d{7} test\n$/m)
    const [, key = ''] = /^ *key +(fb_test_\w+)/m.exec(text) ?? []
    assert.equal(key, keptForDevelopment().key.secret.reveal(), 'the same in every run')
    process.kill(-dev.pid, 'SIGINT')
    await dev.exited
    await untilNothingRuns(running)
    judge(PROOF, 'from the command to the first call', IN_TIME, [firstCallMs])
  })

  it('says which port was taken, and what listens elsewhere for it', async () => {
    const other = createServer()
    // Whoever has it already takes it as well as we would.
    await new Promise<void>((resolve) => {
      other.once('error', () => resolve()).listen(8700, '127.0.0.1', () => resolve())
    })
    after(() => other.close())
    const { dev, printed, running } = startDev('--json')
    await printed(/^\{"base_url"/)
    const [, port = ''] =
      /^Port 8700 is taken by another program, so the gateway listens on (\d+) this time\.$/m.exec(dev.output()) ?? []
    assert.match(dev.output(), new RegExp(`"base_url":"http://127\\.0\\.0\\.1:${port}"`))
    process.kill(-dev.pid, 'SIGINT')
    await dev.exited
    await untilNothingRuns(running)
  })

  for (const [moment, line] of [
    ['PostgreSQL starts', /^Starting PostgreSQL/],
    ['the gateway starts', /^Starting the gateway/],
  ] as const) {
    it(`stops on Ctrl-C while ${moment}`, async () => {
      const { dev, printed, running } = startDev()
      await printed(line)
      process.kill(-dev.pid, 'SIGINT')
      await dev.exited
      await untilNothingRuns(running)
    })
  }

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    it(`leaves nothing running when npm alone gets ${signal}`, async () => {
      const { dev, printed, running } = startDev()
      await printed(/^Ctrl-C/)
      dev.signal(signal)
      await dev.exited
      await untilNothingRuns(running)
    })
  }
})
