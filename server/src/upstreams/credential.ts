import type { Id } from '../kernel/ids.ts'
import { type Seal, SealError } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Sealed } from '../storage/reseal.ts'

/**
 * Whom a credential is shown to. Whoever can write to the table could otherwise point an upstream at a server of their own
 * and be sent its credential with the next call.
 */
type Holder = { readonly id: Id; readonly origin: string }

const NO_KEY =
  'There is no master key, without which no credential can be kept: set secrets.master_key (FAREBOX_SECRETS_MASTER_KEY).'

export function sealCredential(seal: Seal | null, credential: Secret, holder: Holder): Buffer {
  if (seal === null) throw new SealError(NO_KEY)
  return seal.seal(credential, boundTo(holder))
}

export function openCredential(seal: Seal | null, sealed: Buffer, holder: Holder): Secret {
  if (seal === null) throw new SealError(NO_KEY)
  return seal.open(sealed, boundTo(holder))
}

/** Where they are kept. */
export const CREDENTIALS: Sealed = {
  what: 'credentials of upstreams',
  table: 'upstreams',
  key: 'id',
  column: 'credential',
  also: 'base_url',
  boundTo: (id, baseUrl) => boundTo({ id, origin: new URL(baseUrl).origin }),
}

function boundTo({ id, origin }: Holder): string {
  return `upstream ${id} ${origin}`
}
