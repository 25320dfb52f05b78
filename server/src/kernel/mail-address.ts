import { domainToASCII } from 'node:url'

const ADDRESS_LIMIT = 254
const LOCAL_LIMIT = 64
/** Neither quoted parts nor comments: what has them is nobody's mailbox, and can be read as more than one address. */
const LOCAL = /^[^\s"(),:;<>@[\]\\\p{C}]+$/u
const DOMAIN = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/

/** Whether it is one address of mail, as RFC 5321 has them without quotes, with or without letters beyond ASCII (RFC 6531). */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@')
  const local = text.slice(0, Math.max(0, at))
  if (text.length > ADDRESS_LIMIT || local.length > LOCAL_LIMIT || !LOCAL.test(local)) return false
  return DOMAIN.test(domainToASCII(text.slice(at + 1)))
}
