import { createHmac, timingSafeEqual } from 'node:crypto'

/** Time-based one-time passwords (RFC 6238), as authenticator apps make them: SHA-1, six digits, steps of 30 seconds. */

export const KEY_BYTES = 20
const STEP_SECONDS = 30
const DIGITS = 6
/** Clocks of phones are a little off, and people type slowly. */
const STEPS_AROUND = [0, -1, 1]

type Form = { readonly algorithm?: 'sha1' | 'sha256' | 'sha512'; readonly digits?: number }

export function stepAt(seconds: number): number {
  return Math.floor(seconds / STEP_SECONDS)
}

export function codeOf(key: Buffer, step: number, { algorithm = 'sha1', digits = DIGITS }: Form = {}): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac(algorithm, key).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0xf
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The step whose code this is, among those around now; null where it is none, or one that was used before or is older than it. */
export function matchingStep(key: Buffer, typed: string, now: { seconds: number; usedStep: number }): number | null {
  const code = typed.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(code)) return null
  const steps = STEPS_AROUND.map((away) => stepAt(now.seconds) + away)
  const matching = steps.filter((step) => timingSafeEqual(Buffer.from(codeOf(key, step)), Buffer.from(code)))
  return matching.find((step) => step > now.usedStep) ?? null
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** As apps take a key that is typed (RFC 4648), without padding. */
export function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const groups = bits.match(/.{1,5}/g) ?? []
  return groups.map((group) => BASE32[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')
}

/** What an app reads from a QR code. */
export function keyUri(key: Buffer, { issuer, account }: { issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = new URLSearchParams({ secret: base32(key), issuer, algorithm: 'SHA1', digits: '6', period: '30' })
  return `otpauth://totp/${label}?${query}`
}
