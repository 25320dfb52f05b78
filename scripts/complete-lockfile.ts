import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `node scripts/complete-lockfile.ts`, after `npm install` changed package-lock.json: adds the builds for other
 * platforms that a registry mirror does not carry. npm leaves out what it can't look up, and `npm ci` then calls the
 * lockfile out of date. Such an entry has a version and its platform but no checksum; on this platform it is never
 * fetched.
 */
type Entry = {
  version?: string
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

scriptArguments(
  'Usage: node scripts/complete-lockfile.ts: adds the builds for other platforms to package-lock.json.',
  {},
)
const file = path.join(ROOT, 'package-lock.json')
const lockfile = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> }
const { packages } = lockfile

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

let added = 0
for (const [place, entry] of Object.entries(packages)) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    const version = range.replace(/^[\^~]/, '')
    const levels = [`${place}/node_modules/${name}`, `node_modules/${name}`]
    if (levels.some((level) => packages[level]?.version === version)) continue
    const free =
      packages[`node_modules/${name}`] === undefined ? `node_modules/${name}` : `${place}/node_modules/${name}`
    packages[free] = { version, ...platformOf(name), ...(entry.dev ? { dev: true } : {}), optional: true }
    added += 1
  }
}

lockfile.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(file, `${JSON.stringify(lockfile, undefined, 2)}\n`)
console.log(`added ${added} builds for other platforms to package-lock.json`)

function platformOf(name: string): Pick<Entry, 'os' | 'cpu' | 'libc'> {
  const words = name.replace('windows', 'win32').split(/[/-]/)
  const os = SYSTEMS.find((one) => words.includes(one))
  const cpu = PROCESSORS.find((one) => words.includes(one))
  const libc = words.some((word) => word.startsWith('musl')) ? 'musl' : words.includes('gnu') ? 'glibc' : undefined
  return {
    // What names no system runs nowhere that we know of.
    os: [os ?? 'none'],
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(libc === undefined ? {} : { libc: [libc] }),
  }
}
