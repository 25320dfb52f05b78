import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'

/** A key by its name, or a grant by that of its client. */
export const CREDENTIAL_KINDS = ['key', 'grant'] as const

const row = z.object({ id: z.string(), kind: z.enum(CREDENTIAL_KINDS), name: z.string() })
export type CredentialName = Readonly<z.output<typeof row>>

/** What people call credentials, those that have ended too. */
export async function credentialNames(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, CredentialName>> {
  if (ids.length === 0) return new Map()
  const { rows } = await pool.query({
    name: 'credential_names',
    text: `select id, 'key' as kind, name from api_keys where id = any ($1::uuid[])
      union all select id, 'grant', client_name from grants where id = any ($1::uuid[])`,
    values: [ids],
  })
  return new Map(
    z
      .array(row)
      .parse(rows)
      .map((one) => [one.id, one]),
  )
}

/** Whether an account has a credential, of a key or of a grant. */
export async function isCredentialOf(pool: pg.Pool, accountId: Id, id: Id): Promise<boolean> {
  const { rowCount } = await pool.query('select from credentials where id = $1 and account_id = $2', [id, accountId])
  return rowCount === 1
}
