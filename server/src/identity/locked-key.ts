import { z } from 'zod'
import { BUDGET_ROW, budgetIn } from '../budgets/budgets.ts'
import type { MemberIdentity } from '../budgets/member-subjects.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Change } from '../storage/audit.ts'
import type { Query } from '../storage/transaction.ts'
import { TERMS_ROW, TERMS_SELECT, termsIn } from './key-terms.ts'
import { OPERATOR_TERMS_ROW } from './operator-terms.ts'

const lockedKey = z
  .object({
    account_id: z.string(),
    mode: z.enum(['live', 'test']),
    shard: z.int(),
    allowance_id: z.string().nullable(),
    former_allowances: z.array(z.string()),
    workspace_id: z.string(),
    member_id: z.string().nullable(),
    ...BUDGET_ROW,
    expires_at: z.date().nullable(),
    is_revoked: z.boolean(),
    is_ticket: z.boolean(),
    ...TERMS_ROW,
    ...OPERATOR_TERMS_ROW,
  })
  .transform((row) => ({
    isRevoked: row.is_revoked,
    isTicket: row.is_ticket,
    expiresAt: row.expires_at,
    budget: budgetIn(row),
    terms: termsIn(row),
    operatorTerms: row.operator_terms,
    accountId: row.account_id,
    mode: row.mode,
    shard: row.shard,
    allowanceId: row.allowance_id,
    formerAllowances: row.former_allowances,
    workspaceId: row.workspace_id,
    memberId: row.member_id,
  }))

/** Locks the account whose money the key spends: everything that a call touches is changed under that lock. */
export async function lockKey(query: Query, id: Id): Promise<z.output<typeof lockedKey>> {
  await query('select from accounts where id = (select account_id from credentials where id = $1) for no key update', [
    id,
  ])
  const { rows } = await query(
    `select c.account_id, a.mode, w.shard, k.allowance_id, k.former_allowances, k.workspace_id, k.member_id, b.period, b.amount, k.expires_at,
       k.revoked_at is not null as is_revoked, k.is_ticket, k.operator_terms, ${TERMS_SELECT}
     from api_keys k join credentials c on c.id = k.id join accounts a on a.id = c.account_id
     join workspaces w on w.id = k.workspace_id left join allowances b on b.id = k.allowance_id where k.id = $1`,
    [id],
  )
  if (rows[0] === undefined) throw noSuchThing('key', id)
  return lockedKey.parse(rows[0])
}

/** For the audit log. */
export function changeOf(id: Id, done: string): Pick<Change, 'action' | 'of' | 'subject'> {
  return { action: `key.${done}`, of: id, subject: id }
}

export function expiryFacts(expiresAt: Date | null) {
  return { expiresAt: expiresAt?.toISOString() ?? null }
}

/** Every process forgets what it knows of a key or a grant. */
export async function tell(query: Query, id: Id): Promise<void> {
  await query("select record_change(topic => 'key', key => $1)", [id])
}

export function noSuchThing(what: string, id: Id): Fault {
  return new Fault('resource_not_found', { detail: `There is no ${what} ${id}.` })
}

const memberRow = z.object({ personId: z.string().nullable(), email: z.string() })
const NOBODY: MemberIdentity = { personId: null, email: null }

/** Who a member is. It is noted on the key, so that it outlives the membership. */
export async function memberWith(query: Query, workspaceId: Id, memberId: Id | null): Promise<MemberIdentity> {
  if (memberId === null) return NOBODY
  // Locked against a sign-up with the address, which claims keys too.
  const { rows } = await query(
    'select person_id as "personId", email from members where id = $1 and workspace_id = $2 for no key update',
    [memberId, workspaceId],
  )
  if (rows[0] === undefined) throw noSuchThing('member', memberId)
  return memberRow.parse(rows[0])
}
