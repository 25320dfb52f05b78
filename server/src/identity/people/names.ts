import { Fault } from '../../kernel/fault.ts'
import { readAddress } from './mailbox.ts'

/** What people type about themselves and others, checked where it enters. */

const NAME_LIMIT = 100

/** A name as it is kept: trimmed, and without what a terminal or a header would obey. */
export function readName(typed: string): string {
  const name = typed
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
  const { length } = [...name]
  if (length < 1 || length > NAME_LIMIT)
    throw new Fault('invalid_request', { detail: `A name has 1 to ${NAME_LIMIT} characters.` })
  return name
}

export function requireAddress(typed: string): string {
  const address = readAddress(typed)
  if (address === null) throw new Fault('invalid_request', { detail: 'This is not an e-mail address.' })
  return address
}
