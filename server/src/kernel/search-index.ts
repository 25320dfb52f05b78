/** Something that can be found, in fields that weigh differently. */
export type Entry = {
  readonly id: string
  readonly fields: readonly { readonly text: string; readonly weight: number }[]
}

export type Hit = { readonly id: string; readonly score: number }
export type SearchIndex = (query: string, most: number) => readonly Hit[]

/** Said in every question, so that they tell nothing apart. */
const STOP: ReadonlySet<string> = new Set(
  `a an the of to in on at for and or is are was were be been this that these those it its i me my we our you your he she they them their
  do does did can could will would should with from by as about into than then there here please want need give get let have has had some
  any so if but not no`.split(/\s+/),
)

/** How soon another mention of the same word stops counting, and how much longer texts are marked down. */
const K1 = 1.2
const B = 0.4
const MOST_WORDS = 60
const MOST_LETTERS = 40
export const WORD = /[\p{L}\p{N}#]+/gu

/** Words in their base form. Rough, and the same for what is searched and what is asked. */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    if (word.length <= MOST_LETTERS && !STOP.has(word)) words.push(stem(word))
  }
  return words
}

const ENDINGS: readonly (readonly [RegExp, string])[] = [
  [/(ss|us|is)$/, '$1'],
  [/ies$/, 'y'],
  [/(ch|sh|x|z|s)es$/, '$1'],
  [/s$/, ''],
]

function stem(word: string): string {
  if (word.length < 4) return word
  const [ending, by] = ENDINGS.find(([pattern]) => pattern.test(word)) ?? [/$/, '']
  const singular = word.replace(ending, by)
  const bare = singular.replace(/(?<=\p{L}{3})(ing|ed|er|e|ly)$/u, '')
  // A doubled letter before an ending belongs to the ending: trimmed, running.
  return bare.replace(/([bdgklmnprt])\1$/, '$1')
}

/** Where each word of a text, in its base form, stands first. */
export function firstPlacesOf(text: string): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const { 0: word, index } of text.matchAll(WORD))
    for (const base of wordsOf(word)) if (!places.has(base)) places.set(base, index)
  return places
}

export function createSearchIndex(entries: readonly Entry[]): SearchIndex {
  const { add, search } = startSearchIndex()
  for (const entry of entries) add(entry)
  return search
}

/**
 * Ranks by BM25 over weighted fields, in memory. A question looks at the entries that have one of its words, and at no other. Entries
 * are added one by one, so that whoever adds many can let others have a turn in between.
 */
export function startSearchIndex(): { readonly add: (entry: Entry) => void; readonly search: SearchIndex } {
  const documents: { readonly id: string; readonly length: number }[] = []
  const having = new Map<string, { readonly at: number; readonly weight: number }[]>()
  let lengths = 0

  function add({ id, fields }: Entry): void {
    const weights = new Map<string, number>()
    let length = 0
    for (const { text, weight } of fields)
      for (const word of new Set(wordsOf(text))) {
        weights.set(word, (weights.get(word) ?? 0) + weight)
        length += 1
      }
    const at = documents.push({ id, length }) - 1
    lengths += length
    for (const [word, weight] of weights) {
      const known = having.get(word)
      if (known === undefined) having.set(word, [{ at, weight }])
      else known.push({ at, weight })
    }
  }

  function search(query: string, most: number): readonly Hit[] {
    const meanLength = lengths / Math.max(1, documents.length)
    const scores = new Float64Array(documents.length)
    const hits: number[] = []
    for (const word of [...new Set(wordsOf(query))].slice(0, MOST_WORDS)) {
      const places = having.get(word) ?? []
      const rarity = Math.log(1 + (documents.length - places.length + 0.5) / (places.length + 0.5))
      for (const { at, weight } of places) {
        const damping = K1 * (1 - B + (B * (documents[at]?.length ?? 0)) / meanLength)
        const known = scores[at] ?? 0
        if (known === 0) hits.push(at)
        scores[at] = known + (rarity * weight * (K1 + 1)) / (weight + damping)
      }
    }
    return hits
      .map((at) => ({ id: documents[at]?.id ?? '', score: scores[at] ?? 0 }))
      .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
      .slice(0, most)
  }

  return { add, search }
}
