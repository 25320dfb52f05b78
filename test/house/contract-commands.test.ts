import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { readRecordedContract } from '../../harness/recorded-contract.ts'
import { startShell } from './command-shell.ts'

const { farebox, said } = startShell({ FAREBOX_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' })
const folder = mkdtempSync(path.join(tmpdir(), 'contracts-'))
after(() => rmSync(folder, { recursive: true }))

const shown = await said('contract', 'show')

/** What is served, with something changed, in a file. */
function fileOf(name: string, change: (document: Record<string, unknown>) => void = () => {}): string {
  const document = JSON.parse(shown)
  change(document)
  const file = path.join(folder, name)
  writeFileSync(file, JSON.stringify(document))
  return file
}

const usageIn = (document: Record<string, unknown>) => Object(document.paths)['/v1/usage'].get
const served = fileOf('served.json')

describe('farebox contract', () => {
  it('shows the bytes whose hash its version is', async () => {
    const { contentHash, docsRevision } = JSON.parse(await said('contract', 'show', '--version-only'))
    assert.equal(contentHash, hash('sha256', shown, 'hex'))
    assert.match(docsRevision, /^[0-9a-f]{64}$/)
  })

  it('says of the recorded contract what changed since, and that nothing broke callers', async () => {
    const file = path.join(folder, 'recorded.json')
    writeFileSync(file, JSON.stringify(readRecordedContract()))
    assert.doesNotMatch(await said('contract', 'diff', file), /^breaking/m)
  })

  it('tells what is added from what breaks, by a code', async () => {
    const added = fileOf('added.json', (document) => {
      usageIn(document).parameters.push({ in: 'query', name: 'colour', required: false, schema: { type: 'string' } })
    })
    assert.equal(await said('contract', 'diff', served, added), 'additive  GET /v1/usage query colour is new\n')
    const { code, output } = await farebox('contract', 'diff', added, served)
    assert.equal(code, 1)
    assert.match(output, /^breaking {2}GET \/v1\/usage query colour is gone\n/)
    assert.match(output, /increase the major version/)
  })

  it('says so where nothing but words differs, or nothing at all', async () => {
    const worded = fileOf('worded.json', (document) => {
      usageIn(document).summary = 'In other words'
    })
    assert.equal(await said('contract', 'diff', served, worded), 'Only descriptions differ.\n')
    assert.equal(await said('contract', 'diff', served, served), 'The contracts are the same.\n')
  })

  it('says what it can not read', async () => {
    const { code, output } = await farebox('contract', 'diff', path.join(folder, 'none.json'), served)
    assert.equal(code, 1)
    assert.match(output, /none\.json cannot be read/)
  })
})
