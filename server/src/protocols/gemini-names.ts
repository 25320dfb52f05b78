import { inSnakeCase, type Table } from '../catalogue/member-table.ts'
import type { Members } from './members.ts'

/** The members of an object under their documented names. Their spellings have been looked at before. */
export function spelled(members: Members, { bySpelling }: Table): Members {
  const entries = Object.entries(members)
  return Object.fromEntries(entries.map(([name, value]) => [bySpelling.get(name)?.name ?? name, value]))
}

/** How a body spells a member, or how we do where it has none. */
export function spellingIn(members: Members, name: string): string {
  const snake = inSnakeCase(name)
  return Object.hasOwn(members, snake) ? snake : name
}
