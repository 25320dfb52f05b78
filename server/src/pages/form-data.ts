/** A form as browsers send it: each of its fields once. */
export type Form = ReadonlyMap<string, string>

const FORM_FIELDS = 100

/** Undefined for what two readers could take for two things. */
export function parseForm(bytes: Buffer): Form | undefined {
  const form = new Map<string, string>()
  const text = bytes.toString('latin1')
  if (text === '') return form
  const pairs = text.split('&', FORM_FIELDS + 1)
  if (pairs.length > FORM_FIELDS) return undefined
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const name = decoded(at === -1 ? pair : pair.slice(0, at))
    const value = at === -1 ? '' : decoded(pair.slice(at + 1))
    if (name === undefined || value === undefined || form.has(name)) return undefined
    form.set(name, value)
  }
  return form
}

function decoded(text: string): string | undefined {
  if (/[^!-~]/.test(text)) return undefined
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
