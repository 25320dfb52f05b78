/** What the sandbox's platform begins its secrets with, so that those are found too which no test has seen. */
const PREFIXES = ['code_canary_', 'at_canary_', 'rt_canary_']

/** A text in every form that it can be had back from without knowing it. */
function formsOf(text: string): readonly string[] {
  const hex = Buffer.from(text).toString('hex')
  const percent = hex.replace(/../g, (byte) => `%${byte}`)
  // In Base64 of a longer text it looks one of three ways, by where it begins; the ends depend on what is around.
  const inBase64 = [0, 1, 2].map((before) => {
    const encoded = Buffer.from('\0'.repeat(before) + text).toString('base64')
    return encoded.slice(before === 0 ? 0 : 4, encoded.length - 4)
  })
  const inUrls = inBase64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_'))
  const reversed = [...text].reverse().join('')
  return [...new Set([text, reversed, hex, hex.toUpperCase(), percent, percent.toUpperCase(), ...inBase64, ...inUrls])]
}

/** What must be found nowhere: these secrets, and whatever looks like one of the platform's. */
export function needlesFor(secrets: Iterable<string>): readonly Buffer[] {
  return [...PREFIXES, ...secrets].flatMap(formsOf).map((form) => Buffer.from(form))
}
