import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

/**
 * A contract with marks in place of what an installation spells. No setting reaches the rest of it, so a build makes it once, and a start
 * only spells it.
 */
export type ContractDraft = {
  /** SHA-256 of what it was made from. */
  readonly revision: string
  /** The document as JSON, without the address of the installation. */
  readonly text: string
}

/** In place of the names that an installation spells. The provider's word is marked in lower case where a header has it so. */
export const MARKED_NAMES = {
  provider: '‹Provider›',
  social_a: '‹social_a›',
  social_b: '‹social_b›',
  social_c: '‹social_c›',
  reseller: '‹reseller›',
  traffic_analytics: '‹traffic_analytics›',
  deep_research: '‹deep_research›',
}
export const MARK = /‹(\w+)›/g

export type DraftName = 'gateway' | 'account'

/** What the build has left beside the bundle; undefined where the sources run. */
export function builtDraft(name: DraftName): ContractDraft | undefined {
  const file = path.join(import.meta.dirname, draftFile(name))
  if (!existsSync(file)) return undefined
  const whole = readFileSync(file, 'utf8')
  const end = whole.indexOf('\n')
  return { revision: whole.slice(0, end), text: whole.slice(end + 1) }
}

/** The revision in a line, and the document behind it. */
export function writtenDraft({ revision, text }: ContractDraft): string {
  return `${revision}\n${text}`
}

export function draftFile(name: DraftName): string {
  return `contract-of-${name}.txt`
}
