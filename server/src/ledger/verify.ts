import type pg from 'pg'
import type { Id } from '../kernel/ids.ts'
import { inSnapshot } from '../storage/transaction.ts'
import { COUNTED } from './usage-sources.ts'

/** A promise of the ledger that does not hold, with a few of the rows that break it. */
export type Violation = { readonly promise: string; readonly rows: readonly string[] }

const SHOWN = 5
/** It reads everything that there is, and may take its time. */
const LONGEST_MS = 30 * 60_000

/** Of the days that are kept and of those that were dropped. */
const CHARGES_OF_ACCOUNTS = `(
  select account_id, sum(amount) as amount, sum(promo) as promo
  from (select account_id, amount, promo from charges union all select account_id, amount, promo from dropped_charges) charge
  where $1::uuid[] is null or account_id = any ($1) group by account_id)`

const ENTRIES_OF_ACCOUNTS = `(
  select account_id, sum(credited) as credited, sum(charged) as charged, sum(promo) as promo, sum(debt) as debt
  from entries where $1::uuid[] is null or account_id = any ($1) group by account_id)`

const sumsOf = (...columns: readonly string[]) => columns.map((column) => `sum(${column}) as ${column}`).join(', ')
/** What tells one sum from another, in each of the tables of sums. */
const SUM = ['credential_id', 'about', 'grain', 'subject', 'starts_at', 'operation', 'model', 'account_id'] as const
const TOTAL = ['scope_id', 'about', 'grain', 'subject', 'starts_at', 'account_id'] as const
type Columns = typeof SUM | typeof TOTAL

/** Calls of days that were dropped may have been settled in the days after. */
const NOT_OF_DROPPED_DAYS = `and starts_at >= coalesce((select max(day) + 7 from dropped_days), '-infinity'::date)`
const BRIEF_FROM = `coalesce((select hours_from from usage_kept), '-infinity')`

/** What usage is of: what the ledger has, and what is in no sum yet. */
const BOOKED = `
  select credential_id, account_id, ended_at as at, operation, coalesce(model, '') as model, end_user, tags, 1 as requests, failed::integer as failed_requests,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount as charged
  from charges where credential_id is not null and (executed or amount > 0) and ($1::uuid[] is null or account_id = any ($1))
  union all
  select credential_id, account_id, entered_at, operation, coalesce(model, ''), end_user, tags, 0, 0, 0, 0, 0, 0, 0, charged
  from entries where credential_id is not null and charged <> 0 and ($1::uuid[] is null or account_id = any ($1))`
const WAITING = `
  select credential_id, account_id, at, operation, coalesce(model, '') as model, end_user, tags, ${COUNTED.join(', ')}
  from usage_tail where $1::uuid[] is null or account_id = any ($1)`

/** All that a call is counted for, in either table: all calls, an end user and each tag, and all that have one. */
const SUBJECTS = `
  select '', ''
  union all
  select 'end_user', own.subject from (values (used.end_user::text), ('')) own (subject) where used.end_user is not null
  union all
  select 'tag:' || split_part(tag, '=', 1), own.subject
  from unnest(used.tags) tag cross join lateral (values (substr(tag, strpos(tag, '=') + 1)), ('')) own (subject)`
const GRAINS = `cross join (values ('hour'), ('day')) one (grain)`

const sumsIn = (used: string) => `
  select credential_id, about, grain, subject, date_trunc(grain, at, 'UTC') as starts_at, operation, model, account_id, ${COUNTED.join(', ')}
  from (${used}) used cross join lateral (${SUBJECTS}) part (about, subject) ${GRAINS}`
const totalsIn = (used: string) => `
  select scope_id, about, grain, subject, date_trunc(grain, at, 'UTC') as starts_at, account_id, ${COUNTED.join(', ')}
  from (${used}) used
  cross join lateral (${SUBJECTS} union all select 'operation', operation union all select 'model', model where model <> '') part (about, subject)
  cross join lateral (values (account_id), (credential_id)) scope (scope_id) ${GRAINS}`

/** Sums that are not what was booked. */
const differing = (columns: Columns, sums: string, made: string) => `
  select concat_ws(' ', ${columns.join(', ')})
  from (select ${columns.join(', ')}, ${sumsOf(...COUNTED)} from (${sums}) sums group by ${columns.join(', ')}) stored
  full join (select ${columns.join(', ')}, ${sumsOf(...COUNTED)} from (${made}) booked group by ${columns.join(', ')}) made using (${columns.join(', ')})
  where (${COUNTED.map((column) => `coalesce(stored.${column}, 0)`).join(', ')}) <> (${COUNTED.map((column) => `coalesce(made.${column}, 0)`).join(', ')})
    ${NOT_OF_DROPPED_DAYS}`

/**
 * Each promise as a query for the rows that break it, `$1` being the accounts to look at or null for all. They are
 * evaluated in one snapshot, so they must hold at any instant, whatever is being written.
 */
const PROMISES: Readonly<Record<string, string>> = {
  'a task has its hold until it ends, and its charge from then on': `
    select id from tasks where ($1::uuid[] is null or account_id = any ($1)) and case when ended_at is null
      then not exists (select from holds where holds.id = tasks.id)
      else not exists (select from charges where charges.id = tasks.id) end`,

  'a hold that no process owns is unsettled, or that of a task which is asked for': `
    select holds.id from holds left join tasks using (id)
    where ($1::uuid[] is null or holds.account_id = any ($1)) and owner_id is null and unsettled_at is null and next_poll_at is null`,

  'nobody spends more than they have: charged + held ≤ credited + debt': `
    select id from accounts
    where ($1::uuid[] is null or id = any ($1)) and (charged + held > credited + debt or least(charged, held, credited, debt, promo) < 0)`,

  'no allowance is exceeded in any period: charged + held ≤ allowance': `
    select p.allowance_id || ' ' || p.starts_at from allowance_periods p join allowances a on a.id = p.allowance_id
    where ($1::uuid[] is null or a.account_id = any ($1)) and (p.charged + p.held > p.amount or least(p.charged, p.held) < 0)`,

  'an account holds the sum of its open holds': `
    select a.id from accounts a left join (select account_id, sum(amount) as amount from holds group by account_id) h on h.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.held <> coalesce(h.amount, 0)`,

  'an allowance holds the sum of the open holds that count against it': `
    select p.allowance_id || ' ' || p.starts_at
    from allowance_periods p join allowances a on a.id = p.allowance_id
    left join (
      select one.id, period_start(b.period, h.begun_at) as starts_at, sum(h.amount) as amount
      from holds h cross join unnest(h.allowances) one (id) join allowances b on b.id = one.id group by 1, 2
    ) h on h.id = p.allowance_id and h.starts_at = p.starts_at
    where ($1::uuid[] is null or a.account_id = any ($1)) and p.held <> coalesce(h.amount, 0)`,

  'an account was charged the sum of its charges less what was given back': `
    select a.id from accounts a
    left join ${CHARGES_OF_ACCOUNTS} c on c.account_id = a.id
    left join ${ENTRIES_OF_ACCOUNTS} e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.charged <> coalesce(c.amount, 0) + coalesce(e.charged, 0)`,

  'an account was credited, and is in debt, by the sum of its entries': `
    select a.id from accounts a
    left join ${ENTRIES_OF_ACCOUNTS} e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and (a.credited <> coalesce(e.credited, 0) or a.debt <> coalesce(e.debt, 0))`,

  'an account has paid the sum of its payments, less what was reversed': `
    select a.id from accounts a left join (
      select account_id, sum(credited) as paid from entries
      where kind in ('payment', 'payment_reversal', 'dispute', 'dispute_won') group by account_id
    ) e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.paid <> coalesce(e.paid, 0)`,

  'an account in debt has nothing free: debt is paid first': `
    select id from accounts where ($1::uuid[] is null or id = any ($1)) and debt > 0 and charged + held <> credited + debt`,

  'no payment is reversed beyond what was paid': `
    select id from entries where kind = 'payment' and ($1::uuid[] is null or account_id = any ($1)) and reversible_of(payment_id => id) < 0`,

  'promotional credit is in its grants until it is spent or taken': `
    select a.id from accounts a
    left join (select account_id, sum(remaining) as remaining from promotions group by account_id) g on g.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and (coalesce(g.remaining, 0) < a.promo - a.lapsed or a.lapsed > least(a.promo, a.held))`,

  'an allowance was charged the sum of the charges that count against it, less what was given back': `
    select p.allowance_id || ' ' || p.starts_at
    from allowance_periods p join allowances a on a.id = p.allowance_id
    left join (
      select one.id, period_start(b.period, c.begun_at) as starts_at, sum(c.amount + coalesce(e.charged, 0)) as amount
      from charges c cross join unnest(c.allowances) one (id) join allowances b on b.id = one.id
      left join (select corrects, sum(charged) as charged from entries group by corrects) e on e.corrects = c.id
      where $1::uuid[] is null or c.account_id = any ($1)
      group by 1, 2
    ) c on c.id = p.allowance_id and c.starts_at = p.starts_at
    left join dropped_allowances d on d.allowance_id = p.allowance_id and d.starts_at = p.starts_at
    where ($1::uuid[] is null or a.account_id = any ($1)) and p.charged <> coalesce(c.amount, 0) + coalesce(d.amount, 0)`,

  'promotional credit is spent once: what is left is what was granted and given back, less what paid charges': `
    select a.id from accounts a
    left join ${CHARGES_OF_ACCOUNTS} c on c.account_id = a.id
    left join ${ENTRIES_OF_ACCOUNTS} e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.promo <> coalesce(e.promo, 0) - coalesce(c.promo, 0)`,

  'holds and charges belong to an account that exists, and to a credential of it': `
    select row.id from (
      select id, account_id, credential_id from holds
      union all select id, account_id, credential_id from charges where credential_id is not null
    ) row
    where ($1::uuid[] is null or row.account_id = any ($1))
      and not exists (select from credentials k join accounts a on a.id = k.account_id where k.id = row.credential_id and a.id = row.account_id)`,

  'what counts against an allowance is counted in a period of it': `
    select row.id from (
      select id, account_id, allowances, begun_at from holds where amount > 0
      union all select id, account_id, allowances, begun_at from charges where amount > 0
    ) row cross join unnest(row.allowances) one (id) left join allowances a on a.id = one.id
    where ($1::uuid[] is null or row.account_id = any ($1)) and not exists (
      select from allowance_periods p where p.allowance_id = one.id and p.starts_at = period_start(a.period, row.begun_at))`,

  'a call is open or has ended, never both': `
    select h.id from holds h join charges c on c.id = h.id where $1::uuid[] is null or h.account_id = any ($1)`,

  'a loss is of a call that has ended, of its account, and no more than what that overran': `
    select l.id from losses l left join charges c on c.id = l.id
    where ($1::uuid[] is null or l.account_id = any ($1))
      and (c.id is null or c.account_id <> l.account_id or l.nanos > c.overrun or l.claim < l.nanos)`,

  'a reversal gives back no more than was charged': `
    select e.corrects from entries e join charges c on c.id = e.corrects
    where $1::uuid[] is null or e.account_id = any ($1)
    group by e.corrects, c.amount having -sum(e.charged) > c.amount`,

  'usage of keys and of accounts, and by operation, model, end user and tag, equals the ledger, hour by hour and day by day': `
    ${differing(
      TOTAL,
      `select ${TOTAL.join(', ')}, ${COUNTED.join(', ')} from usage_totals where $1::uuid[] is null or account_id = any ($1)
       union all ${totalsIn(WAITING)}`,
      totalsIn(BOOKED),
    )}
      and (grain = 'day' or subject = '' or about in ('operation', 'model') or starts_at >= ${BRIEF_FROM})`,

  'usage by operation and model together with end user and tag equals the ledger, hour by hour, and day by day as far as that is combined': `
    ${differing(
      SUM,
      `select ${SUM.join(', ')}, ${COUNTED.join(', ')} from usage_sums where $1::uuid[] is null or account_id = any ($1)
       union all
       select credential_id, about, 'day', subject, date_trunc('day', starts_at, 'UTC'), operation, model, account_id, ${COUNTED.join(', ')}
       from usage_sums left join (select until, credential_id as last_key, about as last_about, subject as last_subject from usage_combined) combined on true
       where ($1::uuid[] is null or account_id = any ($1)) and grain = 'hour' and not coalesce(
         starts_at < until or starts_at < until + interval '24 hours' and (credential_id, about, subject) <= (last_key, last_about, last_subject), false)
       union all ${sumsIn(WAITING)}`,
      sumsIn(BOOKED),
    )}
      and (subject = '' or starts_at >= ${BRIEF_FROM})`,

  'what is given back of a call is given back to whom it was booked for': `
    select e.id from entries e join charges c on c.id = e.corrects
    where ($1::uuid[] is null or e.account_id = any ($1)) and e.kind in ('charge_reversal', 'forgiveness')
      and (e.operation, e.model, e.route, e.end_user, e.tags) is distinct from (c.operation, c.model, c.route, c.end_user, c.tags)`,

  'no call that nobody runs has a place among the calls at once': `
    select id from holds where ($1::uuid[] is null or account_id = any ($1)) and unsettled_at is not null and at_once`,

  'a credential has as many calls at once as it has open holds with a place': `
    select k.id from credentials k
    left join (select credential_id, count(*) as places from holds where at_once group by credential_id) h on h.credential_id = k.id
    where ($1::uuid[] is null or k.account_id = any ($1)) and k.calls_at_once <> coalesce(h.places, 0)`,

  'a period of an allowance stands in one place, with a credential of its account or among those that are kept': `
    select k.id from credentials k left join allowances a on a.id = k.budget_id
    where k.budget_id is not null and ($1::uuid[] is null or k.account_id = any ($1))
      and (a.id is null or a.account_id <> k.account_id or a.credential_id is distinct from k.id or period_start(a.period, k.budget_ends_at - interval '1 microsecond') is distinct from k.budget_starts_at
        or a.amount is distinct from k.budget_ceiling or a.follows is not null
        or exists (select from kept_periods p where p.allowance_id = k.budget_id and p.starts_at = k.budget_starts_at))`,

  'no claim outlives its call but one that is kept': `
    select cl.call_id || ' ' || cl.scope from claims cl join credentials k on k.id = cl.credential_id
    where ($1::uuid[] is null or k.account_id = any ($1)) and cl.kept_until is null
      and not exists (select from holds h where h.id = cl.call_id)`,
}

/** Says which promises are broken, of some accounts or of all. An empty list is what the product stands on. */
export function verifyLedger(pool: pg.Pool, accounts: readonly Id[] | null = null): Promise<Violation[]> {
  return inSnapshot(pool, async ({ query }) => {
    await query(`set local statement_timeout = ${LONGEST_MS}`)
    const violations: Violation[] = []
    for (const [promise, sql] of Object.entries(PROMISES)) {
      const { rows } = await query(`${sql} limit ${SHOWN}`, [accounts])
      if (rows.length > 0) violations.push({ promise, rows: rows.map((row) => String(Object.values(row)[0])) })
    }
    return violations
  })
}
