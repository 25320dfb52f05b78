import type pg from 'pg'
import { z } from 'zod'
import type { Mode } from '../kernel/mode.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import { splitByDays } from './usage-window.ts'

/** Who and what was charged most, over all accounts, and what it cost at the upstreams. */

export const SPEND_GROUPS = ['customer', 'model', 'operation', 'upstream'] as const
export type SpendGroup = (typeof SPEND_GROUPS)[number]

export type SpendQuery = {
  readonly by: SpendGroup
  readonly mode: Mode
  /** Whole hours, in Unix seconds; the second one is past the window. */
  readonly fromSeconds: number
  readonly toSeconds: number
  readonly most: number
}

const amount = z.coerce.bigint().transform((value): Nanos => nanos(value))
const sums = z.object({ requests: z.coerce.number(), charged: amount, cost: amount, uncosted: amount })
const rows = z.array(
  sums.extend({
    /** Of a customer the id of the account; null for what has none, such as calls without a model. */
    item: z.string().nullable(),
    part: z.enum(['top', 'others', 'all']),
    items: z.coerce.number(),
  }),
)

/** `uncosted` is what calls were charged for which no cost is known: it counts towards no margin. */
export type Spend = Readonly<z.output<typeof sums>>
export type SpendTop = {
  readonly top: readonly (Spend & { readonly item: string | null })[]
  /** The smaller ones together; null where all are shown. */
  readonly others: (Spend & { readonly items: number }) | null
  readonly all: Spend
}

/** An id is made when its call arrives, and a call ends within days: only those partitions are read. */
const IDS_APART_SECONDS = 8 * 86_400

/** One statement, so that sums and costs are of one state of the ledger. What was charged comes from the sums of usage, less what was given back; costs stand with the charges. */
export async function readSpendTop(pool: pg.Pool, query: SpendQuery): Promise<SpendTop> {
  const { by, mode, fromSeconds, toSeconds, most } = query
  const { rows: found } = await pool.query(
    `with ours as materialized (select id from accounts where mode = $1),
     costs as (
       select ${ITEM_OF_CHARGE[by]} as item, count(*) filter (where executed) as requests, sum(amount) as amount, sum(upstream_cost) as cost,
         coalesce(sum(amount) filter (where upstream_cost = 0), 0) as uncosted
       from charges where id >= first_id_at(to_timestamp($5)) and id < first_id_at(to_timestamp($6))
         and ended_at >= to_timestamp($2) and ended_at < to_timestamp($3) and account_id in (select id from ours)
       group by 1
     ),
     used as (${by === 'upstream' ? OF_CHARGES : ofSums(by, query)}),
     summed as (
       select item, sum(requests) as requests, sum(charged) as charged, sum(cost) as cost, sum(uncosted) as uncosted from (
         select item, requests, charged, 0 as cost, 0 as uncosted from used
         union all select item, 0, 0, cost, uncosted from costs
       ) added group by item
     ),
     ranked as (select *, row_number() over (order by charged desc, requests desc, item) as place from summed where requests <> 0 or charged <> 0 or cost <> 0)
     select item, 'top' as part, 1 as items, requests, charged, cost, uncosted, place from ranked where place <= $4
     union all select null, 'others', count(*), sum(requests), sum(charged), sum(cost), sum(uncosted), $4 + 1 from ranked where place > $4 having count(*) > 0
     union all select null, 'all', count(*), coalesce(sum(requests), 0), coalesce(sum(charged), 0), coalesce(sum(cost), 0), coalesce(sum(uncosted), 0), $4 + 2 from ranked
     order by place`,
    [mode, fromSeconds, toSeconds, most, Math.max(0, fromSeconds - IDS_APART_SECONDS), toSeconds + IDS_APART_SECONDS],
  )
  const all = rows.parse(found)
  const total = all.find(({ part }) => part === 'all')
  if (total === undefined) throw new Error('a report of spend has no total')
  return {
    top: all.filter(({ part }) => part === 'top').map(({ item, ...one }) => ({ item, ...spendOf(one) })),
    others:
      all.filter(({ part }) => part === 'others').map((one) => ({ items: one.items, ...spendOf(one) }))[0] ?? null,
    all: spendOf(total),
  }
}

function spendOf({ requests, charged, cost, uncosted }: Spend): Spend {
  return { requests, charged, cost, uncosted }
}

const ITEM_OF_CHARGE: Readonly<Record<SpendGroup, string>> = {
  customer: 'account_id::text',
  model: 'model',
  operation: 'operation',
  upstream: 'route',
}

/** Sums know no upstream: of that, charges and what was given back are added up themselves. */
const OF_CHARGES = `
  select item, requests, amount as charged from costs
  union all
  select route, 0, charged from entries
  where credential_id is not null and charged <> 0 and entered_at >= to_timestamp($2) and entered_at < to_timestamp($3) and account_id in (select id from ours)`

/** Of each account by an index, days where they are whole, and hours around them; and what is in no sum yet. Calls without a model are what is left of all. */
function ofSums(by: Exclude<SpendGroup, 'upstream'>, { fromSeconds, toSeconds }: SpendQuery): string {
  const { days, hours } = splitByDays({ from: fromSeconds, to: toSeconds }, true)
  const spans = [
    ...days.map((span) => ({ ...span, grain: 'day' })),
    ...hours.map((span) => ({ ...span, grain: 'hour' })),
  ]
  const values = spans.map(({ grain, from, to }) => `('${grain}', to_timestamp(${from}), to_timestamp(${to}))`)
  const totals = (about: string, subject: string, item: string, sign: string) => `
    select ${item} as item, ${sign}requests as requests, ${sign}charged as charged
    from ours cross join (values ${values.join(', ')}) span (grain, first, beyond) cross join lateral (
      select * from usage_totals where scope_id = ours.id and about = '${about}' and grain = span.grain and subject ${subject}
        and starts_at >= span.first and starts_at < span.beyond offset 0
    ) used`
  const tail = `
    select ${by === 'customer' ? 'account_id::text' : by}, requests, charged from usage_tail
    where at >= to_timestamp($2) and at < to_timestamp($3) and account_id in (select id from ours)`
  if (by === 'customer') return `${totals('', "= ''", 'ours.id::text', '')} union all ${tail}`
  const without = `${totals('', "= ''", 'null::text', '')} union all ${totals(by, "<> ''", 'null::text', '-')}`
  return `${totals(by, "<> ''", 'used.subject', '')} union all ${without} union all ${tail}`
}
