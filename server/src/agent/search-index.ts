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

/** Words in their base form. Rough, and the same for what is searched and what is asked. */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}#]+/gu)) {
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

/**
 * Ranks by BM25 over weighted fields. All of it is in memory and every entry is looked at for every question: right for hundreds, and to
 * be replaced where there are tens of thousands.
 */
export function createSearchIndex(entries: readonly Entry[]): SearchIndex {
  const documents = entries.map(({ id, fields }) => {
    const weights = new Map<string, number>()
    let length = 0
    for (const { text, weight } of fields)
      for (const word of new Set(wordsOf(text))) {
        weights.set(word, (weights.get(word) ?? 0) + weight)
        length += 1
      }
    return { id, weights, length }
  })
  const meanLength = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length)
  const found = new Map<string, number>()
  for (const { weights } of documents) for (const word of weights.keys()) found.set(word, (found.get(word) ?? 0) + 1)
  const rarity = (word: string) => {
    const count = found.get(word) ?? 0
    return count === 0 ? 0 : Math.log(1 + (documents.length - count + 0.5) / (count + 0.5))
  }

  return (query, most) => {
    const asked = [...new Set(wordsOf(query))].slice(0, MOST_WORDS).map((word) => ({ word, rarity: rarity(word) }))
    return documents
      .map(({ id, weights, length }) => {
        const damping = K1 * (1 - B + (B * length) / meanLength)
        let score = 0
        for (const { word, rarity } of asked) {
          const weight = weights.get(word) ?? 0
          score += (rarity * weight * (K1 + 1)) / (weight + damping)
        }
        return { id, score }
      })
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
      .slice(0, most)
  }
}
