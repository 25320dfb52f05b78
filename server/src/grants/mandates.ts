import type pg from 'pg'
import { z } from 'zod'
import { type Budget, budgetFacts } from '../budgets/budgets.ts'
import { changed, TERMS_COLUMNS, termsFacts, termsPlaces, termsValues } from '../identity/key-terms.ts'
import { expiryFacts, tell } from '../identity/locked-key.ts'
import { type Asks, asksFacts } from '../identity/mandate-terms.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { type Nanos, ZERO } from '../kernel/money.ts'
import { type By, difference, type Facts, record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { changeOf } from './grants.ts'
import { findLocked, type LockedGrant, setBudgetWithin } from './locked-grant.ts'

/**
 * A mandate: what a person lets a client spend. It is the allowance, the rate, the scopes and the end of a grant, and for which calls the
 * person is asked. The amount is changed under the lock under which calls begin, so that none begins by what was before; all else is known to
 * every process within a second.
 */

type Parts = { readonly pool: pg.Pool; readonly ids: Ids }

export type MandateTerms = {
  /** In all; nothing for one that can't pay. */
  readonly amount: Nanos
  readonly requestsPerMinute: number
  readonly scopes: readonly string[]
  readonly asks: Asks
  readonly expiresAt: Date
}

/** Changes all of it at once. False where the grant has ended. */
export function changeMandate({ pool, ids }: Parts, by: By, id: Id, to: MandateTerms): Promise<boolean> {
  return withGrant(pool, id, async (query, grant) => {
    const { requestsPerMinute, scopes, asks, expiresAt } = to
    // What was charged counts for whatever amount comes next: an allowance that there was stays, also with nothing.
    const canNeverHavePaid = to.amount === ZERO && grant.allowanceId === null
    const budget: Budget | null = canNeverHavePaid ? null : { period: 'total', amount: to.amount }
    const terms = changed(grant.terms, { rates: { requestsPerMinute }, scopes })
    await setBudgetWithin(query, ids, grant, budget)
    await query(
      `update grants set call_limit = $2, asks_high_cost = $3, expires_at = $4, (${TERMS_COLUMNS}) = row (${termsPlaces(5)})
       where id = $1`,
      [id, asks.callLimit, asks.asksHighCost, expiresAt, ...termsValues(terms)],
    )
    const before = factsOf(grant)
    const after = factsOf({ budget, terms, asks, expiresAt })
    await record(query, by, { ...changeOf(id, 'mandate_changed'), ...difference(before, after) })
  })
}

function factsOf({
  budget,
  terms,
  asks,
  expiresAt,
}: Pick<LockedGrant, 'budget' | 'terms' | 'asks' | 'expiresAt'>): Facts {
  return { ...budgetFacts(budget), ...termsFacts(terms), ...asksFacts(asks), ...expiryFacts(expiresAt) }
}

/**
 * From its commit on no paid call begins, on any process: the allowance is nothing while it is paused. What runs goes on and is charged.
 * False where it has ended.
 */
export function pauseMandate({ pool }: Pick<Parts, 'pool'>, by: By, id: Id): Promise<boolean> {
  return withGrant(pool, id, async (query, { allowanceId, budget, isPaused }) => {
    if (isPaused) return
    if (allowanceId !== null) await query('select change_allowance(allowance => $1, new_amount => 0)', [allowanceId])
    await query('update grants set paused_at = clock_timestamp(), paused_amount = $2 where id = $1', [
      id,
      budget?.amount ?? null,
    ])
    await record(query, by, { ...changeOf(id, 'paused'), ...difference({ isPaused }, { isPaused: true }) })
  })
}

/** Lets it go on with what it had left. */
export function resumeMandate({ pool }: Pick<Parts, 'pool'>, by: By, id: Id): Promise<boolean> {
  return withGrant(pool, id, async (query, { allowanceId, budget, isPaused }) => {
    if (!isPaused) return
    if (allowanceId !== null && budget !== null)
      await query('select change_allowance(allowance => $1, new_amount => $2)', [allowanceId, budget.amount])
    await query('update grants set paused_at = null, paused_amount = null where id = $1', [id])
    await record(query, by, { ...changeOf(id, 'resumed'), ...difference({ isPaused }, { isPaused: false }) })
  })
}

async function withGrant(
  pool: pg.Pool,
  id: Id,
  work: (query: Query, grant: LockedGrant) => Promise<void>,
): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const grant = await findLocked(query, id)
    if (grant === null || grant.isRevoked) return false
    await work(query, grant)
    await tell(query, id)
    return true
  })
}

/** What a person is told of a mandate, in per cent of its amount. */
export type NoticeLevel = 80 | 100

const toNotice = z.array(
  z.object({
    ...{ id: z.string(), after: z.string(), allowanceId: z.string(), noticed: z.int() },
    ...{ isOver: z.boolean(), isPaused: z.boolean() },
  }),
)
export type ToNotice = z.output<typeof toNotice>[number]

/** What ended before that is no news. */
const TOLD_WITHIN_DAYS = 1

/** Those of which a person may still have to be told something, in the order of their ids. */
export async function listToNotice(pool: pg.Pool, after: Id | null, limit: number): Promise<readonly ToNotice[]> {
  const { rows } = await pool.query(
    `select id, id as after, allowance_id as "allowanceId", noticed, coalesce(expires_at <= clock_timestamp(), false) as "isOver",
       paused_at is not null as "isPaused"
     from grants where noticed < 100 and revoked_at is null and allowance_id is not null and ($1::uuid is null or id > $1)
       and (expires_at is null or expires_at > clock_timestamp() - make_interval(days => $3))
     order by id limit $2`,
    [after, limit, TOLD_WITHIN_DAYS],
  )
  return toNotice.parse(rows)
}

const noticed = z.object({
  email: z.string(),
  client: z.string(),
  workspace: z.string(),
  expires_at: z.date().nullable(),
})
export type Noticed = z.output<typeof noticed>

/** By which it was decided that there is something to tell. */
type Seen = { readonly noticed: number; readonly amount: Nanos }

/**
 * Says that the person is told, and tells them, in one transaction: once, however many look at the same time. What was changed since it was looked
 * at is looked at again.
 */
export function noticeOnce(
  pool: pg.Pool,
  id: Id,
  level: NoticeLevel,
  seen: Seen,
  tellPerson: (query: Query, of: Noticed) => Promise<void>,
): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows } = await query(
      `update grants k set noticed = $2 from people p, workspaces w
       where k.id = $1 and k.noticed = $3 and k.revoked_at is null
         and exists (select from allowances where allowances.id = k.allowance_id and allowances.amount = $4) and p.id = k.person_id and w.id = k.workspace_id
       returning p.email, k.client_name as client, w.name as workspace, k.expires_at`,
      [id, level, seen.noticed, seen.amount],
    )
    if (rows[0] === undefined) return false
    await tellPerson(query, noticed.parse(rows[0]))
    return true
  })
}
