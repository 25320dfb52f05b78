import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { ROOT } from './root.ts'

/** Runs the project's npm in a folder, and gives what it printed. */
export function npm(folder: string, ...args: readonly string[]): string {
  const environment = { ...process.env, PATH: `${path.join(ROOT, 'node_modules/.bin')}:${process.env.PATH ?? ''}` }
  return execFileSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
  })
}
