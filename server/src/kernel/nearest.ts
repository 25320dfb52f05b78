/** The known name that shares the most pairs of letters with a mistyped one; undefined where none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const own = pairsOf(name)
  const likeness = (other: string) => {
    const pairs = pairsOf(other)
    return (2 * [...pairs].filter((pair) => own.has(pair)).length) / (own.size + pairs.size)
  }
  const best = known.map((other) => ({ other, score: likeness(other) })).sort((a, b) => b.score - a.score)[0]
  return best !== undefined && best.score > 0.6 ? best.other : undefined
}

function pairsOf(text: string): ReadonlySet<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)))
}
