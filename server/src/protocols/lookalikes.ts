import { foldName } from '../catalogue/fold-name.ts'
import { NAME_LENGTH } from '../catalogue/member-table.ts'
import { type Members, refusal } from './members.ts'

/**
 * Names that some upstream may take for a name that we read, in a body whose definition is not shown in full: `Duration`,
 * `duration[]`, `parameters.duration`. What such a body has beside that passes byte for byte, in whatever spellings.
 */
export function refuseLookalikes(object: Members, read: readonly string[], path = ''): void {
  const byFold = new Map(read.map((name) => [foldName(name), name]))
  for (const name of Object.keys(object)) {
    const known = byFold.get(foldName(name)) ?? byFold.get(foldName(rootOf(name)))
    if (known !== undefined && known !== name)
      throw refusal(`${shown(path, name)} can be read as "${path}${known}". Write it that way, once.`)
  }
}

/** Names that are read elsewhere, in any spelling: some upstream may look for them here too. */
export function refuseMisplaced(object: Members, read: readonly string[], path: string, belongs: string): void {
  const folded = read.map(foldName)
  for (const name of Object.keys(object)) {
    const known = read[folded.indexOf(foldName(name))] ?? read[folded.indexOf(foldName(rootOf(name)))]
    if (known !== undefined) throw refusal(`${shown(path, name)} belongs elsewhere. Write it as "${belongs}${known}".`)
  }
}

function shown(path: string, name: string): string {
  return `"${path}${name.slice(0, NAME_LENGTH)}"`
}

/** What stands before the first bracket, dot or semicolon: servers read the rest as a place within it. */
function rootOf(name: string): string {
  return /^[^[.;]*/.exec(name)?.[0] || name
}
