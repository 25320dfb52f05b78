import { setImmediate } from 'node:timers/promises'
import type { Operation } from '../../catalogue/operation.ts'
import { FAULTS } from '../../kernel/fault.ts'
import { once } from '../../kernel/once.ts'
import { firstPlacesOf, startSearchIndex } from '../../kernel/search-index.ts'
import type { Guide } from '../guides/library.ts'

export const KINDS = ['guides', 'operations', 'models', 'errors'] as const
export type Kind = (typeof KINDS)[number]

/** Something that can be found on the website. */
export type Found = {
  readonly kind: Kind
  readonly href: string
  readonly title: string
  /** What stands below its title. */
  readonly where: string
  readonly text: string
  /** Where each word stands first in a text that is not shown whole: no request reads such a text. */
  readonly places?: ReadonlyMap<string, number>
  readonly isCode: boolean
  /** Callers read other pages first. */
  readonly isForOperators?: boolean
}

/** By which of its parts it is found best; a text that all of a kind have is not looked at. */
type Weights = { readonly title: number; readonly where: number; readonly text: number }
type Entry = { readonly found: Found; readonly weights: Weights }
type Search = (query: string) => readonly Found[]

type Named = { readonly id: string; readonly displayName?: string }
type ShownModel = Named & { readonly displayName: string }

export type IndexParts = {
  readonly guides: readonly Guide[]
  /** Those that are sold, from memory. */
  readonly operations: () => readonly Operation[]
  /** Those that are sold, from memory; none where they were never read. */
  readonly models: () => readonly ShownModel[]
}

const CODE: Weights = { title: 5, where: 2, text: 1 }
const MODEL_TEXT = 'Price, limits and history.'
/** Of an index: more are not shown. */
const MOST = 200
/** How many characters are read in one turn: some milliseconds of work. */
const LETTERS_A_TURN = 10_000

/** Looks for words in all of the website. What is part of the program is read once; what is sold is, when its names have changed. */
export function createSiteIndex({
  guides,
  operations,
  models,
}: IndexParts): (query: string) => Promise<readonly Found[]> {
  const fixed = once(() => indexOf(fixedEntries(guides)))
  const ofOperations = keptIndex(operations, operationOf)
  const ofModels = keptIndex(models, modelOf)

  return async (query) => {
    const searches = [await fixed(), await ofOperations(), await ofModels()]
    const found = searches.flatMap((search) => search(query))
    return [
      ...found.filter((one) => one.isForOperators !== true),
      ...found.filter((one) => one.isForOperators === true),
    ]
  }
}

/** Made anew when other things have become known, by their names. */
function keptIndex<One extends Named>(now: () => readonly One[], entryOf: (one: One) => Entry): () => Promise<Search> {
  let known: readonly One[] = []
  let search: Promise<Search> | undefined
  return () => {
    const current = now()
    // A price book that was read again has another list of the same.
    if (search === undefined || !haveSameNames(current, known)) search = indexOf(current.map(entryOf))
    known = current
    return search
  }
}

function haveSameNames(some: readonly Named[], others: readonly Named[]): boolean {
  if (some === others) return true
  return (
    some.length === others.length &&
    some.every(({ id, displayName }, at) => id === others[at]?.id && displayName === others[at].displayName)
  )
}

/** Calls that the same process serves do not wait for all of it: it is read in many turns. */
async function indexOf(entries: Iterable<Entry>): Promise<Search> {
  const { add, search } = startSearchIndex()
  const all: Found[] = []
  let letters = 0
  for (const { found, weights } of entries) {
    const { title, where, text } = found
    const fields = [
      { text: `${title} ${title.replaceAll(/[_/.-]/g, ' ')}`, weight: weights.title },
      { text: where, weight: weights.where },
      { text, weight: weights.text },
    ].filter(({ weight }) => weight > 0)
    add({ id: String(all.length), fields })
    all.push(found)
    letters += fields.reduce((sum, field) => sum + field.text.length, 0)
    if (letters < LETTERS_A_TURN) continue
    letters = 0
    await setImmediate()
  }
  return (query) => search(query, MOST).flatMap(({ id }) => all[Number(id)] ?? [])
}

/** One by one, as they are asked for: to render a guide is work too. */
function* fixedEntries(guides: readonly Guide[]): Iterable<Entry> {
  for (const guide of guides) yield* partsOf(guide)
  yield* errors()
}

function* partsOf({ name, path, title, note, rendered, isForOperators }: Guide): Iterable<Entry> {
  for (const { id, depth, title: heading, text } of rendered().parts) {
    // What is sold changes, and is found by itself.
    if (name === 'catalogue' && depth > 1) continue
    const found: Found = {
      kind: 'guides',
      href: depth === 1 ? path : `${path}#${id}`,
      title,
      where: depth === 1 ? note : heading,
      text,
      places: firstPlacesOf(text),
      isCode: false,
      isForOperators,
    }
    // Every part has the title of its guide; what tells it apart is its own heading.
    yield { found, weights: depth === 1 ? { title: 6, where: 3, text: 1 } : { title: 0.2, where: 5, text: 1 } }
  }
}

function operationOf({ id, summary, method, path, category }: Operation): Entry {
  const found = {
    kind: 'operations',
    href: `/catalogue/${id}`,
    title: id,
    where: `${method} ${path}`,
    text: `${summary}. ${category}`,
    isCode: true,
  } as const
  return { found, weights: CODE }
}

function modelOf({ id, displayName }: ShownModel): Entry {
  const where = displayName === id ? 'A model' : displayName
  return {
    found: { kind: 'models', href: `/models/${id}`, title: id, where, text: MODEL_TEXT, isCode: true },
    weights: { ...CODE, text: 0 },
  }
}

function errors(): readonly Entry[] {
  return Object.entries(FAULTS).map(([code, { status, text }]) => ({
    found: { kind: 'errors', href: `/docs/errors#${code}`, title: `${status} ${code}`, where: '', text, isCode: true },
    weights: CODE,
  }))
}
