import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { PostgresBinaries } from './postgres-binaries.ts'
import { ROOT } from './root.ts'

/** Goes with the packages: who installs anew begins anew. */
const KEPT = path.join(ROOT, 'node_modules/.cache/postgres')
const INITDB = ['--username=farebox', '--encoding=UTF8', '--locale=C', '--no-sync', '--data-checksums']

/** Makes `data` in a folder of its own, for whoever reaches the port: initialised once on this machine, and copied from then on. */
export function makeOpenCluster(binaries: PostgresBinaries, data: string, keptIn = KEPT): void {
  const key = createHash('sha256')
    .update(JSON.stringify([binaries, INITDB]))
    .digest('hex')
    .slice(0, 16)
  const kept = path.join(keptIn, `${binaries.version}-${key}`)
  if (existsSync(kept)) copy(kept, data)
  else {
    initialise(binaries, data, ['--auth=trust'])
    keep(data, kept)
  }
}

function keep(data: string, kept: string): void {
  const draft = `${kept}-${process.pid}`
  try {
    mkdirSync(path.dirname(kept), { recursive: true })
    copy(data, draft)
    renameSync(draft, kept)
  } catch {
    // Another process was quicker, and its folder is as good; or nothing can be written here, and each is initialised.
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Makes `data` for whoever knows the password. */
export function makeLockedCluster(binaries: PostgresBinaries, data: string, password: string): void {
  const passwordFile = path.join(path.dirname(data), 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  own(passwordFile, binaries)
  try {
    initialise(binaries, data, ['--auth=scram-sha-256', `--pwfile=${passwordFile}`])
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

function initialise(binaries: PostgresBinaries, data: string, auth: readonly string[]): void {
  const initdb = path.join(binaries.folder, 'initdb')
  execFileSync(initdb, ['-D', data, ...INITDB, ...auth], { stdio: 'pipe', cwd: path.dirname(data), ...binaries.user })
}

/** With owners and permissions, which PostgreSQL insists on. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}

export function own(target: string, { user }: PostgresBinaries): void {
  if (user) chownSync(target, user.uid, user.gid)
}
