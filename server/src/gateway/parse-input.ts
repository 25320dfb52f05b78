import type { DataOperation } from '../catalogue/operation.ts'
import { invalidRequest } from '../kernel/fault.ts'
import { inputFault } from '../wording/input-fault.ts'
import { foldParameter, loosestSpellingsIn, spellingsIn } from './loose-names.ts'

type Given = {
  readonly query: string
  readonly readBody: () => unknown
}

const SPELLING_LIMIT = 100
/** No URL has them, and no upstream is sent them: some servers read them as something else, or nothing after them. */
const NOT_IN_A_QUERY = /["\\#]/

/** The input of an operation as its schema has it, or the fault that says what is wrong with it. */
export function parseInput(operation: DataOperation, { query, readBody }: Given): unknown {
  if (NOT_IN_A_QUERY.test(query)) throw invalidRequest('The characters ", \\ and # in a query must be percent-encoded.')
  if (operation.isBodyOnly && query !== '')
    throw invalidRequest('This operation takes no query parameters. Send them in the body.')
  const isInQuery = operation.method === 'GET'
  const given = isInQuery ? parameters(query) : readBody()
  requirePlainNames(operation, query, isInQuery ? {} : given)
  const meant = withoutNulls(given)
  const { success, data, error } = operation.input.safeParse(meant)
  if (success) return data
  throw inputFault(error, meant)
}

/** Many clients write null for what they leave out. */
function withoutNulls(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  const members = Object.entries(given)
  return members.some(([, value]) => value === null)
    ? Object.fromEntries(members.filter(([, value]) => value !== null))
    : given
}

/**
 * Everything else passes as it came, but a name that decides the price has to mean the same to every server: it stands once, as
 * it is spelt in the operation. One that is refused is refused however it is spelt, also where it may be part of a value.
 */
function requirePlainNames({ refuses = {}, priced = {}, method }: DataOperation, query: string, body: unknown): void {
  const names = [...Object.keys(refuses), ...Object.keys(priced)]
  if (names.length === 0) return
  const [inQuery, inBody] = [spellingsIn(query), namesIn(body)]
  const found = Map.groupBy([...inQuery, ...inBody], foldParameter)
  const foundLoosely = Map.groupBy([...loosestSpellingsIn(query), ...inBody], foldParameter)
  for (const name of names) {
    const why = refuses[name]
    const spellings = (why === undefined ? found : foundLoosely).get(foldParameter(name)) ?? []
    const [spelling = name] = spellings.filter((one) => one !== name)
    if (why !== undefined && spellings.length > 0)
      throw invalidRequest(`${readAs(spelling, name)} is not supported: ${why}.`, name)
    const example = priced[name]
    if (example === undefined) continue
    const write = `Give it once, written as in ${example}.`
    if (spelling !== name) throw invalidRequest(`${readAs(spelling, name)} sets the price. ${write}`, name)
    if (spellings.length > 1)
      throw invalidRequest(`"${name}" is given ${spellings.length} times and sets the price. ${write}`, name)
    if (method === 'POST' && inQuery.includes(name))
      throw invalidRequest(`"${name}" sets the price and belongs in the body. ${write}`, name)
  }
}

function namesIn(body: unknown): readonly string[] {
  return typeof body === 'object' && body !== null ? Object.keys(body) : []
}

function readAs(spelling: string, name: string): string {
  return spelling === name ? `"${name}"` : `"${spelling.slice(0, SPELLING_LIMIT)}" can be read as "${name}", which`
}

/** What is given once is a text, what is given several times a list. */
function parameters(query: string): Record<string, string | string[]> {
  // Of a question mark at the beginning it would make nothing, and an upstream part of the first name.
  const search = new URLSearchParams(`?${query}`)
  // In one pass: to ask for the values of each name would read the whole query for each.
  const given = Map.groupBy(search, ([name]) => name)
  return Object.fromEntries([...given].map(([name, pairs]) => [name, oneOrAll(pairs.map(([, value]) => value))]))
}

function oneOrAll(values: readonly string[]): string | string[] {
  const [first = '', ...others] = values
  return others.length === 0 ? first : [first, ...others]
}
