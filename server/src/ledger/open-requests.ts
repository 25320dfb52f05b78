import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import type { RequestFilter } from './list-requests.ts'
import { owned, type WhoseRequests } from './requests.ts'

/** Calls that run, and those of which nobody knows what they used: what they hold is still held. */

const openRow = z.object({
  id: z.string(),
  account_id: z.string(),
  credential_id: z.string(),
  /** The process that runs it; null of a task, which any worker ends. */
  owner_id: z.string().nullable(),
  operation: z.string(),
  asked_model: z.string().nullable(),
  /** The prices that it will be settled by. */
  terms: z.string(),
  amount: z.bigint().transform((value): Nanos => nanos(value)),
  end_user: z.string().nullable(),
  end_user_label: z.string().nullable(),
  tags: z.array(z.string()).nullable(),
  begun_at: z.date(),
  unsettled_at: z.date().nullable(),
})

export type OpenRequest = z.output<typeof openRow>

const COLUMNS =
  'c.id, c.account_id, c.credential_id, c.owner_id, c.operation, c.asked_model, c.terms, c.amount, c.end_user, c.end_user_label, c.tags, c.begun_at, c.unsettled_at'

/** One that runs, or of which nobody knows what it used. */
export async function findOpen(pool: pg.Pool, whose: WhoseRequests, id: Id): Promise<OpenRequest | undefined> {
  const { condition, owners } = owned(whose)
  const { rows } = await pool.query(`select ${COLUMNS} from holds c where c.id = $1 and ${condition}`, [id, ...owners])
  return rows[0] && openRow.parse(rows[0])
}

type OpenFilter = Omit<RequestFilter, 'outcome' | 'failed' | 'route' | 'byBeginning'> & {
  /** Those of which nobody knows what they used, or those that run; both where it is left out. */
  readonly isUnsettled?: boolean
}

/** The latest. Holds have no index by account, since every call would write it: they are few, and not read where the account holds nothing. */
export async function listOpen(pool: pg.Pool, filter: OpenFilter): Promise<readonly OpenRequest[]> {
  const { ofEverybody = false, accountId, credentialIds, mode, operation, model, tag, endUserId, after } = filter
  if (!ofEverybody && accountId === undefined && credentialIds === undefined)
    throw new Error('calls of nobody in particular')
  const values: unknown[] = [filter.sinceMs, filter.untilMs, filter.limit]
  const parameter = (value: unknown) => `$${values.push(value)}`
  const { isUnsettled, costAtLeast, costAtMost } = filter
  const conditions = [
    accountId !== undefined &&
      `c.account_id = ${parameter(accountId)} and exists (select from accounts where id = ${parameter(accountId)} and held > 0)`,
    credentialIds !== undefined && `c.credential_id = any (${parameter(credentialIds)}::uuid[])`,
    mode !== undefined && `(select a.mode from accounts a where a.id = c.account_id) = ${parameter(mode)}`,
    isUnsettled !== undefined && `c.unsettled_at is ${isUnsettled ? 'not null' : 'null'}`,
    operation !== undefined && `c.operation = ${parameter(operation)}`,
    model !== undefined && `c.asked_model = ${parameter(model)}`,
    tag !== undefined && `${parameter(tag)} = any (c.tags)`,
    endUserId !== undefined && `c.end_user = ${parameter(endUserId)}`,
    costAtLeast !== undefined && `c.amount >= ${parameter(costAtLeast)}::bigint`,
    costAtMost !== undefined && `c.amount <= ${parameter(costAtMost)}::bigint`,
    after !== undefined && `c.id < ${parameter(after.id)}::uuid`,
  ].filter((condition) => condition !== false)
  const { rows } = await pool.query({
    text: `select ${COLUMNS} from holds c
      where c.begun_at >= to_timestamp($1::float8 / 1000) and c.begun_at < to_timestamp($2::float8 / 1000)
        ${conditions.map((condition) => `and ${condition}`).join(' ')}
      order by c.id desc limit $3`,
    values,
  })
  return z.array(openRow).parse(rows)
}
