/** What fits on a line where it can be read. */
const LINE = 66

/** JSON as people read it: each value on one line where it fits there, else its members below each other. */
export function jsonText(value: unknown, indent = ''): string {
  const line = onOneLine(value)
  if (line.length <= LINE || typeof value !== 'object' || value === null) return line
  const inner = `${indent}  `
  const written = Array.isArray(value)
    ? value.map((one) => inner + jsonText(one, inner))
    : Object.entries(value).map(([name, one]) => `${inner}${JSON.stringify(name)}: ${jsonText(one, inner)}`)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  return `${open}\n${written.join(',\n')}\n${indent}${close}`
}

function onOneLine(value: unknown): string {
  return JSON.stringify(value).replace(/("(?:[^"\\]|\\.)*")|([,:])/g, (_, text, mark) => text ?? `${mark} `)
}
