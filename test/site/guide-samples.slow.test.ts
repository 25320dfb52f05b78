import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { lexer } from 'marked'
import { startChild } from '../../harness/child.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { openLibrary } from '../../server/src/site/guides/library.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'

/**
 * Every sample of the guides is run as it stands there, in their order, against the whole service and its sandbox. One that is only shown
 * says so behind its language: ```sh shown.
 */
type Sample = { readonly guide: string; readonly at: number; readonly language: string; readonly code: string }

const RUN = new Set(['sh', 'ts', 'python'])
/** The operator's way is a script of its own, which test/house/operating.slow.test.ts runs. */
const RUN_ELSEWHERE = new Set(['operating'])

const all = openLibrary()
  .guides.filter(({ name }) => !RUN_ELSEWHERE.has(name))
  .flatMap(({ name, source }) =>
    lexer(source).flatMap((token, at) => {
      if (token.type !== 'code') return []
      const { lang = '', text } = token
      const [language = '', mark] = lang.split(' ')
      return [{ guide: name, at, language, mark, code: String(text) }]
    }),
  )
const samples: readonly Sample[] = all.filter(({ language, mark }) => RUN.has(language) && mark !== 'shown')

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(installation.stop)
const { secret } = await makeCustomer(installation.pool)
const folder = mkdtempSync(path.join(tmpdir(), 'samples-'))
after(() => rmSync(folder, { recursive: true, force: true }))
installClient()

/** The client as a package, from its sources. */
function installClient(): void {
  const client = path.join(folder, 'node_modules/@farebox/client')
  mkdirSync(client, { recursive: true })
  writeFileSync(path.join(client, 'package.json'), '{"name":"@farebox/client","type":"module","exports":"./index.js"}')
  writeFileSync(
    path.join(client, 'index.js'),
    `export * from ${JSON.stringify(path.join(ROOT, 'client/src/index.ts'))}`,
  )
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
}

function commandOf({ language, code, guide, at }: Sample): readonly [string, readonly string[]] {
  const file = path.join(folder, `${guide}-${at}.${language}`)
  writeFileSync(file, language === 'sh' ? `set -euo pipefail\n${code}\n` : code)
  if (language === 'sh') return ['bash', [file]]
  return language === 'ts' ? [process.execPath, [file]] : ['python3', [file]]
}

/** What a sample that is about a refusal is refused with; every other must not tell of one. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  budgets: /cost_cap_exceeded/,
  idempotency: /^200\s+409\s*$/,
}

describe('the samples of the guides', () => {
  it('are some in each language, and those that are only shown say so', () => {
    for (const language of RUN)
      assert.ok(
        samples.some((sample) => sample.language === language),
        language,
      )
    assert.deepEqual([...new Set(all.map(({ mark }) => mark))].sort(), ['shown', undefined])
  })

  for (const sample of samples)
    it(`of ${sample.guide} runs: ${sample.language}, token ${sample.at}`, async () => {
      const [command, args] = commandOf(sample)
      const env = { ...process.env, BASE_URL: installation.url, API_KEY: secret }
      const child = startChild(command, args, { cwd: folder, env })
      const { code } = await child.exited
      const output = child.output()
      assert.equal(code, 0, output)
      assert.notEqual(output.trim(), '')
      const wanted = REFUSED[sample.guide]
      if (wanted !== undefined && (sample.code.includes('# 402') || sample.code.includes('409')))
        assert.match(output, wanted)
      else assert.doesNotMatch(output, /"error"|Traceback/)
    })
})
