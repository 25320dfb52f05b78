import { execFileSync } from 'node:child_process'
import { createHash, createPrivateKey, sign } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { withNode } from '../harness/bill-of-materials.ts'
import { nodeFor, type Processor } from '../harness/node-binary.ts'
import { npm } from '../harness/npm.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { VERSION } from '../server/src/cli/version.ts'

/**
 * `npm run artefact`, after a build: what is delivered, under .farebox/release/. An archive with the server and its own Node, the packed client,
 * their checksums, and the signature of those. Two runs on one commit give the same bytes. `--folder` only lays the files out, for an image.
 */
const USAGE =
  'Usage: npm run artefact [-- --arch x64|arm64] [--folder <path>] [--key <file>]: the server with its Node, the client, checksums and signature.'
const { values } = scriptArguments(USAGE, {
  arch: { type: 'string', default: process.arch },
  folder: { type: 'string' },
  key: { type: 'string' },
})
const BUILT = path.join(ROOT, 'server/dist')
const RELEASE = path.join(ROOT, '.farebox/release')
/** Source maps are twice the program, and what was compiled of it is of one machine. */
const isDelivered = (file: string) => !file.endsWith('.map') && path.basename(file) !== 'compile-cache'

const arch = processorOf(values.arch)
if (!existsSync(path.join(BUILT, 'server.js')))
  throw new Error('There is no build to deliver. Run npm run build first.')
if (values.folder !== undefined) layOut(path.resolve(values.folder))
else release()

function processorOf(name: string): Processor {
  if (name !== 'x64' && name !== 'arm64') throw new Error(`There is no Node for ${name}. ${USAGE}`)
  return name
}

function release(): void {
  const folder = path.join(RELEASE, 'files')
  layOut(folder)
  const archive = `farebox-${VERSION}-linux-${arch}.tar.gz`
  pack(folder, path.join(RELEASE, archive))
  rmSync(folder, { recursive: true })
  const client = npm(path.join(ROOT, 'client'), 'pack', '--silent', '--pack-destination', RELEASE).trim()
  const sums = checksums(readdirSync(RELEASE).filter((name) => name.endsWith('gz')))
  writeFileSync(path.join(RELEASE, 'SHA256SUMS'), sums)
  if (values.key !== undefined) writeFileSync(path.join(RELEASE, 'SHA256SUMS.sig'), signature(sums, values.key))
  console.log(
    `${RELEASE}: ${archive}, ${client}, SHA256SUMS${values.key === undefined ? ', unsigned' : ' and its signature'}`,
  )
}

/** The root of an image: the program under /opt/farebox, and nothing else. */
function layOut(folder: string): void {
  const program = path.join(folder, 'opt/farebox')
  rmSync(program, { recursive: true, force: true })
  mkdirSync(path.join(program, 'bin'), { recursive: true })
  cpSync(BUILT, program, { recursive: true, filter: isDelivered })
  const node = nodeFor(arch)
  cpSync(path.join(node.folder, 'bin/node'), path.join(program, 'bin/node'))
  cpSync(path.join(ROOT, 'deploy/farebox'), path.join(program, 'bin/farebox'))
  cpSync(path.join(ROOT, 'LICENSE'), path.join(program, 'LICENSE'))
  cpSync(path.join(node.folder, 'LICENSE'), path.join(program, 'node-license.txt'))
  const bill = path.join(program, 'sbom.cdx.json')
  writeFileSync(bill, withNode(readFileSync(bill, 'utf8'), node))
}

/** GNU tar, told everything that it would take from the machine. */
function pack(folder: string, archive: string): void {
  const epoch =
    process.env.SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' })
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX', `--mtime=@${epoch.trim()}`]
  const tar = ['--create', '--sort=name', '--format=gnu', ...owner, '--directory', folder, 'opt']
  const bytes = execFileSync('tar', tar, { maxBuffer: 1024 ** 3 })
  writeFileSync(archive, execFileSync('gzip', ['--no-name', '--best'], { input: bytes, maxBuffer: 1024 ** 3 }))
}

/** In the form that `sha256sum --check` reads. */
function checksums(names: readonly string[]): string {
  const sum = (name: string) =>
    createHash('sha256')
      .update(readFileSync(path.join(RELEASE, name)))
      .digest('hex')
  return names
    .toSorted()
    .map((name) => `${sum(name)}  ${name}\n`)
    .join('')
}

/** Ed25519, which `openssl pkeyutl -verify -rawin` checks. */
function signature(text: string, keyFile: string): Buffer {
  const key = createPrivateKey(readFileSync(keyFile))
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`${keyFile} is no Ed25519 key: make one with openssl genpkey -algorithm ed25519`)
  return sign(null, Buffer.from(text), key)
}
