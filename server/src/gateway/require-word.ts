import { invalidRequest } from '../kernel/fault.ts'

/** Throws where a header has another word than those that it may have: one that were ignored would do what its caller did not mean. */
export function requireWord(about: string, given: string | undefined, words: readonly string[]): void {
  if (given === undefined || words.includes(given)) return
  throw invalidRequest(`The header for ${about} must be ${words.join(' or ')}.`)
}
