import { createCipheriv, createDecipheriv, createSecretKey, hash, type KeyObject, randomBytes } from 'node:crypto'
import { Secret } from './secret.ts'

/** Keeps secrets in places that others can read, such as a table: what is sealed is readable with the master key alone. */
export type Seal = {
  /** `boundTo` says what the secret is for. It is not kept inside, so that it can't be opened as anything else's. */
  readonly seal: (plain: Secret, boundTo: string) => Buffer
  /** Throws a SealError where it is not sealed by us, with our keys, for that. */
  readonly open: (sealed: Buffer, boundTo: string) => Secret
  /** Whether it was sealed with the current key, so that the one before it is not needed for it. */
  readonly isCurrent: (sealed: Buffer) => boolean
  /** The names of the keys that it opens with, the current one first. Nobody can tell a key by its name. */
  readonly keyNames: readonly string[]
}

export class SealError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SealError'
  }
}

type Keys = {
  /** 32 bytes in base64. */
  readonly current: Secret
  /** The one before it, with which nothing is sealed any more and everything can still be opened. */
  readonly previous?: Secret
}

type Key = { readonly id: Buffer; readonly key: KeyObject }

const VERSION = 1
const KEY_BYTES = 32
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const NONCE_AT = 1 + KEY_ID_BYTES
const TEXT_AT = NONCE_AT + NONCE_BYTES
const CIPHER = 'aes-256-gcm'

/** A sealed secret is: version (1 byte), id of the key (8), nonce (12), ciphertext, tag (16). */
export function createSeal({ current, previous }: Keys): Seal {
  const own = readKey(current)
  const keys = previous === undefined ? [own] : [own, readKey(previous)]
  return {
    seal(plain, boundTo) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, own.key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(boundTo))
      const text = [cipher.update(plain.reveal(), 'utf8'), cipher.final()]
      return Buffer.concat([Buffer.of(VERSION), own.id, nonce, ...text, cipher.getAuthTag()])
    },
    open(sealed, boundTo) {
      if (sealed.length <= TEXT_AT + TAG_BYTES || sealed[0] !== VERSION)
        throw new SealError('This is not a sealed secret, or one of a newer version.')
      const id = sealed.subarray(1, NONCE_AT)
      const known = keys.find((candidate) => candidate.id.equals(id))
      if (known === undefined)
        throw new SealError(
          `It was sealed with the master key ${id.toString('hex')}, which is neither the current nor the previous one.`,
        )
      return unseal(sealed, known.key, boundTo)
    },
    isCurrent: (sealed) => sealed.subarray(1, NONCE_AT).equals(own.id),
    keyNames: keys.map(({ id }) => id.toString('hex')),
  }
}

/** Where in a sealed value the name of its key stands, as PostgreSQL counts bytes. */
export const KEY_NAME_AT = { from: 2, length: KEY_ID_BYTES } as const

function unseal(sealed: Buffer, key: KeyObject, boundTo: string): Secret {
  const tagAt = sealed.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(NONCE_AT, TEXT_AT), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(boundTo))
    .setAuthTag(sealed.subarray(tagAt))
  try {
    return new Secret(decipher.update(sealed.subarray(TEXT_AT, tagAt), undefined, 'utf8') + decipher.final('utf8'))
  } catch {
    throw new SealError('It was changed since it was sealed, or was sealed for something else.')
  }
}

/** Whether this is 32 bytes in base64, as `openssl rand -base64 32` makes them. */
export function isMasterKey(secret: Secret): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(secret.reveal()) && Buffer.from(secret.reveal(), 'base64').length === KEY_BYTES
}

function readKey(secret: Secret): Key {
  if (!isMasterKey(secret))
    throw new SealError('A master key must be 32 bytes in base64: make one with `openssl rand -base64 32`.')
  const bytes = Buffer.from(secret.reveal(), 'base64')
  // A part of a hash tells nothing of 256 random bits.
  return { id: hash('sha256', bytes, 'buffer').subarray(0, KEY_ID_BYTES), key: createSecretKey(bytes) }
}

type MasterKeys = { readonly master_key?: Secret | undefined; readonly previous_master_key?: Secret | undefined }

/** Null without a master key: then nothing secret can be stored or read, and what needs a credential can't be asked. */
export function sealOf({ master_key: current, previous_master_key: previous }: MasterKeys): Seal | null {
  return current === undefined ? null : createSeal({ current, ...(previous !== undefined && { previous }) })
}
