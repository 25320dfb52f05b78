import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { loadConfig } from '../../server/src/config.ts'
import { type Block, blocksIn } from './blocks.ts'

/** Settings that papers show are read by what reads them in earnest. */

const folder = mkdtempSync(path.join(tmpdir(), 'papers-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const read = (paper: string) => readFileSync(path.join(ROOT, paper), 'utf8')
const samplesOf = (blocks: readonly Block[]) =>
  blocks.filter(({ language }) => language === 'yaml').map(({ code }) => code)

/** With files of the test's own in place of those that the paper names. */
function fileWith(name: string, content: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  return file
}

describe('samples of settings', () => {
  const databaseUrl = 'postgres://user:password@127.0.0.1:5432/farebox'
  const load = (yaml: string, env: Readonly<Record<string, string>> = {}) =>
    loadConfig({ FAREBOX_CONFIG: fileWith('farebox.yaml', yaml), ...env })

  it('of configuration.md are taken, and mean what is said of them', () => {
    const [sample = '', ...more] = samplesOf(blocksIn('docs/configuration.md', read('docs/configuration.md')))
    assert.equal(more.length, 0)
    const { roles, http, database } = load(
      sample.replace('/run/secrets/database-url', fileWith('database-url', `${databaseUrl}\n`)),
    )
    assert.equal(database.url.reveal(), databaseUrl)
    assert.deepEqual(roles, ['gateway', 'worker', 'admin'])
    assert.deepEqual([http.public_url, http.trusted_proxies], ['https://api.example.com', ['10.0.0.0/8']])
  })

  it('of operating.md are taken: its colours can be read', () => {
    const [sample = '', ...more] = samplesOf(blocksIn('docs/operating.md', read('docs/operating.md')))
    assert.equal(more.length, 0)
    const logo = fileWith('logo.svg', '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9z"/></svg>')
    const { site } = load(sample.replace('/etc/farebox/logo.svg', logo), { FAREBOX_DATABASE_URL: databaseUrl })
    assert.equal(site.name, 'Harbour Gateway')
  })
})
