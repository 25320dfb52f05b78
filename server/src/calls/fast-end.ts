import { nanos } from '../kernel/money.ts'
import type { Call, Ending, Settlement } from './call.ts'
import { groupBy } from './columns.ts'
import type { UsualCall } from './fast-begin.ts'
import { arrayOf, createStatement, type Query, type RecordType, Row, recordsOf } from './query.ts'
import { ratesOf } from './rates.ts'

/** Whether the period in which the calls of a credential began stands with it. */
const PERIODS_STAND =
  'row.budget_id = sums.allowance and sums.first >= row.budget_starts_at and sums.last < row.budget_ends_at'

const CHARGE_COLUMNS = `id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at, model, route, end_user, end_user_label, tags`

const USAGE_COLUMNS = `account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
  requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged`

/**
 * END in one statement, for calls of the usual kind whose accounts have neither debt nor promotional credit. Whatever it does not end it leaves as it is, and the
 * judging function says what becomes of it: a call that has ended before, or is not what this process takes it for.
 *
 * What is charged to a budget whose period does not stand with the credential any more is charged by the function that does so for everybody.
 */
const END = createStatement(
  'end_fitting_calls',
  (of) => `with sound as materialized (
    select own.id from unnest(${of('accounts')}) item (id)
    cross join lateral (
      select row.id from accounts row where row.id = item.id and row.debt = 0 and row.promo = 0 and row.lapsed = 0 and calls_may_fit()
      limit 1 for no key update
    ) own
  ), locked as materialized (
    select count(*)::integer as accounts, array_agg(id) as ids, clock_timestamp() as at from sound
  ), ended as (
    delete from holds row using locked cross join unnest(${of('calls')}) with ordinality item
    where row.id = any (array[item.id]) and case when row.account_id = item.account_id and row.credential_id = item.credential_id
      and (locked.accounts = cardinality(${of('accounts')}) or row.account_id = any (locked.ids))
      and row.allowances = case when item.allowance is null then '{}' else array[item.allowance] end
      and not row.claims and row.reserved_at is null and row.token_groups = '{all}' then true end
    returning item.*, row.operation, row.amount as held, case when item.voided then 0 else least(item.amount, row.amount) end as charge,
      row.tokens_estimated, row.allowances, row.at_once, row.begun_at, row.asked_model, row.end_user, row.end_user_label, row.tags
  ), released as (
    update accounts row set held = row.held - sums.held, charged = row.charged + sums.charge
    from (select account_id, sum(held)::bigint as held, sum(charge)::bigint as charge from ended group by account_id) sums
    where row.id = any (array[sums.account_id])
    returning row.id, row.credited - row.charged - row.held as free
  ), money as materialized (
    select array_agg(id) as ids, array_agg(free) as free from released
  ), metered as (
    update credentials row set
      calls_at_once = row.calls_at_once - sums.places,
      all_tokens = case
        when sums.first >= row.all_started_at then greatest(0, row.all_tokens + sums.difference)
        when sums.last >= row.all_started_at then greatest(0, row.all_tokens + (
          select sum(one.difference) from unnest(sums.begun, sums.differences) one (begun_at, difference) where one.begun_at >= row.all_started_at)::bigint)
        else row.all_tokens end,
      budget_held = row.budget_held - case when ${PERIODS_STAND} then sums.held else 0 end,
      budget_charged = row.budget_charged + case when ${PERIODS_STAND} then sums.charge else 0 end
    from (
      select credential_id, allowance, count(*) filter (where at_once) as places, sum(held)::bigint as held, sum(charge)::bigint as charge,
        min(begun_at) as first, max(begun_at) as last, sum(difference)::bigint as difference, array_agg(begun_at) as begun, array_agg(difference) as differences,
        array_agg(allowance) as allowances, array_agg(held) as holds, array_agg(charge) as charges
      from ended cross join lateral (
        select input_tokens + output_tokens + cache_read_tokens + cache_write_tokens - tokens_estimated as difference
      ) tokens
      group by credential_id, allowance
    ) sums
    where row.id = any (array[sums.credential_id])
    returning row.id, extract(epoch from row.all_started_at)::float8 as started, row.all_requests as requests, row.all_tokens as tokens,
      case when sums.allowance is not null and (${PERIODS_STAND}) is not true
        then settle_allowances(ids => sums.allowances, begun => sums.begun, released => sums.holds, charges_in => sums.charges) end as elsewhere
  ), meters as materialized (
    select array_agg(id) as ids, array_agg(started) as started, array_agg(requests) as requests, array_agg(tokens) as tokens from metered
  ), charged as (
    insert into charges (${CHARGE_COLUMNS})
    select id, account_id, credential_id, operation, case when voided then 'voided' else 'posted' end, held, charge, 0, coalesce(amount, 0) - charge, value, upstream_cost,
      executed or charge > 0, failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, locked.at,
      asked_model, route, end_user, end_user_label, tags
    from ended cross join locked
  ), noted as (
    insert into usage_tail (${USAGE_COLUMNS})
    select account_id, credential_id, locked.at, operation, asked_model, end_user, end_user_label, tags,
      count(*), count(*) filter (where failed), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charge)
    from ended cross join locked where executed or charge > 0
    group by account_id, credential_id, locked.at, operation, asked_model, end_user, end_user_label, tags
  )
  select ended.ordinality::integer, ended.charge, coalesce(ended.amount, 0) - ended.charge, money.free[array_position(money.ids, ended.account_id)], locked.at::text,
    extract(epoch from locked.at)::float8, meters.started[meter], meters.requests[meter]::float8, meters.tokens[meter]::float8
  from ended cross join locked cross join money cross join meters
  cross join lateral (select array_position(meters.ids, ended.credential_id) as meter) at`,
)

/** The end of a call that this process began, of which it knows whose it is. */
export type UsualEnding = Pick<Call, 'accountId' | 'credentialId'> & {
  readonly ending: Ending
  readonly call: UsualCall
}

/** Whether nothing has to be done beside it, and no window be told but the one that the statement changes. */
export function isUsualEnding({ task, loss, asked }: Ending): boolean {
  return (
    task === undefined &&
    loss === undefined &&
    (asked === undefined || asked.windows.every(({ group, tokenLimit }) => group === 'all' && tokenLimit !== null))
  )
}

export const CALL: RecordType<UsualEnding> = {
  name: 'call_to_end',
  fields: [
    ['id', 'uuid[]', ({ ending }) => ending.id],
    ['account_id', 'uuid[]', ({ accountId }) => accountId],
    ['credential_id', 'uuid[]', ({ credentialId }) => credentialId],
    ['allowance', 'uuid[]', ({ call }) => call.hold.allowances[0] ?? null],
    ['amount', 'bigint[]', ({ ending }) => ending.amount],
    ['voided', 'boolean[]', ({ ending: { amount, forgiven } }) => forgiven || amount === null],
    ['value', 'bigint[]', ({ ending }) => ending.usage.value],
    ['upstream_cost', 'bigint[]', ({ ending }) => ending.usage.upstreamCost],
    ['executed', 'boolean[]', ({ ending }) => ending.usage.executed],
    ['failed', 'boolean[]', ({ ending }) => ending.usage.failed],
    ['input_tokens', 'bigint[]', ({ ending }) => ending.usage.inputTokens],
    ['output_tokens', 'bigint[]', ({ ending }) => ending.usage.outputTokens],
    ['cache_read_tokens', 'bigint[]', ({ ending }) => ending.usage.cacheReadTokens],
    ['cache_write_tokens', 'bigint[]', ({ ending }) => ending.usage.cacheWriteTokens],
    ['route', 'text[]', ({ ending }) => ending.route ?? null],
  ],
}

/** Ends those that fit, and answers the others with undefined. Calls of one credential have to be of one account and one budget. */
export async function endFitting(query: Query, items: readonly UsualEnding[]): Promise<(Settlement | undefined)[]> {
  const accounts = groupBy(items, ({ accountId }) => accountId).map(([{ accountId }]) => accountId)
  const rows = await query(END([arrayOf('accounts', 'uuid[]', accounts), recordsOf('calls', CALL, items)]))
  const settlements = new Map(rows.map((columns) => settlementIn(new Row(columns), items)))
  return items.map((item) => settlements.get(item))
}

function settlementIn(row: Row, items: readonly UsualEnding[]): readonly [UsualEnding, Settlement] {
  const item = items[row.number(0) - 1]
  if (item === undefined) throw new Error('end_fitting_calls names a call that it was not asked for')
  const { amount, forgiven, asked } = item.ending
  // Every window of a usual ending is the one that counts all requests.
  const state = row.isNull(6)
    ? undefined
    : { startSeconds: row.number(6), requests: row.number(7), tokens: row.number(8) }
  const settlement = {
    outcome: forgiven || amount === null ? 'voided' : 'posted',
    charged: nanos(row.bigint(1)),
    overrun: nanos(row.bigint(2)),
    free: nanos(row.bigint(3)),
    endedNow: true,
    settledAt: row.text(4),
    rates: asked === undefined ? null : ratesOf(asked.windows, () => state, row.number(5)),
  } as const
  return [item, settlement]
}
