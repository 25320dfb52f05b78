import { isMembers, type Members, refusal } from './members.ts'

/**
 * Names that some upstream may take for a name that we read, in a body whose definition is not shown in full: `Duration`,
 * `duration[]`, `parameters.duration`. What such a body has beside that passes byte for byte.
 */
export function refuseLookalikes(object: Members, read: readonly string[], path = ''): void {
  for (const name of Object.keys(object)) {
    const known = read.find((one) => plain(one) === plain(rootOf(name)))
    if (known !== undefined && known !== name) {
      throw refusal(`"${path}${name.slice(0, NAME_LENGTH)}" may be taken for "${path}${known}". Write that, once.`)
    }
  }
  refuseTwins(object, path)
}

const NAME_LENGTH = 64

/** At any depth. As deep as the body is nested at the most, which has a limit. */
function refuseTwins(value: unknown, path: string): void {
  if (Array.isArray(value)) {
    for (const item of value) refuseTwins(item, path)
    return
  }
  if (!isMembers(value)) return
  const seen = new Set<string>()
  for (const [name, inner] of Object.entries(value)) {
    const one = plain(name)
    const shown = `${path}${name.slice(0, NAME_LENGTH)}`
    if (seen.has(one)) throw refusal(`"${shown}" stands twice, in two spellings. Write it once.`)
    seen.add(one)
    refuseTwins(inner, `${shown}.`)
  }
}

/** What stands before the first bracket, dot or semicolon: servers read the rest as a place within it. */
function rootOf(name: string): string {
  return /^[^[.;]*/.exec(name)?.[0] || name
}

function plain(name: string): string {
  return name
    .replace(/[[\].;\s]/g, '')
    .toUpperCase()
    .toLowerCase()
}
