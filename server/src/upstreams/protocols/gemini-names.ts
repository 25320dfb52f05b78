import { type Members, refusal } from './members.ts'

/** Names of members, as they are documented, by what is left of them without case and underscores. */
export type Names = ReadonlyMap<string, string>

export function namesOf(...names: readonly string[]): Names {
  return new Map(names.map((name) => [folded(name), name]))
}

/**
 * The members under their documented names. The protocol takes each in two spellings, `maxOutputTokens` and
 * `max_output_tokens`. One that is given in both is refused, because nobody knows which of them an upstream would take, and
 * so is any other spelling of a name that we have to read.
 */
export function spelled(members: Members, names: Names): Members {
  const seen = new Set<string>()
  const entries = Object.entries(members).map(([name, value]): [string, unknown] => {
    const known = names.get(folded(name))
    if (known === undefined) return [name, value]
    if (name !== known && name !== inSnakeCase(known)) throw refusal(`Write the member "${known}" like this.`)
    if (seen.has(known)) throw refusal(`"${known}" is given in two spellings: give it once.`)
    seen.add(known)
    return [known, value]
  })
  return Object.fromEntries(entries)
}

/** How a body spells a member, or how we do where it has none. */
export function spellingIn(members: Members, name: string): string {
  const snake = inSnakeCase(name)
  return Object.hasOwn(members, snake) ? snake : name
}

function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function folded(name: string): string {
  return name.replaceAll('_', '').toUpperCase().toLowerCase()
}
