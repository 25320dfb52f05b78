import type pg from 'pg'
import { z } from 'zod'
import { BUDGET_ROW, budgetIn } from '../budgets/budgets.ts'
import type { Id } from '../kernel/ids.ts'
import { tierIn } from '../workspaces/tier.ts'
import { TERMS_ROW, TERMS_SELECT, termsIn } from './key-terms.ts'
import { noSuchThing } from './locked-key.ts'
import { OPERATOR_TERMS_ROW } from './operator-terms.ts'
import { loadWorkspace } from './workspace-record.ts'

export const listedKey = z
  .object({
    id: z.string(),
    workspace_id: z.string(),
    name: z.string(),
    mode: z.enum(['live', 'test']),
    created_at: z.date(),
    expires_at: z.date().nullable(),
    revoked_at: z.date().nullable(),
    previous_until: z.date().nullable(),
    account_id: z.string(),
    allowance_id: z.string().nullable(),
    member_id: z.string().nullable(),
    grant_id: z.string().nullable(),
    is_ticket: z.boolean(),
    ...BUDGET_ROW,
    ...TERMS_ROW,
    ...OPERATOR_TERMS_ROW,
  })
  .transform((row) => ({
    id: row.id,
    /** Whose client was told the secret; null for a person or an operator. */
    grantId: row.grant_id,
    memberId: row.member_id,
    /** Whether it was given away, with a total and an end. */
    isTicket: row.is_ticket,
    workspaceId: row.workspace_id,
    name: row.name,
    mode: row.mode,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    /** Until when the secret before the last rotation works; null where there is none, or it works no more. */
    previousUntil: row.previous_until,
    budget: budgetIn(row),
    accountId: row.account_id,
    allowanceId: row.allowance_id,
    terms: termsIn(row),
    /** Those that an operator has set: members do not change them. */
    operatorTerms: row.operator_terms,
  }))

export type ListedKey = z.output<typeof listedKey>

const LISTED = 1_000

export const LISTED_SELECT = `select k.id, k.workspace_id, k.name, a.mode, k.created_at, k.expires_at, k.revoked_at,
    case when k.previous_until > clock_timestamp() then k.previous_until end as previous_until, c.account_id, k.allowance_id, k.member_id, k.grant_id, k.is_ticket, b.period, b.amount, k.operator_terms, ${TERMS_SELECT}
  from api_keys k join credentials c on c.id = k.id join accounts a on a.id = c.account_id
  left join allowances b on b.id = k.allowance_id`

export async function listKeys(pool: pg.Pool, workspaceId: Id): Promise<readonly ListedKey[]> {
  const { rows } = await pool.query(`${LISTED_SELECT} where k.workspace_id = $1 order by k.id desc limit $2`, [
    workspaceId,
    LISTED,
  ])
  return z.array(listedKey).parse(rows)
}

/** A key, and the tier within which its rates hold. */
export async function findKey(pool: pg.Pool, id: Id) {
  const { rows } = await pool.query(`${LISTED_SELECT} where k.id = $1`, [id])
  if (rows[0] === undefined) throw noSuchThing('key', id)
  const key = listedKey.parse(rows[0])
  const workspace = await loadWorkspace(pool, key.workspaceId)
  if (workspace === undefined) throw noSuchThing('workspace', key.workspaceId)
  return { ...key, ...tierIn(workspace) }
}
