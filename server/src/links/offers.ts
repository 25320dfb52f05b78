import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { Tokens } from './platform.ts'

/**
 * What a platform has given for a user who has not confirmed to us for whom it is. It is in the page that asks, sealed, and is kept nowhere
 * until the user sends it back.
 */
export type Offer = {
  readonly id: Id
  readonly credentialId: Id
  readonly upstreamId: Id
  readonly user: { readonly id: string; readonly username: string } | null
  readonly tokens: Tokens
  readonly stateHash: Buffer
  readonly madeAtMs: number
}

/** More than any platform's tokens take, sealed. */
export const OFFER_LENGTH = 12_000
const OFFER = /^[A-Za-z0-9_-]+$/
const BOUND_TO = 'link offer'

const offer = z.strictObject({
  id: z.string(),
  credentialId: z.string(),
  upstreamId: z.string(),
  user: z.strictObject({ id: z.string(), username: z.string() }).nullable(),
  access: z.string(),
  refresh: z.string().nullable(),
  scopes: z.array(z.string()),
  expiresInSeconds: z.number(),
  stateHash: z.string(),
  madeAtMs: z.number(),
})

export function sealOffer(seal: Seal, { tokens, stateHash, ...rest }: Offer): string {
  const { access, refresh, scopes, expiresInSeconds } = tokens
  const secrets = { access: access.reveal(), refresh: refresh?.reveal() ?? null }
  const text = JSON.stringify({
    ...rest,
    ...secrets,
    scopes,
    expiresInSeconds,
    stateHash: stateHash.toString('base64'),
  })
  const sealed = seal.seal(new Secret(text), BOUND_TO).toString('base64url')
  if (sealed.length > OFFER_LENGTH) throw new Error('the tokens of the platform are longer than a page can carry')
  return sealed
}

/** Undefined for what is none of ours. */
export function openOffer(seal: Seal, text: string): Offer | undefined {
  if (text.length > OFFER_LENGTH || !OFFER.test(text)) return undefined
  try {
    const opened: unknown = JSON.parse(seal.open(Buffer.from(text, 'base64url'), BOUND_TO).reveal())
    const { access, refresh, scopes, expiresInSeconds, stateHash, ...rest } = offer.parse(opened)
    const secrets = { access: new Secret(access), refresh: refresh === null ? null : new Secret(refresh) }
    return { ...rest, tokens: { ...secrets, scopes, expiresInSeconds }, stateHash: Buffer.from(stateHash, 'base64') }
  } catch {
    return undefined
  }
}
