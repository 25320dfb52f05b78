import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { freePort } from '../../harness/free-port.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { blocksIn } from '../documents/blocks.ts'
import { bareEnvironment } from './run-farebox.ts'

/** The commands of docs/operating.md as one script, on a PostgreSQL of its own, with the sandbox as the vendor. */

const text = readFileSync(path.join(ROOT, 'docs/operating.md'), 'utf8')
const blocks = blocksIn('docs/operating.md', text)
  .filter(({ language }) => language === 'sh')
  .map(({ mark, code }) => ({ isYours: mark === 'yours', code }))

const folder = mkdtempSync(path.join(tmpdir(), 'operating-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** What the operator has of their own, in place of what the paper has as an example. */
async function yours(): Promise<string> {
  const postgres = await startPostgres({ password: 'an own password' })
  after(() => postgres.remove())
  const sandbox = await startSandbox()
  after(() => sandbox.stop())
  writeFileSync(path.join(folder, 'vendor-key'), 'sandbox-key\n')
  const listen = async (role: string) => `export FAREBOX_LISTEN_${role}=127.0.0.1:${await freePort()}`
  const gateway = await freePort()
  const databaseUrl = postgres.url().replace('an own password', 'an%20own%20password')
  return [
    `export FAREBOX_DATABASE_URL='${databaseUrl}'`,
    `export FAREBOX_SECRETS_MASTER_KEY=${makeMasterKey().reveal()}`,
    `VENDOR_URL=${sandbox.url}/openai`,
    'VENDOR_KEY_FILE=./vendor-key',
    `GATEWAY=http://127.0.0.1:${gateway}`,
    `export FAREBOX_LISTEN_GATEWAY=127.0.0.1:${gateway}`,
    await listen('SITE'),
    await listen('AGENT'),
    await listen('ADMIN'),
  ].join('\n')
}

describe("the operator's way", () => {
  it('leads from an empty PostgreSQL over one vendor, six models, one customer and one budget to a paid call', async () => {
    assert.equal(blocks.filter(({ isYours }) => isYours).length, 1)
    assert.ok(blocks.length >= 11)
    const own = await yours()
    const script = blocks.map(({ isYours, code }) => (isYours ? own : code)).join('\n')
    // Files that it writes are its own; the program is the checkout's.
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
    writeFileSync(path.join(folder, 'way.sh'), `set -euo pipefail\n${script}`)
    const way = startChild('bash', ['way.sh'], { cwd: folder, env: bareEnvironment() })
    after(() => way.kill())
    const { code } = await way.exited
    const output = way.output()
    assert.equal(code, 0, `${output}\n${readLog()}`)

    assert.match(output, /^Applied 0001_\S+\.sql, .*\.sql\.$/m)
    assert.match(output, /The master key opens what is stored\./)
    assert.match(
      output,
      /^Upstream \S+ added to the slot vendor\.\nNo operation and no route uses the slot vendor yet\. Next: farebox models route/m,
    )
    assert.match(output, /6 new\. Written\./)
    assert.equal(output.match(/^Route \S+: vendor\/\w+ is sent to slot vendor as \w+, protocol openai\.$/gm)?.length, 6)
    assert.equal(output.match(/^vendor\/\w+ .* margin input \d+\.\d %, output \d+\.\d %$/gm)?.length, 6)
    assert.match(output, /^Added 20\.000000000 USD of credit as entry \S+\.$/m)
    assert.match(output, /^HTTP\/1\.1 200 OK\r?$/m)
    assert.match(output, /"content":"Echo: Hello"/)
    const [, cost = ''] = /^x-farebox-cost-usd: (0\.0000\d{5})\r?$/im.exec(output) ?? []
    assert.ok(Number(cost) > 0, output)
    const left = (5 - Number(cost)).toFixed(9)
    assert.match(
      output,
      new RegExp(`backend  active  ${cost} USD this month  budget 5\\.000000000 USD per month, ${left} left$`, 'm'),
    )
    assert.match(output, new RegExp(`was charged ${cost} USD\\. It ended at `, 'm'))
    assert.match(output, /^The ledger is consistent: every invariant holds\.$/m)
    assert.match(output, /model\.price_set/)
    assert.match(readLog(), /"ready":true[\s\S]*"msg":"stopped"/)

    assert.match(output, /^credentials of upstreams: 1 sealed again$/m)
    assert.match(output, /^Everything is sealed with secrets\.master_key now\./m)
    assert.equal(output.match(/^The master key opens what is stored\.$/gm)?.length, 2)
    assert.equal(output.match(/^Account \S+, First customer, since /gm)?.length, 2)
    assert.match(
      output,
      /^Reversed the payment 01a1dd7c-3f6a-7000-93b4-661a883f55ec: 50\.000000000 USD taken from account /m,
    )
    assert.match(output, /^Key \S+ is revoked: it can no longer start paid calls\.$/m)
    assert.match(output, /^Account \S+ pays 0\.8x the price of vendor\/small, also when that price changes\.$/m)
    assert.match(output, /^Account \S+ is on the plan partner\.$/m)
  })
})

function readLog(): string {
  return readFileSync(path.join(folder, 'farebox.log'), 'utf8')
}
