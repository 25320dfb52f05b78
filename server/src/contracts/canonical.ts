import { hash } from 'node:crypto'

/**
 * One spelling of a JSON value, so that equal documents have equal bytes: UTF-8, no white space, the names of an object in the order of
 * their UTF-16 code units (as RFC 8785 has it), every number a whole one that JavaScript holds exactly.
 */
export function canonicalBytes(value: unknown): Buffer {
  return Buffer.from(canonicalText(value, []), 'utf8')
}

export function sha256(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex')
}

/** `path` is where it stands; it is put together for an error alone, since a contract has some hundred thousand values. */
function canonicalText(value: unknown, path: (string | number)[]): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return textOf(value, path)
  if (typeof value === 'number') return wholeNumber(value, path)
  if (typeof value !== 'object') throw new Error(`${shown(path)} is no JSON: ${typeof value}`)
  let text = ''
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) text += `${at === 0 ? '' : ','}${memberText(at, item, path)}`
    return `[${text}]`
  }
  for (const name of Object.keys(value).sort()) {
    const member = value[name as keyof typeof value]
    // What is undefined is not there, as in JSON.stringify.
    if (member === undefined) continue
    text += `${text === '' ? '' : ','}${textOf(name, path)}:${memberText(name, member, path)}`
  }
  return `{${text}}`
}

function memberText(name: string | number, member: unknown, path: (string | number)[]): string {
  path.push(name)
  const text = canonicalText(member, path)
  path.pop()
  return text
}

function shown(path: readonly (string | number)[]): string {
  return `$${path.map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`)).join('')}`
}

function textOf(text: string, path: readonly (string | number)[]): string {
  // Half a character has no bytes in UTF-8, and would be replaced by another.
  if (!text.isWellFormed()) throw new Error(`${shown(path)} has half a character in it`)
  return JSON.stringify(text)
}

/** Programs write one float in many ways. None is needed: amounts are texts. */
function wholeNumber(value: number, path: readonly (string | number)[]): string {
  if (!Number.isSafeInteger(value) || Object.is(value, -0))
    throw new Error(`${shown(path)} is no whole number: ${value}`)
  return String(value)
}
