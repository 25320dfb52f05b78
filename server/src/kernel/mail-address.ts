import { domainToASCII } from 'node:url'

const ADDRESS_LIMIT = 254
const LOCAL_LIMIT = 64
/** Words with single dots between them, neither quotes nor comments: what has those can be read as more than one address. */
const LOCAL = /^[^\s"(),.:;<>@[\]\\\p{C}]+(?:\.[^\s"(),.:;<>@[\]\\\p{C}]+)*$/u
const DOMAIN = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/
/** Letters, digits, dots and dashes of any script: of what else there is, a reader of URLs makes the end of the host. */
const WRITTEN_DOMAIN = /^[\p{L}\p{M}\p{N}.-]+$/u

/** Whether it is one address of mail, as RFC 5321 has them without quotes, with or without letters beyond ASCII (RFC 6531). */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@')
  const local = text.slice(0, Math.max(0, at))
  if (text.length > ADDRESS_LIMIT || local.length > LOCAL_LIMIT || !LOCAL.test(local)) return false
  // Readers of mail decode what stands between these.
  if (local.includes('=?')) return false
  const domain = text.slice(at + 1)
  return WRITTEN_DOMAIN.test(domain) && DOMAIN.test(domainToASCII(domain))
}
