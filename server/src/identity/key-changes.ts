import { z } from 'zod'
import { type Budget, budgetFacts, makeAllowance } from '../budgets/budgets.ts'
import { beginNoticesAnew } from '../budgets/notices.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { type By, difference, record } from '../storage/audit.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'
import { changed, TERMS_COLUMNS, type TermsChange, termsFacts, termsPlaces, termsValues } from './key-terms.ts'
import { changeOf, expiryFacts, lockKey, memberWith, tell } from './locked-key.ts'
import { namedFacts, operatorTermsAfter } from './operator-terms.ts'
import { requireTicket } from './tickets.ts'

type Parts = { readonly pool: Transactions; readonly ids: Ids }

export async function setKeyExpiry({ pool }: Parts, by: By, id: Id, expiresAt: Date | null): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { expiresAt: expiredAt, operatorTerms, isTicket } = await lockKey(query, id)
    if (isTicket) requireTicket({ expiresAt })
    const [before, after] = [expiryFacts(expiredAt), expiryFacts(expiresAt)]
    const owned = operatorTermsAfter(by, operatorTerms, { before, after })
    await query('update api_keys set expires_at = $2, operator_terms = $3 where id = $1', [id, expiresAt, owned])
    await record(query, by, { ...changeOf(id, 'expiry_set'), ...difference(before, after) })
    await tell(query, id)
  })
}

/**
 * Changes what a key may spend in a period. Lowering it takes effect at once, as what is spoken for already where that is
 * more; another period has a count of its own. One that it had before goes on counting where it was.
 */
export async function setKeyBudget({ pool, ids }: Parts, by: By, id: Id, budget: Budget | null): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { accountId, allowanceId, formerAllowances, budget: had, operatorTerms, isTicket } = await lockKey(query, id)
    if (isTicket) requireTicket({ budget })
    const [before, after] = [budgetFacts(had), budgetFacts(budget)]
    const owned = operatorTermsAfter(by, operatorTerms, { before, after })
    const known = allowanceId === null ? formerAllowances : [allowanceId, ...formerAllowances]
    const again = budget === null ? undefined : await allowanceAmong(query, known, budget)
    if (budget !== null && again !== undefined) await changeAllowance(query, again, budget.amount)
    const next = budget === null ? null : (again?.id ?? (await makeAllowance(query, ids, accountId, budget)))
    await query('update api_keys set allowance_id = $2, former_allowances = $3, operator_terms = $4 where id = $1', [
      id,
      next,
      known.filter((one) => one !== next),
      owned,
    ])
    await record(query, by, { ...changeOf(id, 'budget_set'), ...difference(before, after) })
    await tell(query, id)
  })
}

const allowanceRow = z.object({ id: z.string(), amount: z.bigint() })
type Allowance = z.output<typeof allowanceRow>

/** Of those that the key has or had, the one for the same period: there is at most one. */
async function allowanceAmong(query: Query, known: readonly Id[], { period }: Budget): Promise<Allowance | undefined> {
  const { rows } = await query('select id, amount from allowances where id = any ($1::uuid[]) and period = $2', [
    known,
    period,
  ])
  return rows[0] && allowanceRow.parse(rows[0])
}

/** People are told anew of what was raised. */
async function changeAllowance(query: Query, { id, amount: before }: Allowance, amount: bigint): Promise<void> {
  await query('select change_allowance(allowance => $1, new_amount => $2)', [id, amount])
  if (amount > before) await beginNoticesAnew(query, id)
}

/** Says whose key it is, or that it is nobody's. The budget of its member bounds what begins once a process knows, within a second. */
export async function assignKey({ pool }: Pick<Parts, 'pool'>, by: By, id: Id, memberId: Id | null): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { workspaceId, memberId: before } = await lockKey(query, id)
    const { personId, email } = await memberWith(query, workspaceId, memberId)
    await query('update api_keys set member_id = $2, member_person = $3, member_email = $4 where id = $1', [
      ...[id, memberId, personId, email],
    ])
    await record(query, by, { ...changeOf(id, 'assigned'), ...difference({ memberId: before }, { memberId }) })
    await tell(query, id)
  })
}

/** Changes what is named of how fast, for what and from where a key may be used. Every process follows within a second. */
export async function changeKey({ pool }: Parts, by: By, id: Id, change: TermsChange): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { terms, operatorTerms, isTicket } = await lockKey(query, id)
    const next = changed(terms, change)
    if (isTicket) requireTicket({ scopes: next.scopes })
    const [before, after] = [termsFacts(terms), termsFacts(next)]
    const owned = operatorTermsAfter(by, operatorTerms, { before, after: namedFacts(change, after) })
    await query(
      `update api_keys set (operator_terms, ${TERMS_COLUMNS}) = row ($2::text[], ${termsPlaces(3)}) where id = $1`,
      [id, owned, ...termsValues(next)],
    )
    await record(query, by, { ...changeOf(id, 'changed'), ...difference(before, after) })
    await tell(query, id)
  })
}
