import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { createSeal, type Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { Sealed } from '../storage/reseal.ts'

/** Tokens under a key of their own, which is under the master key: a new master key wraps that one anew, and they stay. */
export type Wrapped = { readonly wrappedKey: Buffer; readonly tokens: Buffer }

export type Kept = { readonly access: Secret; readonly refresh: Secret | null }

const keyOf = (credentialId: Id) => `link ${credentialId} key`
const tokensOf = (credentialId: Id) => `link ${credentialId} tokens`
const KEY_BYTES = 32

const kept = z.object({ access: z.string().min(1), refresh: z.string().min(1).nullable() })

export function wrapTokens(seal: Seal, credentialId: Id, { access, refresh }: Kept): Wrapped {
  const key = new Secret(randomBytes(KEY_BYTES).toString('base64'))
  const plain = new Secret(JSON.stringify({ access: access.reveal(), refresh: refresh?.reveal() ?? null }))
  return {
    wrappedKey: seal.seal(key, keyOf(credentialId)),
    tokens: createSeal({ current: key }).seal(plain, tokensOf(credentialId)),
  }
}

export function openTokens(seal: Seal, credentialId: Id, { wrappedKey, tokens }: Wrapped): Kept {
  const key = seal.open(wrappedKey, keyOf(credentialId))
  const plain = createSeal({ current: key }).open(tokens, tokensOf(credentialId))
  const { access, refresh } = kept.parse(JSON.parse(plain.reveal()))
  return { access: new Secret(access), refresh: refresh === null ? null : new Secret(refresh) }
}

/** Where their keys are kept. */
export const TOKEN_KEYS: Sealed = {
  what: "keys of linked accounts' tokens",
  table: 'link_sessions',
  key: 'credential_id',
  column: 'wrapped_key',
  boundTo: keyOf,
}
