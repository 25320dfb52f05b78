import { hash, randomBytes } from 'node:crypto'
import { Secret } from '../kernel/secret.ts'

/** What somebody is known by: the secret goes to them, only its hash is kept. 256 random bits need no slow hash. */
export type Token = { readonly secret: Secret; readonly hash: Buffer }

const RANDOM_BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export function newToken(): Token {
  const text = randomBytes(RANDOM_BYTES).toString('base64url')
  return { secret: new Secret(text), hash: hashOf(text) }
}

/** Null for what can't be a token of ours. */
export function hashOfToken(text: string): Buffer | null {
  return TOKEN.test(text) ? hashOf(text) : null
}

export function hashOf(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** By which a token is known again, as text. */
export function markOf(token: string): string {
  return hashOf(token).toString('base64url')
}
