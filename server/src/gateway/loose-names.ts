import { unescape as unescapePercent } from 'node:querystring'
import { foldName } from '../catalogue/fold-name.ts'

/**
 * Names as the loosest of servers read them. Frameworks differ in which spellings they take for one name, and we do not know
 * which one an upstream uses: what could be read as a name that decides the price has to be written as that name.
 */

/** Some proxies decode what was decoded before them. */
const DECODED_TIMES = 3

/** Some servers part a query at a semicolon too. */
const SEMICOLON = /;/
/** To some it parts even where it is encoded; mostly it belongs to a value then, such as an address. */
const SEMICOLON_ENCODED = /;|%(?:25)*3b/i

/** Every name that a server could find in a query, as it is spelt there; with the semicolon that may begin or end it. */
export function spellingsIn(query: string): readonly string[] {
  return partedAt(SEMICOLON, query)
}

/** Those, and what stands behind an encoded semicolon. */
export function loosestSpellingsIn(query: string): readonly string[] {
  return partedAt(SEMICOLON_ENCODED, query)
}

function partedAt(semicolon: RegExp, query: string): readonly string[] {
  return query.split('&').flatMap((pair) => {
    const [first = '', ...others] = pair.split(semicolon).map((part) => part.split('=', 1)[0] ?? '')
    return others.length === 0 ? [first] : [`${first};`, ...others.map((name) => `;${name}`)]
  })
}

/** The same for all spellings of a name: what is folded everywhere, `name[0]`, `na+me`, `n%61me`, `;name`. */
export function foldParameter(spelling: string): string {
  const [, name = ''] = /^[\s?[;]*([^[\]=;\0]*)/.exec(decodedLoosely(spelling).normalize('NFKC')) ?? []
  return foldName(name)
}

/** As a server reads it behind proxies that have each decoded it. */
export function decodedLoosely(spelling: string): string {
  let text = spelling.replaceAll('+', ' ')
  for (let time = 0; time < DECODED_TIMES && text.includes('%'); time += 1) text = unescapePercent(text)
  return text
}
