import { nanos } from '../kernel/money.ts'
import type { Call, Ending, Settlement } from './call.ts'
import { type Groups, groupBy, partAlone } from './columns.ts'
import { answersOf, type Failed } from './failed.ts'
import type { UsualCall } from './fast-begin.ts'
import { type Column, createStatement, type Query, Row } from './query.ts'
import { ratesOf } from './rates.ts'

/** Whether the period in which the call began stands with its credential. */
const PERIOD_STANDS =
  'row.budget_id = released.allowance and released.begun_at >= row.budget_starts_at and released.begun_at < row.budget_ends_at'

/** Whether those do in which the calls of a credential began. */
const PERIODS_STAND =
  'row.budget_id = sums.allowance and sums.first >= row.budget_starts_at and sums.last < row.budget_ends_at'

const CHARGE_COLUMNS = `id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at, model, route, end_user, end_user_label, tags, booked`

const USAGE_COLUMNS = `account_id, credential_id, at, operation, model, route, end_user, end_user_label, tags,
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
    delete from holds row
    using locked cross join unnest(${of('ids')}, ${of('call_accounts')}, ${of('call_credentials')}, ${of('amounts')}, ${of('voided')}, ${of('values')},
      ${of('upstream_costs')}, ${of('executed')}, ${of('failed')}, ${of('input_tokens')}, ${of('output_tokens')}, ${of('cache_read_tokens')},
      ${of('cache_write_tokens')}, ${of('routes')})
      with ordinality item (id, account, credential, amount, voided, value, upstream_cost, executed, failed, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, route, place)
    where row.id = any (array[item.id])
      and case when row.account_id = (${of('accounts')})[item.account] and row.credential_id = (${of('credentials')})[item.credential]
      and (locked.accounts = cardinality(${of('accounts')}) or row.account_id = any (locked.ids))
      and row.allowances = array_remove(array[(${of('allowances')})[item.credential]], null)
      and not row.claims and row.reserved_at is null and row.token_groups = '{all}' then true end
    returning item.place::integer as place, item.account, item.credential, row.id, row.account_id, row.credential_id, row.operation, row.amount as held,
      case when item.voided then 0 else least(item.amount, row.amount) end as charge, coalesce(item.amount, 0) as used, item.voided, item.value, item.upstream_cost,
      item.executed or not item.voided and least(item.amount, row.amount) > 0 as executed, item.failed,
      item.input_tokens, item.output_tokens, item.cache_read_tokens, item.cache_write_tokens,
      item.input_tokens + item.output_tokens + item.cache_read_tokens + item.cache_write_tokens - row.tokens_estimated as difference,
      row.allowances, row.at_once, row.begun_at, row.asked_model, item.route, row.end_user, row.end_user_label, row.tags
  ), released as (
    update accounts row set held = row.held - sums.held, charged = row.charged + sums.charge
    from (select account, sum(held)::bigint as held, sum(charge)::bigint as charge from ended group by account) sums
    where row.id = any (array[(${of('accounts')})[sums.account]])
    returning sums.account, row.credited - row.charged - row.held as free
  ), money as materialized (
    select array_agg(account) as places, array_agg(free) as free from released
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
      select credential, (${of('allowances')})[credential] as allowance, count(*) filter (where at_once) as places, sum(held)::bigint as held,
        sum(charge)::bigint as charge, min(begun_at) as first, max(begun_at) as last, sum(difference)::bigint as difference,
        array_agg(begun_at) as begun, array_agg(difference) as differences
      from ended group by credential
    ) sums
    where row.id = any (array[(${of('credentials')})[sums.credential]])
    returning sums.credential, extract(epoch from row.all_started_at)::float8 as started, row.all_requests as requests, row.all_tokens as tokens,
      sums.allowance is not null and (${PERIODS_STAND}) is not true as is_elsewhere
  ), meters as materialized (
    select array_agg(credential) as places, array_agg(started) as started, array_agg(requests) as requests, array_agg(tokens) as tokens,
      array_agg(credential) filter (where is_elsewhere) as elsewhere
    from metered
  ), elsewhere as materialized (
    select settle_allowances(ids => one.ids, begun => one.begun, released => one.held, charges_in => one.charges) as done
    from (
      select array_agg((${of('allowances')})[credential]) as ids, array_agg(begun_at) as begun, array_agg(held) as held, array_agg(charge) as charges
      from ended cross join meters where credential = any (meters.elsewhere)
    ) one
    where one.ids is not null
  ), charged as (
    insert into charges (${CHARGE_COLUMNS})
    select id, account_id, credential_id, operation, case when voided then 'voided' else 'posted' end, held, charge, 0, used - charge, value, upstream_cost,
      executed, failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, locked.at,
      asked_model, route, end_user, end_user_label, tags, false
    from ended cross join locked
  ), noted as (
    insert into usage_tail (${USAGE_COLUMNS})
    select account_id, credential_id, locked.at, operation, asked_model, route, end_user, end_user_label, tags,
      count(*), count(*) filter (where failed), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charge)
    from ended cross join locked where executed
    group by account_id, credential_id, locked.at, operation, asked_model, route, end_user, end_user_label, tags
  )
  select ended.place, ended.charge, ended.used - ended.charge, money.free[array_position(money.places, ended.account)], locked.at::text,
    extract(epoch from locked.at)::float8, meters.started[at.place], meters.requests[at.place]::float8, meters.tokens[at.place]::float8
  from ended cross join locked cross join money cross join meters
  cross join lateral (select array_position(meters.places, ended.credential)) at (place)
  cross join (select count(*) from elsewhere) done`,
)

/** The same where every call is of another account, as when there is one: what is known of it is read once, and passed on from row to row. */
const END_EACH = createStatement(
  'end_fitting_calls_each',
  (of) => `with item as materialized (
    select item.*
    from unnest(${of('accounts')}, ${of('credentials')}, ${of('allowances')}, ${of('ids')}, ${of('amounts')}, ${of('voided')}, ${of('values')},
      ${of('upstream_costs')}, ${of('executed')}, ${of('failed')}, ${of('input_tokens')}, ${of('output_tokens')}, ${of('cache_read_tokens')},
      ${of('cache_write_tokens')}, ${of('routes')})
      with ordinality item (account_id, credential_id, allowance, id, used, voided, value, upstream_cost, is_executed, failed, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens, route, place)
    cross join lateral (
      select from accounts row where row.id = item.account_id and row.debt = 0 and row.promo = 0 and row.lapsed = 0 and calls_may_fit() limit 1 for no key update
    ) own
  ), locked as materialized (
    select clock_timestamp() as at from item having count(*) > 0
  ), ended as (
    delete from holds row using locked cross join item
    where row.id = any (array[item.id]) and case when row.account_id = item.account_id and row.credential_id = item.credential_id
      and row.allowances = case when item.allowance is null then '{}' else array[item.allowance] end
      and not row.claims and row.reserved_at is null and row.token_groups = '{all}' then true end
    returning item.*, locked.at, row.operation, row.amount as held, case when item.voided then 0 else least(item.used, row.amount) end as charge,
      row.tokens_estimated, row.allowances, row.at_once, row.begun_at, row.asked_model, row.end_user, row.end_user_label, row.tags
  ), released as (
    update accounts row set held = row.held - ended.held, charged = row.charged + ended.charge
    from ended where row.id = any (array[ended.account_id])
    returning ended.place, ended.credential_id, ended.allowance, ended.allowances, ended.held, ended.charge, ended.used, ended.begun_at, ended.at_once, ended.at,
      ended.input_tokens + ended.output_tokens + ended.cache_read_tokens + ended.cache_write_tokens - ended.tokens_estimated as difference,
      row.credited - row.charged - row.held as free
  ), metered as (
    update credentials row set
      calls_at_once = row.calls_at_once - released.at_once::integer,
      all_tokens = case when row.all_started_at <= released.begun_at then greatest(0, row.all_tokens + released.difference) else row.all_tokens end,
      budget_held = row.budget_held - case when ${PERIOD_STANDS}
        then released.held else 0 end,
      budget_charged = row.budget_charged + case when ${PERIOD_STANDS}
        then released.charge else 0 end
    from released where row.id = any (array[released.credential_id])
    returning released.place, released.charge, coalesce(released.used, 0) - released.charge as overrun, released.free, released.at,
      row.all_started_at as started_at, row.all_requests as requests, row.all_tokens as tokens,
      case when released.allowance is not null and (${PERIOD_STANDS}) is not true
        then settle_allowances(ids => released.allowances, begun => array[released.begun_at], released => array[released.held], charges_in => array[released.charge]) end as elsewhere
  ), charged as (
    insert into charges (${CHARGE_COLUMNS})
    select id, account_id, credential_id, operation, case when voided then 'voided' else 'posted' end, held, charge, 0, coalesce(used, 0) - charge, value, upstream_cost,
      is_executed or charge > 0, failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, at,
      asked_model, route, end_user, end_user_label, tags, false
    from ended
  ), noted as (
    insert into usage_tail (${USAGE_COLUMNS})
    select account_id, credential_id, at, operation, asked_model, route, end_user, end_user_label, tags,
      1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charge
    from ended where is_executed or charge > 0
  )
  select place::integer, charge, overrun, free, at::text, extract(epoch from at)::float8, extract(epoch from started_at)::float8, requests::float8, tokens::float8
  from metered`,
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

/**
 * Ends those that fit, and answers the others with undefined, or with the failure of their statement. Calls of one credential have to be of one budget. Those that are alone
 * of their account are ended beside the others.
 */
export async function endFitting(
  query: Query,
  items: readonly UsualEnding[],
): Promise<(Settlement | Failed | undefined)[]> {
  const { alone, others } = partAlone(items, ({ accountId }) => accountId)
  const answers = await Promise.all([
    answersOf(alone, async (some) => settled(some, await query(END_EACH(eachColumns(some))))),
    answersOf(others.groups.flat(), async (some) => settled(some, await query(END(manyColumns(some, others))))),
  ])
  const settlements = new Map(answers.flat())
  return items.map((item) => settlements.get(item))
}

function settled(items: readonly UsualEnding[], rows: Awaited<ReturnType<Query>>) {
  return rows.map((columns) => settlementIn(new Row(columns), items))
}

function eachColumns(items: readonly UsualEnding[]): readonly Column[] {
  return [
    ['accounts', 'uuid[]', items.map(({ accountId }) => accountId)],
    ['credentials', 'uuid[]', items.map(({ credentialId }) => credentialId)],
    ['allowances', 'uuid[]', items.map(({ call }) => call.hold.allowances[0] ?? null)],
    ...endingColumns(items.map(({ ending }) => ending)),
  ]
}

function manyColumns(items: readonly UsualEnding[], accounts: Groups<UsualEnding>): readonly Column[] {
  const credentials = groupBy(items, ({ credentialId }) => credentialId)
  return [
    ['accounts', 'uuid[]', accounts.ids],
    ['credentials', 'uuid[]', credentials.ids],
    ['allowances', 'uuid[]', credentials.groups.map(([{ call }]) => call.hold.allowances[0] ?? null)],
    ['call_accounts', 'integer[]', items.map(({ accountId }) => accounts.placeOf(accountId))],
    ['call_credentials', 'integer[]', items.map(({ credentialId }) => credentials.placeOf(credentialId))],
    ...endingColumns(items.map(({ ending }) => ending)),
  ]
}

function endingColumns(endings: readonly Ending[]): readonly Column[] {
  return [
    ['ids', 'uuid[]', endings.map(({ id }) => id)],
    ['amounts', 'bigint[]', endings.map(({ amount }) => amount)],
    ['voided', 'boolean[]', endings.map(({ amount, forgiven }) => forgiven || amount === null)],
    ['values', 'bigint[]', endings.map(({ usage }) => usage.value)],
    ['upstream_costs', 'bigint[]', endings.map(({ usage }) => usage.upstreamCost)],
    ['executed', 'boolean[]', endings.map(({ usage }) => usage.executed)],
    ['failed', 'boolean[]', endings.map(({ usage }) => usage.failed)],
    ['input_tokens', 'bigint[]', endings.map(({ usage }) => usage.inputTokens)],
    ['output_tokens', 'bigint[]', endings.map(({ usage }) => usage.outputTokens)],
    ['cache_read_tokens', 'bigint[]', endings.map(({ usage }) => usage.cacheReadTokens)],
    ['cache_write_tokens', 'bigint[]', endings.map(({ usage }) => usage.cacheWriteTokens)],
    ['routes', 'text[]', endings.map(({ route }) => route ?? null)],
  ]
}

function settlementIn(row: Row, items: readonly UsualEnding[]): readonly [UsualEnding, Settlement] {
  const item = items[row.number(0) - 1]
  if (item === undefined) throw new Error('end_fitting_calls names a call that it was not asked for')
  const { amount, forgiven, asked } = item.ending
  // Of a usual ending, every window is the one that counts all requests.
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
