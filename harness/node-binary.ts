import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readChecksums } from './bill-of-materials.ts'
import { npm } from './npm.ts'
import { ROOT } from './root.ts'

export type Processor = 'x64' | 'arm64'
/** An npm package that brings a Node for Linux. */
export type NodePackage = { readonly name: string; readonly version: string; readonly folder: string }

const PINNED = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).optionalDependencies

/** The Node that package.json pins: the installed one, or that of another processor, fetched by npm and compared with the lockfile. */
export function nodeFor(processor: Processor): NodePackage {
  const name = `node-linux-${processor}`
  const version: string = PINNED[name]
  if (processor === process.arch) return { name, version, folder: path.join(ROOT, 'node_modules', name) }
  const scratch = mkdtempSync(path.join(tmpdir(), 'farebox-node-'))
  const archive = path.join(scratch, npm(scratch, 'pack', '--silent', `${name}@${version}`).trim())
  const checksum = createHash('sha512').update(readFileSync(archive)).digest('hex')
  if (checksum !== readChecksums().get(`${name} ${version}`))
    throw new Error(`${name} ${version} is not what package-lock.json says: its SHA-512 is ${checksum}`)
  execFileSync('tar', ['--extract', '--file', archive, '--directory', scratch])
  return { name, version, folder: path.join(scratch, 'package') }
}
