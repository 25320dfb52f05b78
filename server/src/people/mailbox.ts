import { domainToASCII } from 'node:url'
import { hashOf } from './tokens.ts'

/** E-mail addresses: how one is read, and which of them are one mailbox. */

const ADDRESS_LIMIT = 254
/** A domain may be shorter in ASCII than as it is typed. */
const TYPED_LIMIT = 1_000
/** The characters of RFC 5322 without quotes; dots are judged apart. */
const LOCAL_PART = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const LOCAL_PART_LIMIT = 64
const DOMAIN_AS_TYPED = /^[\p{L}\p{M}\p{N}.-]+$/u
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$/

/** An address as it is kept: in lower case, its domain in ASCII. Null for what is none. */
export function readAddress(text: string): string | null {
  if (text.length > TYPED_LIMIT) return null
  const typed = text.trim()
  const at = typed.lastIndexOf('@')
  const [local, domain] = [typed.slice(0, Math.max(0, at)).toLowerCase(), domainOf(typed.slice(at + 1))]
  if (domain === null || local.length > LOCAL_PART_LIMIT || !LOCAL_PART.test(local)) return null
  const address = `${local}@${domain}`
  return address.length > ADDRESS_LIMIT ? null : address
}

function domainOf(typed: string): string | null {
  if (!DOMAIN_AS_TYPED.test(typed)) return null
  const domain = domainToASCII(typed.toLowerCase())
  return DOMAIN.test(domain) ? domain : null
}

const DOTLESS = ['gmail.com']
const SAME_AS: Readonly<Record<string, string>> = { 'googlemail.com': 'gmail.com' }

/** The mailbox that an address reaches: what stands behind `+` is a label, and some providers ignore dots. */
export function foldMailbox(address: string): string {
  const [local = '', typed = ''] = splitAddress(address)
  const domain = SAME_AS[typed] ?? typed
  const plain = local.split('+', 1)[0] ?? ''
  const folded = DOTLESS.includes(domain) ? plain.replaceAll('.', '') : plain
  // Somebody whose address begins with + has a mailbox all the same.
  return `${folded === '' ? local : folded}@${domain}`
}

export function splitAddress(address: string): readonly [local: string, domain: string] {
  const at = address.lastIndexOf('@')
  return [address.slice(0, at), address.slice(at + 1)]
}

/** By which a mailbox is known where its address need not be. */
export function mailboxHash(address: string): Buffer {
  return hashOf(foldMailbox(address))
}
