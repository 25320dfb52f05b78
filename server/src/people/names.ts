import { invalidRequest } from '../kernel/fault.ts'
import { readAddress } from './mailbox.ts'

/** What people type about themselves and others, checked where it enters. */

const NAME_LIMIT = 100

/** Controls, and what ends a line or turns around the text that follows it. */
const OBEYED = /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]+/gu

/** A name as it is kept: trimmed, and without what a terminal, a page or a header would obey. */
export function readName(typed: string): string {
  const name = plain(typed)
  const { length } = [...name]
  if (length < 1 || length > NAME_LIMIT) throw invalidRequest(`The name must have 1 to ${NAME_LIMIT} characters.`)
  return name
}

/** A name that nobody can be asked to correct: as much of it as is kept. Null where that is nothing. */
export function cutName(given: string): string | null {
  const name = [...plain(given)].slice(0, NAME_LIMIT).join('').trim()
  return name === '' ? null : name
}

/** A text of several words as it is kept, on one line. */
export function plain(text: string): string {
  return text.toWellFormed().normalize('NFC').replaceAll(OBEYED, ' ').trim()
}

export function requireAddress(typed: string): string {
  const address = readAddress(typed)
  if (address === null) throw invalidRequest('This is not a valid e-mail address. Correct it.')
  return address
}
