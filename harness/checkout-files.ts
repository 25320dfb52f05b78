import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './root.ts'

/** All files that git knows or will know of a checkout, by paths from its root; without those that are deleted and not committed yet. */
export function filesOfCheckout(root = ROOT): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed.split('\0').filter((file) => file !== '' && existsSync(path.join(root, file)))
}
