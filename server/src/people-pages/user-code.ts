/** What a device shows and a person types: eight letters without vowels, in two halves. */
const LETTERS = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/

/** As it is kept, whatever the person put between; null for what can be none. */
export function readUserCode(typed: string): string | null {
  const code = typed.toUpperCase().replaceAll(/[\s-]/g, '')
  return LETTERS.test(code) ? code : null
}

export function shownUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`
}
