import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { filesOfCheckout } from './checkout-files.ts'
import { ROOT } from './root.ts'

/** A copy of the project as git sees it, for a test to plant things in. It is gone when the test file is done. */
export function copyOfProject(): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'farebox-copy-'))
  after(() => rmSync(copy, { recursive: true, force: true }))
  for (const file of filesOfCheckout()) {
    mkdirSync(path.dirname(path.join(copy, file)), { recursive: true })
    cpSync(path.join(ROOT, file), path.join(copy, file))
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'))
  execFileSync('git', ['init', '--quiet'], { cwd: copy })
  return copy
}

/** Runs Node there, and tells what came of it and everything that was said. */
export function runInCopy(
  copy: string,
  ...args: readonly string[]
): { readonly code: number | null; readonly output: string } {
  // A test runner inside a test would report to the outer one, and judge nothing itself.
  const { CI: _, NODE_TEST_CONTEXT: __, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: copy, env, encoding: 'utf8' })
  return { code: status, output: stdout + stderr }
}
