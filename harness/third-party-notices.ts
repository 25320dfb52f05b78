import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'

const Package = z.object({ name: z.string(), version: z.string(), license: z.unknown() })
const PACKAGE_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/
const NOTICE = /^(licen[cs]e|notice|copying)/i

/** Who wrote what a bundle contains, and under which terms: of each package its license and notices, by the files in the bundle. */
export function thirdPartyNotices(files: readonly string[]): string {
  const folders = new Set(files.flatMap((file) => PACKAGE_FOLDER.exec(file.replace(/^\0/, '')) ?? []))
  return [...folders].map(noticeOf).toSorted().join('\n')
}

function noticeOf(folder: string): string {
  const { name, version, license } = Package.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')))
  const texts = readdirSync(folder)
    .filter((file) => NOTICE.test(file))
    .map((file) => readFileSync(path.join(folder, file), 'utf8').trim())
  const terms = texts.length > 0 ? texts : [`License: ${String(license)}`]
  return `${name} ${version}\n\n${terms.join('\n\n')}\n\n${'-'.repeat(80)}\n`
}
