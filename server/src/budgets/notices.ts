import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'

/** Of which budgets people are told, and that they were. What a mandate's person is told is with mandates. */

/** In per cent of the amount. */
export const NOTICE_LEVELS = [50, 80, 100] as const
export type BudgetNoticeLevel = (typeof NOTICE_LEVELS)[number]

const budgetToNotice = z.object({
  allowanceId: z.string(),
  workspaceId: z.string(),
  workspace: z.string(),
  isTest: z.boolean(),
  kind: z.enum(['key', 'workspace', 'member', 'tag', 'end_user']),
  subject: z.string(),
  /** When the period of the last notice began, and what was told. */
  noticedFrom: z.date().nullable(),
  noticed: z.int(),
})
export type BudgetToNotice = Readonly<z.output<typeof budgetToNotice>>

const NOTICED = 'n.starts_at as "noticedFrom", coalesce(n.level, 0)::integer as noticed'
const NOTICE_OF = (id: string) =>
  `left join lateral (select starts_at, level from budget_notices where allowance_id = ${id} limit 1) n on true`

/**
 * Where they are listed: each in the order of ids, so that the last of a portion is where the next begins. The portion is taken first. What else is told of it is then
 * looked up for each, and never joined with all that there is. What is joined without `left` is always there, since every key has its credential and every account its workspace: a portion that lost a row would be taken for the end of the list.
 */
const SOURCES = {
  keys: `select k.allowance_id as "allowanceId", k.id as after, w.id as "workspaceId", w.name as workspace, c.account_id = w.test_account_id as "isTest",
      'key' as kind, k.name as subject, ${NOTICED}
    from (
      select id, allowance_id, workspace_id, name from api_keys
      where allowance_id is not null and revoked_at is null and ($1::uuid is null or id > $1) order by id limit $2
    ) k
    cross join lateral (select account_id from credentials where id = k.id limit 1) c
    cross join lateral (select id, name, test_account_id from workspaces where id = k.workspace_id limit 1) w
    ${NOTICE_OF('k.allowance_id')} order by k.id`,
  // Of those that everybody has, nobody is told one by one: they have no allowance of their own id.
  budgets: `select b.id as "allowanceId", b.id as after, w.id as "workspaceId", w.name as workspace, b.account_id = w.test_account_id as "isTest",
      b.kind, b.label as subject, ${NOTICED}
    from (
      select id, account_id, kind, label from budgets
      where exists (select from allowances a where a.id = budgets.id) and ($1::uuid is null or id > $1) order by id limit $2
    ) b
    cross join lateral (select id, name, test_account_id from workspaces where b.account_id in (live_account_id, test_account_id) limit 1) w
    ${NOTICE_OF('b.id')} order by b.id`,
} as const

export type NoticeSource = keyof typeof SOURCES
/** What operators and owners set one by one comes first: there are fewer of those than of keys, as a rule. */
export const NOTICE_SOURCES: readonly NoticeSource[] = ['budgets', 'keys']

const listed = z.array(budgetToNotice.extend({ after: z.string() }))

export async function listBudgetsToNotice(
  pool: pg.Pool,
  source: NoticeSource,
  after: Id | null,
  limit: number,
): Promise<readonly (BudgetToNotice & { readonly after: Id })[]> {
  const { rows } = await pool.query(SOURCES[source], [after, limit])
  return listed.parse(rows)
}

/** By which it was decided that there is something to tell. */
type Seen = { readonly startsAt: Date; readonly level: BudgetNoticeLevel; readonly amount: Nanos }

/**
 * Says that people are told, and tells them, in one transaction: once a level and period, however many look at the same time. What was
 * changed since it was looked at is looked at again.
 */
export function noticeBudgetOnce(
  pool: pg.Pool,
  { allowanceId, workspaceId }: Pick<BudgetToNotice, 'allowanceId' | 'workspaceId'>,
  { startsAt, level, amount }: Seen,
  tellPeople: (query: Query, to: readonly string[]) => Promise<void>,
): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rowCount } = await query(
      `insert into budget_notices as row (allowance_id, starts_at, level)
       select id, $2, $3 from allowances where id = $1 and amount = $4
       on conflict (allowance_id) do update set starts_at = excluded.starts_at, level = excluded.level
       where (row.starts_at, row.level) < (excluded.starts_at, excluded.level)`,
      [allowanceId, startsAt, level, amount],
    )
    if (rowCount !== 1) return false
    await tellPeople(query, await lookersAfter(query, workspaceId))
    return true
  })
}

/** Of the running period people are told anew, and of those before it no more. */
export async function beginNoticesAnew(query: Query, allowanceId: Id): Promise<void> {
  await query(
    `insert into budget_notices (allowance_id, starts_at, level)
     select id, period_start(period, clock_timestamp()), 0 from allowances where id = $1
     on conflict (allowance_id) do update set starts_at = excluded.starts_at, level = excluded.level`,
    [allowanceId],
  )
}

const TOLD_MOST = 50
const addresses = z.array(z.object({ email: z.string() }))

/** Those who look after the money of a workspace: its owners and admins who have proven their mailbox. */
async function lookersAfter(query: Query, workspaceId: Id): Promise<readonly string[]> {
  const { rows } = await query(
    `select p.email from members m join people p on p.id = m.person_id
     where m.workspace_id = $1 and m.role in ('owner', 'admin') and p.verified_at is not null order by m.id limit $2`,
    [workspaceId, TOLD_MOST],
  )
  return addresses.parse(rows).map(({ email }) => email)
}

const lowAccount = z.array(
  z.object({ accountId: z.string(), workspaceId: z.string(), workspace: z.string(), balance: z.bigint() }),
)

/**
 * Live accounts whose balance, whatever is held of it, has fallen below an amount, and whose people were not told since. One that never had
 * as much is no news.
 */
export async function listLowBalances(pool: pg.Pool, low: Nanos, after: Id | null, limit: number) {
  const { rows } = await pool.query(
    `select a.id as "accountId", w.id as "workspaceId", w.name as workspace, a.credited - a.charged as balance
     from accounts a join workspaces w on w.live_account_id = a.id
     where a.credited >= $1 and a.credited - a.charged < $1 and not exists (select from balance_notices n where n.account_id = a.id)
       and ($2::uuid is null or a.id > $2)
     order by a.id limit $3`,
    [low, after, limit],
  )
  return lowAccount.parse(rows)
}

/** The same for a low balance. */
export function noticeBalanceOnce(
  pool: pg.Pool,
  { accountId, workspaceId }: { readonly accountId: Id; readonly workspaceId: Id },
  tellPeople: (query: Query, to: readonly string[]) => Promise<void>,
): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rowCount } = await query('insert into balance_notices (account_id) values ($1) on conflict do nothing', [
      accountId,
    ])
    if (rowCount !== 1) return false
    await tellPeople(query, await lookersAfter(query, workspaceId))
    return true
  })
}

/** Whose balance is above it again is told the next time. */
export async function forgetRaisedBalances(pool: pg.Pool, low: Nanos): Promise<void> {
  await pool.query(
    'delete from balance_notices n using accounts a where a.id = n.account_id and a.credited - a.charged >= $1',
    [low],
  )
}
