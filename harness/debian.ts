import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Installs something of Debian's that is missing, where we are root on a Debian; whether that was done. */
export function installFromDebian(what: string, install: (add: (name: string) => void) => void): boolean {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return false
  process.stderr.write(`Installing Debian's ${what}, which is missing …\n`)
  // Debian would start services of its own; ours are started per run.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const apt = (...args: string[]) =>
    execFileSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    apt('update')
    install((name) => apt('install', '--no-install-recommends', '--yes', name))
    return true
  } catch {
    return false
  }
}
