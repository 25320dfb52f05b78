import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'

const Package = z.object({ name: z.string(), version: z.string(), license: z.string() })
const PACKAGE_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/
const NOTICE = /^(licen[cs]e|notice|copying)/i

/** A package of others that a bundle contains. */
export type BundledPackage = z.output<typeof Package> & { readonly folder: string }

/** The packages of a bundle, by the files in it, in the order of their names. */
export function bundledPackages(files: readonly string[]): BundledPackage[] {
  const folders = new Set(files.flatMap((file) => PACKAGE_FOLDER.exec(file.replace(/^\0/, '')) ?? []))
  return [...folders]
    .map((folder) => ({
      ...Package.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))),
      folder,
    }))
    .toSorted((a, b) => Buffer.compare(Buffer.from(`${a.name} ${a.version}`), Buffer.from(`${b.name} ${b.version}`)))
}

/** The license and notices of each package. */
export function thirdPartyNotices(packages: readonly BundledPackage[]): string {
  return packages.map(noticeOf).join('\n')
}

function noticeOf({ name, version, license, folder }: BundledPackage): string {
  const texts = readdirSync(folder)
    .filter((file) => NOTICE.test(file))
    .toSorted()
    .map((file) => readFileSync(path.join(folder, file), 'utf8').trim())
  const terms = texts.length > 0 ? texts : [`License: ${license}`]
  return `${name} ${version}\n\n${terms.join('\n\n')}\n\n${'-'.repeat(80)}\n`
}
