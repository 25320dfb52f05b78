import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { Secret } from '../kernel/secret.ts'

/**
 * A key reads `fb_live_<shard><id>_<secret><checksum>`: three hexadecimal digits of the shard, the id without its dashes, 256 random
 * bits and a checksum, by which scanners recognise a leaked key and we refuse a mistyped one without a look-up. An access token
 * reads `fb_at_…`, with the id of its grant.
 */
export type Parsed = {
  readonly id: Id
  /** A key says its mode; that of an access token is its grant's. */
  readonly kind: Mode | 'at'
  readonly hash: Buffer
}

const FORM = /^fb_(live|test|at)_[0-9a-f]{3}([0-9a-f]{32})_[0-9A-Za-z]{43}([0-9A-Za-z]{6})$/
/** Looser than the form: a key that was cut or mistyped still tells most of its secret. */
const ANYWHERE = /fb_(?:live|test|at)_[0-9a-f]{35}_[0-9a-z]{8}/i
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_BYTES = 32
const SECRET_DIGITS = 43
const CHECKSUM_DIGITS = 6
const HASH_BYTES = 32

/** What is meant as an access token, whether or not it is one. */
export function isLikeAccessToken(credential: Secret): boolean {
  return credential.reveal().startsWith('fb_at_')
}

export function parseCredential(credential: Secret): Parsed | undefined {
  const text = credential.reveal()
  const form = FORM.exec(text)
  if (form === null) return undefined
  const [, kind, hex = '', checksum] = form
  if (checksum !== checksumOf(text.slice(0, -CHECKSUM_DIGITS))) return undefined
  return { id: idOf(hex), kind: kind === 'live' || kind === 'test' ? kind : 'at', hash: hashOf(credential) }
}

/** Whether a text has a key or an access token in it, or most of one. */
export function holdsKey(text: string): boolean {
  return ANYWHERE.test(text)
}

export function makeKey(id: Id, mode: Mode, shard: number): Secret {
  return makeSecret(mode, id, shard)
}

export function makeAccessToken(grantId: Id, shard: number): Secret {
  return makeSecret('at', grantId, shard)
}

function makeSecret(kind: Mode | 'at', id: Id, shard: number): Secret {
  const place = shard.toString(16).padStart(3, '0') + id.replaceAll('-', '')
  const secret = inDigits(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_DIGITS)
  const text = `fb_${kind}_${place}_${secret}`
  return new Secret(text + checksumOf(text))
}

/** All that is ever stored of a key or a token. */
export function hashOf(credential: Secret): Buffer {
  // A part of the pool of small buffers would keep all of the pool, and keys are remembered by the thousand.
  const bytes = Buffer.allocUnsafeSlow(HASH_BYTES)
  bytes.write(printOf(credential), 'binary')
  return bytes
}

/** The same as text, a character for each byte, by which memory finds it. The same bytes asked for as a buffer take five times as long. */
export function printOf(credential: Secret): string {
  return hash('sha256', credential.reveal(), 'binary')
}

function checksumOf(text: string): string {
  let digits = ''
  for (let rest = crc32(text); digits.length < CHECKSUM_DIGITS; rest = Math.floor(rest / DIGITS.length))
    digits = DIGITS.charAt(rest % DIGITS.length) + digits
  return digits
}

function inDigits(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text
  return text
}

function idOf(hex: string): Id {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
