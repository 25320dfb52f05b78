/** A table for a terminal: each column as wide as its widest cell. Numbers stand to the right, where the heading begins with a space. */
export function inColumns(heading: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [heading.map((cell) => cell.trim()), ...rows]
  const widths = heading.map((_, at) => Math.max(...all.map((row) => (row[at] ?? '').length)))
  return all.map((row) =>
    row
      .map((cell, at) => (heading[at]?.startsWith(' ') ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** In the two largest units: `3 d 4 h`, `12 s`. */
export function ageText(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ] as const
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first === -1) return '0 s'
  let left = Math.floor(seconds)
  return units
    .slice(first, first + 2)
    .flatMap(([unit, size]) => {
      const count = Math.floor(left / size)
      left -= count * size
      return count === 0 ? [] : [`${count} ${unit}`]
    })
    .join(' ')
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? '' : `${((100 * part) / whole).toFixed(1)} %`
}
