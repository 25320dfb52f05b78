import type pg from 'pg'
import { z } from 'zod'
import { CREDENTIAL_KINDS, credentialNames } from '../identity/credential-names.ts'
import type { Id } from '../kernel/ids.ts'

/** Members look at calls of all keys and grants: each says by which it was made. */

export const madeBy = {
  made_by: z
    .strictObject({ id: z.string(), kind: z.enum(CREDENTIAL_KINDS), name: z.string() })
    .nullable()
    .meta({ description: 'The key, or the grant by the name of its client; null of a call that never began.' }),
}

type Made<Body> = { readonly credentialId: Id | null; readonly body: Body }

/** Tells of calls by which key or grant each was made. */
export async function makersOf(pool: pg.Pool, calls: readonly Made<unknown>[]) {
  const ids = calls.map(({ credentialId }) => credentialId).filter((id) => id !== null)
  const names = await credentialNames(pool, [...new Set(ids)])
  return <Body>({ credentialId, body }: Made<Body>) => ({
    ...body,
    made_by: credentialId === null ? null : (names.get(credentialId) ?? null),
  })
}
