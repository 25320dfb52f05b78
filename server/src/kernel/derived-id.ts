import { hash } from 'node:crypto'
import type { Id } from './ids.ts'

/** An id that follows from what it is of (UUIDv8, RFC 9562): whoever makes it, it is the same. Parts are told apart by their lengths. */
export function derivedId(...parts: readonly string[]): Id {
  const digest = hash('sha256', parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(''), 'hex')
  const variant = ((Number.parseInt(digest.slice(16, 18), 16) & 0x3f) | 0x80).toString(16)
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${variant}${digest.slice(18, 20)}-${digest.slice(20, 32)}`
}
