import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { FAREBOX } from './gateways.ts'
import { npm } from './npm.ts'
import { isAlive } from './processes.ts'
import { ROOT } from './root.ts'

/** A version of ours that can run: its checkout, and its program. */
export type Version = { readonly folder: string; readonly program: string }

/** This one, as the harness runs it. */
export const THIS_VERSION: Version = { folder: ROOT, program: FAREBOX }

/** Where checkouts of other versions are, for as long as they are needed. */
const FOLDER = path.join(ROOT, '.farebox')
const BUILT = 'server/dist/main.js'
const CHECKOUT = /^compare-(\d+)-/

/** This version as its sources are now, committed or not, built by its own build. */
export function buildThis(): Version {
  return build(ROOT)
}

/** Another version: a checkout of its commit, with the packages that it names, built by its own build. */
export function buildCommit(commit: string): Version & { readonly remove: () => void } {
  mkdirSync(FOLDER, { recursive: true })
  removeAbandoned()
  const folder = mkdtempSync(path.join(FOLDER, `compare-${process.pid}-`))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    checkOut(commit, folder)
    // A version is measured with its own packages; where those are ours too, there is nothing to install.
    if (hasPackagesOf(lockfileOf(folder), lockfileOf(ROOT)))
      symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
    else npm(folder, 'ci', '--prefer-offline', '--loglevel=error')
    return { ...build(folder), remove }
  } catch (error) {
    remove()
    throw error
  }
}

function build(folder: string): Version {
  npm(folder, 'run', '--silent', 'build')
  return { folder, program: path.join(folder, BUILT) }
}

/** A clone that borrows our objects: a worktree of git's would be noted in our own repository. */
function checkOut(commit: string, folder: string): void {
  const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
  const objects = path.resolve(ROOT, git('rev-parse', '--git-common-dir').trim())
  git('clone', '--quiet', '--shared', '--no-checkout', objects, folder)
  git('-C', folder, 'checkout', '--quiet', '--detach', commit)
}

/** Whoever was killed could not delete its checkout; its number in the folder's name tells that it is gone. */
function removeAbandoned(): void {
  for (const name of readdirSync(FOLDER)) {
    const pid = CHECKOUT.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path.join(FOLDER, name), { recursive: true, force: true })
  }
}

const Lockfile = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), link: z.boolean().optional() })),
})
export type Lockfile = z.output<typeof Lockfile>

function lockfileOf(folder: string): Lockfile {
  return Lockfile.parse(JSON.parse(readFileSync(path.join(folder, 'package-lock.json'), 'utf8')))
}

/** Whether every package of one lockfile is there by another, in the same version and the same place: a build needs those of development, too. */
export function hasPackagesOf(wanted: Lockfile, here: Lockfile): boolean {
  return Object.entries(wanted.packages)
    .filter(([place, { link }]) => place.startsWith('node_modules/') && link !== true)
    .every(([place, { version }]) => here.packages[place]?.version === version)
}
