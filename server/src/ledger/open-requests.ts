import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import { owned, type RequestFilter, type WhoseRequests } from './requests.ts'

/** Calls that run, and those of which nobody knows what they used: what they hold is still held. */

const openRow = z.object({
  id: z.string(),
  credential_id: z.string(),
  operation: z.string(),
  asked_model: z.string().nullable(),
  amount: z.bigint().transform((value): Nanos => nanos(value)),
  end_user: z.string().nullable(),
  end_user_label: z.string().nullable(),
  tags: z.array(z.string()).nullable(),
  begun_at: z.date(),
  unsettled_at: z.date().nullable(),
})

export type OpenRequest = z.output<typeof openRow>

const COLUMNS =
  'id, credential_id, operation, asked_model, amount, end_user, end_user_label, tags, begun_at, unsettled_at'

export async function findOpen(pool: pg.Pool, whose: WhoseRequests, id: Id): Promise<OpenRequest | undefined> {
  const { condition, owner } = owned(whose)
  const { rows } = await pool.query(`select ${COLUMNS} from holds where id = $1 and ${condition}`, [id, owner])
  return rows[0] && openRow.parse(rows[0])
}

type OpenFilter = Omit<RequestFilter, 'accountId' | 'after' | 'outcome'> & { readonly accountId: Id }

/** The latest of an account. Holds have no index by account, since every call would write it: they are few, and not read where the account holds nothing. */
export async function listOpen(pool: pg.Pool, filter: OpenFilter): Promise<readonly OpenRequest[]> {
  const { accountId, credentialIds, operation, model, tag, endUserId, costAtLeast, costAtMost } = filter
  const values: unknown[] = [accountId, filter.sinceMs, filter.untilMs, filter.limit]
  const parameter = (value: unknown) => `$${values.push(value)}`
  const conditions = [
    credentialIds !== undefined && `credential_id = any (${parameter(credentialIds)}::uuid[])`,
    operation !== undefined && `operation = ${parameter(operation)}`,
    model !== undefined && `asked_model = ${parameter(model)}`,
    tag !== undefined && `${parameter(tag)} = any (tags)`,
    endUserId !== undefined && `end_user = ${parameter(endUserId)}`,
    costAtLeast !== undefined && `amount >= ${parameter(costAtLeast)}::bigint`,
    costAtMost !== undefined && `amount <= ${parameter(costAtMost)}::bigint`,
  ].filter((condition) => condition !== false)
  const { rows } = await pool.query({
    text: `select ${COLUMNS} from holds
      where account_id = $1 and exists (select from accounts where id = $1 and held > 0)
        and begun_at >= to_timestamp($2::float8 / 1000) and begun_at < to_timestamp($3::float8 / 1000)
        ${conditions.map((condition) => `and ${condition}`).join(' ')}
      order by id desc limit $4`,
    values,
  })
  return z.array(openRow).parse(rows)
}
