import { foldName } from './fold-name.ts'
import type { Need } from './price-classes.ts'

/**
 * Tables of the members that a request may have, and what becomes of each. What no table knows is not sent: an upstream
 * might act on it, and nobody would have paid for that.
 */
export type Standing =
  /** It changes nothing that is paid for. */
  | { readonly is: 'neutral' }
  /** It is in the price of a call, in the way that it says. */
  | { readonly is: 'priced'; readonly how: string }
  | { readonly is: 'refused'; readonly why: string }
  /** It is refused, unless the model has a price of what it asks for. */
  | { readonly is: 'needing'; readonly need: Need; readonly why: string }
  /**
   * Only these values cost nothing beyond what is metered. A list of them is taken where lists are meant. Further ones are taken
   * where the model has a price of what they ask for.
   */
  | {
      readonly is: 'limited'
      readonly to: Values
      readonly why: string
      readonly isList?: true
      readonly priced?: Readonly<Record<string, Need>>
    }

/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>

type Values = readonly (string | boolean)[]

/** As in https://json-schema.org/draft/2020-12. */
export type JsonSchema = { readonly [keyword: string]: unknown }

export type Member = Standing & {
  /** What its objects have; where there is none, it is free-form and nobody looks into it. */
  readonly within?: () => Shape
  /** An object; a list of objects; or either of them. Without it, anything may stand there. */
  readonly form?: 'object' | 'list' | 'objects'
  /** What whoever reads it takes, where somebody does, as a JSON Schema. It is for those who write requests: nothing is refused by it. */
  readonly json?: JsonSchema
}

export type Shape = Table | Choice

export type Table = {
  readonly title: string
  readonly members: Readonly<Record<string, Member>>
  readonly spelling: Spelling
  /** Why any other member is refused on every route; unknown ones are refused on most where there is none. */
  readonly others: string | undefined
  /** Those without which nobody can read the request, for those who write one, as above. */
  readonly required: readonly string[]
  /** Its objects are refused, in these words, unless the model has a price of what they ask for. */
  readonly needs: { readonly need: Need; readonly why: string } | undefined
  /** By every spelling that is taken. */
  readonly bySpelling: ReadonlyMap<string, Spelt>
  /** The documented name by what is left of it when it is folded. */
  readonly byFold: ReadonlyMap<string, string>
}

/** Objects of several kinds, told apart by one of their members. */
export type Choice = {
  readonly title: string
  readonly by: string
  /** The kind that a value of that member names, where it is not the value itself. */
  readonly kindOf: (value: unknown) => unknown
  /** Whether a kind may have a date behind its name, and which it is where the member is left out: what kindOf does, in short. */
  readonly isDated?: true
  readonly whenLeftOut?: string
  /** The table of each kind, or why it is refused. */
  readonly kinds: Readonly<Record<string, Table | string>>
  /** Why other kinds are refused on every route; unknown ones are refused on most where there is none. */
  readonly others: string | undefined
}

/** Gemini takes each name in two spellings: `maxOutputTokens` and `max_output_tokens`. */
type Spelling = 'exact' | 'camel or snake'

type Spelt = { readonly name: string; readonly member: Member; readonly twins: readonly string[] }

export const neutral = (within?: () => Shape): Member => ({ is: 'neutral', ...(within && { within }) })
export const priced = (how: string, within?: () => Shape): Member => ({ is: 'priced', how, ...(within && { within }) })
export const refused = (why: string): Member => ({ is: 'refused', why })
export const limited = (to: Values, why: string, further?: Readonly<Record<string, Need>>): Member => ({
  ...{ is: 'limited', to, why },
  ...(further && { priced: further }),
})
export const needing = (need: Need, why: string, within?: () => Shape): Member => ({
  ...{ is: 'needing', need, why },
  ...(within && { within }),
})
export const limitedEach = (to: Values, why: string, further?: Readonly<Record<string, Need>>): Member => ({
  ...{ is: 'limited', to, why, isList: true },
  ...(further && { priced: further }),
})
export const formed = (form: NonNullable<Member['form']>, member: Member): Member => ({ ...member, form })
export const typed = (json: JsonSchema, member: Member): Member => ({ ...member, json })

type TableOptions = {
  readonly spelling?: Spelling
  readonly others?: string
  readonly required?: readonly string[]
  readonly needs?: Table['needs']
}

export function memberTable(
  title: string,
  members: Readonly<Record<string, Member>>,
  { spelling = 'exact', others, required = [], needs }: TableOptions = {},
): Table {
  const bySpelling = new Map<string, Spelt>()
  const byFold = new Map<string, string>()
  const spellings = (name: string) => (spelling === 'exact' ? [name] : [...new Set([name, inSnakeCase(name)])])
  const names = Object.keys(members)
  for (const [name, member] of Object.entries(members)) {
    const same = names.filter((other) => foldName(other) === foldName(name)).flatMap(spellings)
    for (const one of spellings(name)) bySpelling.set(one, { name, member, twins: same.filter((it) => it !== one) })
    byFold.set(foldName(name), name)
  }
  return { title, members, spelling, others, required, needs, bySpelling, byFold }
}

export function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** What is to be said of the members of a request. */
export type Findings = {
  /** The paths of the first members that no table knows. */
  readonly unknown: readonly string[]
  /** The first that is refused on every route: where it stands and what is wrong with it. */
  readonly refused: { readonly path: string; readonly words: string } | undefined
  /** What it asks for that has a price of its own. */
  readonly needs: ReadonlySet<Need>
}

type Found = {
  readonly met: ReadonlySet<Need>
  readonly needs: Set<Need>
  unknown: string[]
  refused: { path: string; words: string } | undefined
}
const NOTHING_MET: ReadonlySet<Need> = new Set()

/** As many unknown names are told at once, and so much of each. */
export const UNKNOWN_MOST = 8
export const NAME_LENGTH = 64

/** Reads the names of all objects that the tables describe, and of none that is free-form. What is needed and not met is refused. */
export function inspectMembers(value: unknown, shape: Shape, met = NOTHING_MET): Findings {
  const found: Found = { met, needs: new Set(), unknown: [], refused: undefined }
  inspect(value, shape, found)
  return found
}

/** As deep as the tables go at the most, or as the body is nested, which has a limit. */
function inspect(value: unknown, shape: Shape, found: Found): void {
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && found.refused === undefined; at += 1) {
      const before = found.unknown.length
      inspect(value[at], shape, found)
      tellWhere(found, before, `[${at}]`)
    }
    return
  }
  if (!isMembers(value)) return
  const table = 'kinds' in shape ? tableOfKind(value, shape, found) : shape
  if (table === undefined) return
  let strangers: Set<string> | undefined
  for (const name of Object.keys(value)) {
    const spelt = table.bySpelling.get(name)
    if (spelt === undefined) {
      strangers ??= new Set()
      judgeStranger(name, table, strangers, found)
    } else judgeMember(value, name, spelt, found)
    if (found.refused !== undefined) return
  }
}

/** Paths are put together on the way back: what was found since then stands within this. */
function tellWhere(found: Found, before: number, prefix: string): void {
  if (found.refused !== undefined) found.refused.path = join(prefix, found.refused.path)
  for (let at = before; at < found.unknown.length; at += 1) found.unknown[at] = join(prefix, found.unknown[at] ?? '')
}

function join(prefix: string, path: string): string {
  return path === '' || path.startsWith('[') ? prefix + path : `${prefix}.${path}`
}

function tableOfKind(value: Members, choice: Choice, found: Found): Table | undefined {
  const kind = choice.kindOf(value[choice.by])
  const table = typeof kind === 'string' && Object.hasOwn(choice.kinds, kind) ? choice.kinds[kind] : undefined
  if (typeof table === 'object' && isMet(table.needs, found)) return table
  const shown = JSON.stringify(value[choice.by] ?? null).slice(0, NAME_LENGTH)
  const why =
    (typeof table === 'object' ? table.needs?.why : table) ?? reasonAgainst(kind, value, choice) ?? choice.others
  if (why !== undefined) found.refused = { path: choice.by, words: `may not be ${shown}: ${why}` }
  else if (found.unknown.length < UNKNOWN_MOST) found.unknown.push(`${choice.by}: ${shown}`)
  return undefined
}

/** Some upstream may take it for a kind that we know: by another spelling, or by a member that only such a kind has. */
function reasonAgainst(kind: unknown, value: Members, { kinds }: Choice): string | undefined {
  const folded = typeof kind === 'string' ? foldName(kind) : undefined
  const names = new Set(Object.keys(value).map(foldName))
  for (const [known, table] of Object.entries(kinds)) {
    const one = foldName(known)
    const refused = typeof table === 'string' ? table : table.needs?.why
    if (refused !== undefined && (one === folded || names.has(one))) return refused
    if (one === folded) return `write it "${known}".`
  }
  return undefined
}

/** Whether the model has a price of it; then it is noted. */
function isMet(needed: Table['needs'], { met, needs }: Found): boolean {
  if (needed === undefined) return true
  if (!met.has(needed.need)) return false
  needs.add(needed.need)
  return true
}

function judgeStranger(name: string, table: Table, strangers: Set<string>, found: Found): void {
  const folded = foldName(name)
  const known = table.byFold.get(folded)
  const path = name.slice(0, NAME_LENGTH)
  if (known !== undefined) found.refused = { path, words: `is not supported in this spelling. Write it "${known}".` }
  else if (strangers.has(folded))
    found.refused = { path, words: 'is a duplicate key in another spelling. Send it once.' }
  else if (table.others !== undefined) found.refused = { path, words: `is not supported: ${table.others}` }
  else {
    strangers.add(folded)
    if (found.unknown.length < UNKNOWN_MOST) found.unknown.push(path)
  }
}

function judgeMember(value: Members, spelling: string, { name, member, twins }: Spelt, found: Found): void {
  for (const twin of twins) {
    if (Object.hasOwn(value, twin)) found.refused = { path: name, words: 'is given in two spellings. Send it once.' }
  }
  const given = value[spelling]
  if (given === undefined || given === null || found.refused !== undefined) return
  if (member.is === 'refused' || (member.is === 'needing' && !isMet(member, found)))
    found.refused = { path: name, words: `is not supported: ${member.why}` }
  else if (member.is === 'limited') {
    const { to, isList } = member
    const items: readonly unknown[] = isList && Array.isArray(given) ? given : [given]
    if (items.every((item) => to.some((one) => one === item) || isFurther(item, member, found))) return
    const rule = to.every((one) => one === false) ? 'is not supported' : `must be ${to.map(quoted).join(' or ')}`
    found.refused = { path: name, words: `${rule}: ${member.why}` }
  } else if (member.within !== undefined) {
    const wrong = member.form === undefined ? undefined : formFault(given, member.form)
    const before = found.unknown.length
    if (wrong !== undefined) found.refused = { path: '', words: wrong }
    else inspect(given, member.within(), found)
    tellWhere(found, before, name)
  }
}

function isFurther(value: unknown, { priced: further = {}, why }: Limited, found: Found): boolean {
  const need = typeof value === 'string' && Object.hasOwn(further, value) ? further[value] : undefined
  return need !== undefined && isMet({ need, why }, found)
}

type Limited = Extract<Standing, { is: 'limited' }>

function quoted(value: string | boolean): string {
  return JSON.stringify(value)
}

function formFault(value: unknown, form: NonNullable<Member['form']>): string | undefined {
  if (form === 'list' && !Array.isArray(value)) return 'must be an array.'
  if (form === 'object' || !Array.isArray(value)) return isMembers(value) ? undefined : 'must be an object.'
  return value.every(isMembers) ? undefined : 'must have objects only.'
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
