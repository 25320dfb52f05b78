/**
 * One spelling of a JSON value, so that equal documents have equal bytes: UTF-8, no white space, the names of an object in the order of
 * their UTF-16 code units (as RFC 8785 has it), every number a whole one that JavaScript holds exactly.
 */
export function canonicalBytes(value: unknown): Buffer {
  return Buffer.from(canonicalText(value, '$'), 'utf8')
}

function canonicalText(value: unknown, place: string): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return textOf(value, place)
  if (typeof value === 'number') return wholeNumber(value, place)
  if (Array.isArray(value)) return `[${value.map((item, at) => canonicalText(item, `${place}[${at}]`)).join(',')}]`
  if (typeof value !== 'object') throw new Error(`${place} is no JSON: ${typeof value}`)
  const members = Object.entries(value)
    // What is undefined is not there, as in JSON.stringify.
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${textOf(name, place)}:${canonicalText(member, `${place}.${name}`)}`)
  return `{${members.join(',')}}`
}

function textOf(text: string, place: string): string {
  // Half a character has no bytes in UTF-8, and would be replaced by another.
  if (!text.isWellFormed()) throw new Error(`${place} has half a character in it`)
  return JSON.stringify(text)
}

/** Programs write one float in many ways. None is needed: amounts are texts. */
function wholeNumber(value: number, place: string): string {
  if (!Number.isSafeInteger(value) || Object.is(value, -0)) throw new Error(`${place} is no whole number: ${value}`)
  return String(value)
}
