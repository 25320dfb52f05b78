import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { npm } from '../../harness/npm.ts'
import { ROOT } from '../../harness/root.ts'

/** What `npm run artefact` delivers, from two clones of the commit that is checked out. */

const FOLDER = path.join(ROOT, '.farebox')
mkdirSync(FOLDER, { recursive: true })
const scratch = mkdtempSync(path.join(FOLDER, 'artefact-'))
after(() => rmSync(scratch, { recursive: true, force: true }))

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const PRIVATE = path.join(scratch, 'key.pem')
const PUBLIC = path.join(scratch, 'key.pub')
writeFileSync(PRIVATE, privateKey.export({ type: 'pkcs8', format: 'pem' }))
writeFileSync(PUBLIC, publicKey.export({ type: 'spki', format: 'pem' }))

/** A clone in a folder of its own name, built and packed there. */
function deliver(name: string): string {
  const clone = path.join(scratch, name)
  execFileSync('git', ['clone', '--quiet', '--shared', ROOT, clone])
  // Links instead of copies: nothing writes to a package.
  execFileSync('cp', ['--archive', '--link', path.join(ROOT, 'node_modules'), clone])
  npm(clone, 'run', '--silent', 'build')
  npm(clone, 'run', '--silent', 'artefact', '--', '--key', PRIVATE)
  return path.join(clone, '.farebox/release')
}

const release = deliver('one')
const names = readdirSync(release).toSorted()
const archive = names.find((name) => name.startsWith('farebox-') && name.includes('-linux-')) ?? ''
const run = (program: string, ...words: readonly string[]) =>
  spawnSync(program, words, { cwd: release, encoding: 'utf8', env: { PATH: process.env.PATH ?? '' } })
const isSigned = () => {
  const checked = [
    'pkeyutl',
    '-verify',
    '-pubin',
    '-inkey',
    PUBLIC,
    '-rawin',
    '-in',
    'SHA256SUMS',
    '-sigfile',
    'SHA256SUMS.sig',
  ]
  return run('openssl', ...checked).status === 0
}
const isWhole = () => run('sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS').status === 0

describe('what is delivered', () => {
  it('has the same bytes from another clone of the commit', () => {
    const other = deliver('another-folder-with-a-longer-name')
    assert.deepEqual(readdirSync(other).toSorted(), names)
    // Ed25519 signs the same text in the same way each time.
    for (const name of names)
      assert.ok(readFileSync(path.join(other, name)).equals(readFileSync(path.join(release, name))), name)
  })

  it('is signed, and a changed byte is refused', () => {
    assert.ok(isSigned())
    assert.ok(isWhole())
    for (const name of [archive, 'SHA256SUMS', 'SHA256SUMS.sig']) {
      const file = path.join(release, name)
      const bytes = readFileSync(file)
      const changed = Buffer.from(bytes)
      const at = Math.floor(bytes.length / 2)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      writeFileSync(file, changed)
      assert.ok(!isSigned() || !isWhole(), name)
      writeFileSync(file, bytes)
    }
    assert.ok(isSigned() && isWhole())
  })

  it('is a program that runs by itself where it is unpacked, with its licenses and a bill of materials', () => {
    const unpacked = path.join(scratch, 'unpacked')
    mkdirSync(unpacked)
    run('tar', '--extract', '--file', archive, '--directory', unpacked)
    const program = path.join(unpacked, 'opt/farebox')
    // Before it runs, and keeps what Node has compiled of it.
    const files = readdirSync(program, { recursive: true, encoding: 'utf8' })
    const version = run(path.join(program, 'bin/farebox'), '--version')
    assert.equal(version.stdout.trim(), JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).version)
    assert.deepEqual(
      files.filter((file) => file.endsWith('.map') || file.includes('compile-cache')),
      [],
    )
    const bill = JSON.parse(readFileSync(path.join(program, 'sbom.cdx.json'), 'utf8'))
    const notices = readFileSync(path.join(program, 'third-party-notices.txt'), 'utf8')
    const noticed = [...notices.matchAll(/(?:^|-{80}\n\n)(\S+) (\d+\.\d+\.\d+\S*)\n/g)].map(
      ([, name, at]) => `${name} ${at}`,
    )
    const packages: { name: string; version: string; licenses: unknown[]; hashes: { content: string }[] }[] =
      bill.components
    const inside = packages.map((one) => `${one.name} ${one.version}`)
    assert.deepEqual(
      inside.filter((one) => !one.startsWith('node-linux-')),
      noticed,
    )
    assert.ok(inside.some((one) => one.startsWith('node-linux-')))
    for (const { name, licenses, hashes } of packages) {
      assert.ok(licenses.length > 0, name)
      assert.match(hashes[0]?.content ?? '', /^[0-9a-f]{128}$/, name)
    }
  })
})
