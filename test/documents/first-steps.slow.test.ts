import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { lexer } from 'marked'
import { startChild } from '../../harness/child.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'

/** The first steps of README.md, as a newcomer types them one after another into one shell. */

const blocks = lexer(readFileSync(path.join(ROOT, 'README.md'), 'utf8')).flatMap((token) =>
  token.type === 'code' && token.lang === 'sh' ? [String(token.text)] : [],
)

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(installation.stop)
const { secret } = await makeCustomer(installation.pool)
const folder = mkdtempSync(path.join(tmpdir(), 'first-steps-'))
after(() => rmSync(folder, { recursive: true, force: true }))
symlinkSync(path.join(ROOT, 'examples'), path.join(folder, 'examples'))

const BETWEEN = '=== the next block ==='

/** What each block prints. They share a shell, so that one knows what the one before it has set. */
async function run(): Promise<readonly string[]> {
  const file = path.join(folder, 'steps.sh')
  writeFileSync(file, `set -euo pipefail\n${blocks.join(`\necho; echo '${BETWEEN}'\n`)}\n`)
  const env = {
    ...process.env,
    ...{ FAREBOX_URL: installation.url, FAREBOX_KEY: secret, FAREBOX_DATABASE_URL: database.url },
    FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal(),
    PATH: `${path.join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
  }
  const child = startChild('bash', [file], { cwd: folder, env })
  const { code } = await child.exited
  assert.equal(code, 0, child.output())
  return child.output().split(BETWEEN)
}

describe('the first steps of README.md', async () => {
  const [call = '', stream = '', quote = '', refusal = '', rotated = '', ...more] = await run()

  it('are five', () => assert.deepEqual(more, []))

  it('make a metered call, and the answer is as it is shown', () => {
    assert.match(call, /^HTTP\/1\.1 200 OK/)
    assert.match(call, /^X-Farebox-Cost-Usd: 0\.000000500\r?$/m)
    assert.match(call, /"results":\[\{"index":1,"relevance_score":0\.647113,"document":\{"text":"a fox"\}\}/)
  })

  it('stream by an SDK', () =>
    assert.match(stream, /^Echo: Hello from the OpenAI SDK\ntokens: .*\ncost: 0\.\d{9} USD$/m))

  it('get a quote', () => {
    const { max, quote_id } = JSON.parse(quote)
    assert.match(max.usd, /^0\.00\d{7}$/)
    assert.equal(typeof quote_id, 'string')
  })

  it('are refused by a budget, which explains itself', () => {
    const [first, second, { error }] = refusal
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual([first.error, second.error, error.code], [undefined, undefined, 'budget_exceeded'])
    assert.match(error.budget_resets_at, /^\d{4}-\d\d-\d\dT00:00:00/)
    assert.match(
      error.message,
      /^Budget exceeded: .* Hold needed: [\d.]+ USD; left: 0\.000005 USD of 0\.000006 USD per day\. /,
    )
  })

  it('rotate the key, whose new secret works', () => {
    const { mode, budget } = JSON.parse(rotated)
    assert.deepEqual([mode, budget.period], ['test', 'day'])
  })
})
