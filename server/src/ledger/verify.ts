import type pg from 'pg'
import type { Id } from '../kernel/ids.ts'

/** A promise of the ledger that does not hold, with a few of the rows that break it. */
export type Violation = { readonly promise: string; readonly rows: readonly string[] }

const SHOWN = 5

/**
 * Each promise as a query for the rows that break it, `$1` being the accounts to look at or null for all. They are
 * evaluated in one snapshot, so they must hold at any instant, whatever is being written.
 */
const PROMISES: Readonly<Record<string, string>> = {
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
    left join (select account_id, sum(amount) as amount from charges where $1::uuid[] is null or account_id = any ($1) group by account_id) c on c.account_id = a.id
    left join (select account_id, sum(amount) as amount from entries where kind in ('charge_reversal', 'forgiveness') group by account_id) r on r.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.charged <> coalesce(c.amount, 0) - coalesce(r.amount, 0)`,

  'an account was credited the sum of its entries': `
    select a.id from accounts a
    left join (select account_id, sum(amount) as amount from entries where kind not in ('charge_reversal', 'forgiveness') group by account_id) e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.credited <> coalesce(e.amount, 0)`,

  'an allowance was charged the sum of the charges that count against it, less what was given back': `
    select p.allowance_id || ' ' || p.starts_at
    from allowance_periods p join allowances a on a.id = p.allowance_id
    left join (
      select one.id, period_start(b.period, c.begun_at) as starts_at, sum(c.amount - coalesce(r.amount, 0)) as amount
      from charges c cross join unnest(c.allowances) one (id) join allowances b on b.id = one.id
      left join (select corrects, sum(amount) as amount from entries where kind in ('charge_reversal', 'forgiveness') group by corrects) r on r.corrects = c.id
      where $1::uuid[] is null or c.account_id = any ($1)
      group by 1, 2
    ) c on c.id = p.allowance_id and c.starts_at = p.starts_at
    where ($1::uuid[] is null or a.account_id = any ($1)) and p.charged <> coalesce(c.amount, 0)`,

  'promotional credit is spent once: what is left is what was granted and given back, less what paid charges': `
    select a.id from accounts a
    left join (select account_id, sum(promo) as amount from charges where $1::uuid[] is null or account_id = any ($1) group by account_id) c on c.account_id = a.id
    left join (
      select account_id, sum(case when kind in ('promotion', 'expiry') then amount else promo end) as amount from entries group by account_id
    ) e on e.account_id = a.id
    where ($1::uuid[] is null or a.id = any ($1)) and a.promo <> coalesce(e.amount, 0) - coalesce(c.amount, 0)`,

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

  'a reversal gives back no more than was charged': `
    select e.corrects from entries e join charges c on c.id = e.corrects
    where e.kind in ('charge_reversal', 'forgiveness') and ($1::uuid[] is null or e.account_id = any ($1))
    group by e.corrects, c.amount having sum(e.amount) > c.amount`,

  'the usage report equals the ledger': `
    select coalesce(u.credential_id, c.credential_id) from
      (select credential_id, sum(charged) as charged, sum(requests) as requests from usage_hours
        where $1::uuid[] is null or account_id = any ($1) group by credential_id) u
    full join
      (select c.credential_id, sum(c.amount - coalesce(r.amount, 0)) as charged, count(*) filter (where c.executed) as requests
        from charges c left join (select corrects, sum(amount) as amount from entries where kind in ('charge_reversal', 'forgiveness') group by corrects) r on r.corrects = c.id
        where c.credential_id is not null and ($1::uuid[] is null or c.account_id = any ($1)) group by c.credential_id) c
    on u.credential_id = c.credential_id
    where coalesce(u.charged, 0) <> coalesce(c.charged, 0) or coalesce(u.requests, 0) <> coalesce(c.requests, 0)`,

  'no claim outlives its call but one that is kept': `
    select cl.call_id || ' ' || cl.scope from claims cl join credentials k on k.id = cl.credential_id
    where ($1::uuid[] is null or k.account_id = any ($1)) and cl.kept_until is null
      and not exists (select from holds h where h.id = cl.call_id)`,
}

/** Says which promises are broken, of some accounts or of all. An empty list is what the product stands on. */
export async function verifyLedger(pool: pg.Pool, accounts: readonly Id[] | null = null): Promise<Violation[]> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level repeatable read read only')
    const violations: Violation[] = []
    for (const [promise, sql] of Object.entries(PROMISES)) {
      const { rows } = await client.query<string[]>({
        text: `${sql} limit ${SHOWN}`,
        values: [accounts],
        rowMode: 'array',
      })
      if (rows.length > 0) violations.push({ promise, rows: rows.map(([row = '']) => row) })
    }
    return violations
  } finally {
    await client.query('rollback').catch(() => {})
    client.release()
  }
}
