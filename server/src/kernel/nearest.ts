/** The known name that a mistyped one is one slip from, or shares the most pairs of letters with; undefined where none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const own = pairsOf(name)
  const likeness = (other: string) => {
    if (isOneSlip(name, other)) return 1
    const pairs = pairsOf(other)
    return (2 * [...pairs].filter((pair) => own.has(pair)).length) / (own.size + pairs.size)
  }
  const best = known.map((other) => ({ other, score: likeness(other) })).sort((a, b) => b.score - a.score)[0]
  return best !== undefined && best.score > 0.6 ? best.other : undefined
}

function pairsOf(text: string): ReadonlySet<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)))
}

/** In shorter words a slip is as likely to mean another one. */
const SHORTEST = 4

/** Whether one letter was left out, added or mistaken, or two were swapped. */
function isOneSlip(name: string, other: string): boolean {
  const shorter = Math.min(name.length, other.length)
  if (shorter < SHORTEST || Math.abs(name.length - other.length) > 1) return false
  let start = 0
  while (start < shorter && name[start] === other[start]) start += 1
  let end = 0
  while (end < shorter - start && name.at(-1 - end) === other.at(-1 - end)) end += 1
  const [left, right] = [name.slice(start, name.length - end), other.slice(start, other.length - end)]
  return left.length + right.length <= 2 || (left.length === 2 && right === `${left[1]}${left[0]}`)
}
