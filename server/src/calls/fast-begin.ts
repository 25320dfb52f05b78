import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import type { Rates, Window } from '../limits/window.ts'
import { attributionColumns } from './begin-batch.ts'
import type { Call, Hold, Judgement } from './call.ts'
import { daysOf, type Groups, groupBy, partAlone } from './columns.ts'
import { answersOf, type Failed } from './failed.ts'
import { type Column, createStatement, type Query, Row } from './query.ts'

/** Whether the credential's window goes on. */
const WINDOW_STANDS = 'row.all_started_at + make_interval(secs => item.seconds) > locked.at'

/** One that was lowered below what was spoken for stays lowered when some of that comes free. */
const BUDGET_FITS = `(item.allowance is null or row.budget_id = item.allowance and locked.at >= row.budget_starts_at and locked.at < row.budget_ends_at
        and row.budget_charged + row.budget_held + item.amount <= least(row.budget_amount, row.budget_ceiling))`

const HOLD_COLUMNS = `id, account_id, credential_id, owner_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, at_once, begun_at,
  asked_model, end_user, end_user_label, tags`

/**
 * BEGIN in one statement, for calls that ask only for what stands in the rows of their account and their credential. It admits the calls of a credential together
 * or not at all: those that it does not admit it leaves as they are, and the judging function says what becomes of them.
 *
 * Whoever waits for a lock is given the row as it is then, and so is who changes a row. What a statement only reads is as old as the statement. So everything that is
 * asked stands in a row that is locked or changed, but for the ids, which are looked up by a function that sees what is there now.
 *
 * A row is found by `id = any (array[…])`, and whatever else is asked of it stands in a case: no plan can then begin with all rows of a table, in the order of an index,
 * however few there are when it is made.
 */
const BEGIN = createStatement(
  'begin_fitting_calls',
  (of) => `with free as materialized (
    select item.place::integer as place, own.free
    from unnest(${of('accounts')}, ${of('account_amounts')}) with ordinality item (id, amount, place)
    cross join lateral (
      select row.credited - row.charged - row.held as free from accounts row
      where row.id = item.id and row.active and row.debt = 0 and row.credited - row.charged - row.held >= item.amount and calls_may_fit()
      limit 1 for no key update
    ) own
  ), locked as materialized (
    select count(*)::integer as accounts, array_agg(place) as places, array_agg(free) as free, clock_timestamp() as at,
      calls_are_new(ids => ${of('ids')}, days => ${of('days')}) as are_new
    from free
  ), fitting as (
    update credentials row set
      all_started_at = case when ${WINDOW_STANDS} then row.all_started_at else locked.at end,
      all_requests = case when ${WINDOW_STANDS} then row.all_requests else 0 end + item.calls,
      all_tokens = case when ${WINDOW_STANDS} then row.all_tokens else 0 end + item.tokens,
      calls_at_once = row.calls_at_once + item.places,
      budget_held = row.budget_held + case when item.allowance is null then 0 else item.amount end
    from locked cross join unnest(${of('credentials')}, ${of('credential_accounts')}, ${of('seconds')}, ${of('calls')}, ${of('places')}, ${of('tokens')},
      ${of('amounts')}, ${of('allowances')}, ${of('request_limits')}, ${of('token_limits')}, ${of('place_limits')})
      with ordinality item (id, account, seconds, calls, places, tokens, amount, allowance, request_limit, token_limit, place_limit, place)
    where row.id = any (array[item.id]) and case when row.active and row.account_id = (${of('accounts')})[item.account]
      and locked.are_new and (locked.accounts = cardinality(${of('accounts')}) or item.account = any (locked.places))
      and (item.places = 0 or row.calls_at_once + item.places <= item.place_limit)
      and case when ${WINDOW_STANDS} then row.all_requests else 0 end + item.calls <= item.request_limit
      and (item.tokens = 0
        or case when ${WINDOW_STANDS} then row.all_tokens else 0 end + item.tokens <= item.token_limit)
      and ${BUDGET_FITS} then true end
    returning item.place::integer as place, item.account, item.amount, row.all_requests as requests, row.all_tokens as tokens,
      row.all_started_at + make_interval(secs => item.seconds) as resets_at
  ), held as (
    update accounts row set held = row.held + sums.amount
    from (select account, sum(amount)::bigint as amount from fitting group by account) sums
    where row.id = any (array[(${of('accounts')})[sums.account]])
  ), begun as (
    insert into holds (${HOLD_COLUMNS})
    select item.id, (${of('accounts')})[item.account], (${of('credentials')})[item.credential], ${of('owner')}, item.operation, item.amount, item.terms,
      array_remove(array[(${of('allowances')})[item.credential]], null), '{all}', item.tokens, false, item.at_once, locked.at,
      item.model, item.end_user, item.end_user_label, item.tags::text[]
    from locked cross join (select count(*)::integer as credentials, array_agg(place) as places from fitting) fit
    cross join unnest(${of('ids')}, ${of('call_accounts')}, ${of('call_credentials')}, ${of('operations')}, ${of('call_amounts')}, ${of('terms')},
      ${of('call_tokens')}, ${of('at_once')},
      ${of('call_models')}, ${of('call_end_users')}, ${of('call_end_user_labels')}, ${of('call_tags')})
      item (id, account, credential, operation, amount, terms, tokens, at_once, model, end_user, end_user_label, tags)
    where fit.credentials = cardinality(${of('credentials')}) or item.credential = any (fit.places)
  )
  select fitting.place, locked.free[array_position(locked.places, fitting.account)], fitting.requests::float8, fitting.tokens::float8,
    extract(epoch from fitting.resets_at)::float8, locked.at::text
  from fitting cross join locked`,
)

/** The same where every call is of another account, as when there is one: what it asks is read once, and passed on from row to row. */
const BEGIN_EACH = createStatement(
  'begin_fitting_calls_each',
  (of) => `with held as (
    update accounts row set held = row.held + item.amount
    from unnest(${of('accounts')}, ${of('call_amounts')}) with ordinality item (id, amount, place)
    where row.id = any (array[item.id])
      and case when row.active and row.debt = 0 and row.credited - row.charged - row.held >= item.amount and calls_may_fit() then true end
    returning item.place::integer as place, row.credited - row.charged - row.held as free
  ), locked as materialized (
    select count(*)::integer as accounts, array_agg(place) as places, array_agg(free) as free, clock_timestamp() as at,
      calls_are_new(ids => ${of('ids')}, days => ${of('days')}) as are_new
    from held
  ), fitting as (
    update credentials row set
      all_started_at = case when ${WINDOW_STANDS} then row.all_started_at else locked.at end,
      all_requests = case when ${WINDOW_STANDS} then row.all_requests else 0 end + 1,
      all_tokens = case when ${WINDOW_STANDS} then row.all_tokens else 0 end + item.tokens,
      calls_at_once = row.calls_at_once + item.at_once::integer,
      budget_held = row.budget_held + case when item.allowance is null then 0 else item.amount end
    from locked cross join unnest(${of('accounts')}, ${of('credentials')}, ${of('ids')}, ${of('operations')}, ${of('call_amounts')}, ${of('terms')}, ${of('allowances')},
      ${of('call_tokens')}, ${of('at_once')}, ${of('seconds')}, ${of('request_limits')}, ${of('token_limits')}, ${of('place_limits')},
      ${of('call_models')}, ${of('call_end_users')}, ${of('call_end_user_labels')}, ${of('call_tags')})
      with ordinality item (account_id, credential_id, id, operation, amount, terms, allowance, tokens, at_once, seconds, request_limit, token_limit, place_limit,
        model, end_user, end_user_label, tags, place)
    where row.id = any (array[item.credential_id]) and case when row.active and row.account_id = item.account_id
      and locked.are_new and (locked.accounts = cardinality(${of('accounts')}) or item.place = any (locked.places))
      and (not item.at_once or row.calls_at_once < item.place_limit)
      and case when ${WINDOW_STANDS}
        then row.all_requests < item.request_limit and (item.tokens = 0 or row.all_tokens + item.tokens <= item.token_limit)
        else item.request_limit > 0 and (item.tokens = 0 or item.tokens <= item.token_limit) end
      and ${BUDGET_FITS} then true end
    returning item.*, row.all_requests as requests, row.all_tokens as now_tokens, row.all_started_at as started_at
  ), begun as (
    insert into holds (${HOLD_COLUMNS})
    select id, account_id, credential_id, ${of('owner')}, operation, amount, terms, case when allowance is null then '{}' else array[allowance] end, '{all}', tokens,
      false, at_once, locked.at, model, end_user, end_user_label, tags::text[]
    from locked cross join fitting
  ), fit as materialized (
    select count(*) as credentials, array_agg(place::integer) as places from fitting
  ), given_back as materialized (
    select case when fit.credentials < locked.accounts
      then give_back(accounts_in => ${of('accounts')}, amounts => ${of('call_amounts')}, held => locked.places, kept => fit.places) end
    from fit cross join locked
  )
  select place::integer, locked.free[array_position(locked.places, place::integer)] + amount, requests::float8, now_tokens::float8,
    extract(epoch from started_at + make_interval(secs => seconds))::float8, locked.at::text
  from given_back cross join locked left join fitting on true`,
)

/** What a process can see of a call that may fit: it has a hold, the window of all requests, at most a place among the calls at once, and at most its own budget. */
export type UsualCall = Call & { readonly hold: Hold; readonly windows: readonly [CountingWindow] }
type CountingWindow = Window & { readonly tokenLimit: number }

export function isUsual(call: Call): call is UsualCall {
  const { hold, task, windows, claims } = call
  if (hold === null || task !== undefined || windows.length !== 1 || claims.length > 1) return false
  const [window] = windows
  const [claim] = claims
  return (
    window?.group === ALL &&
    window.tokenLimit !== null &&
    (claim === undefined || (claim.scope === CALLS_AT_ONCE && claim.key === ALL)) &&
    (hold.allowances.length === 0 || (hold.allowances.length === 1 && hold.own === hold.allowances[0]))
  )
}

const ALL = 'all'
const CALLS_AT_ONCE = 'concurrency'

/** What the calls of a credential ask together. The tightest of their limits is asked: what fits into it fits into all. */
type Sum = {
  readonly calls: number
  readonly places: number
  readonly tokens: number
  readonly amount: bigint
  readonly requestLimit: number
  readonly tokenLimit: number
  readonly placeLimit: number
}

/** How a credential stands once all its calls have begun, and what its account had free before. */
type Fit = {
  readonly free: bigint
  readonly requests: number
  readonly tokens: number
  readonly resetAtMs: number
  readonly at: string
}

/**
 * Begins those that fit, and answers the others with undefined, or with the failure of their statement. Calls of one credential have to be of one account and one budget, and to count in a window of one
 * length. Calls that are alone of their account are begun beside the others: nothing is shared by two accounts.
 */
export async function beginFitting(
  query: Query,
  ownerId: Id,
  calls: readonly UsualCall[],
): Promise<(Judgement | Failed | undefined)[]> {
  const { alone, others } = partAlone(calls, ({ accountId }) => accountId)
  const answers = await Promise.all([
    answersOf(alone, (some) => beginEach(query, ownerId, some)),
    answersOf(others.groups.flat(), (some) => beginMany(query, ownerId, some, others)),
  ])
  const judgements = new Map(answers.flat())
  return calls.map((call) => judgements.get(call))
}

type Judged = readonly (readonly [UsualCall, Judgement])[]

async function beginEach(query: Query, ownerId: Id, calls: readonly UsualCall[]): Promise<Judged> {
  const rows = await query(BEGIN_EACH(eachColumns(calls, ownerId)))
  return fitsIn(rows, calls).map(([call, fit]) => [call, begun(call, fit.free - call.hold.amount, fit, fit)])
}

async function beginMany(
  query: Query,
  ownerId: Id,
  calls: readonly UsualCall[],
  accounts: Groups<UsualCall>,
): Promise<Judged> {
  const credentials = groupBy(calls, ({ credentialId }) => credentialId)
  const sums = new Map(credentials.groups.map((own) => [own[0].credentialId, sumOf(own)]))
  const columns = [...sumColumns(calls, accounts, credentials, [...sums.values()]), ...callColumns(calls, ownerId)]
  return judged(calls, await query(BEGIN(columns)), sums)
}

const MOST_PLACES = 2 ** 31 - 1

function sumOf(calls: readonly UsualCall[]): Sum {
  const least = (limitOf: (call: UsualCall) => number) => Math.min(...calls.map(limitOf))
  return {
    calls: calls.length,
    places: calls.reduce((sum, { claims }) => sum + claims.length, 0),
    tokens: calls.reduce((sum, { tokens }) => sum + tokens, 0),
    amount: amountOf(calls),
    requestLimit: least(({ windows: [window] }) => window.requestLimit),
    tokenLimit: least(({ windows: [window] }) => window.tokenLimit),
    placeLimit: least(({ claims: [claim] }) => claim?.limit ?? MOST_PLACES),
  }
}

function amountOf(calls: readonly UsualCall[]): bigint {
  return calls.reduce((sum, { hold }) => sum + hold.amount, 0n)
}

function sumColumns(
  calls: readonly UsualCall[],
  accounts: Groups<UsualCall>,
  credentials: Groups<UsualCall>,
  sums: readonly Sum[],
): readonly Column[] {
  const firsts = credentials.groups.map(([first]) => first)
  return [
    ['accounts', 'uuid[]', accounts.ids],
    ['account_amounts', 'bigint[]', accounts.groups.map(amountOf)],
    ['credentials', 'uuid[]', credentials.ids],
    ['credential_accounts', 'integer[]', firsts.map(({ accountId }) => accounts.placeOf(accountId))],
    ['seconds', 'integer[]', firsts.map(({ windows: [{ seconds }] }) => seconds)],
    ['calls', 'integer[]', sums.map((sum) => sum.calls)],
    ['places', 'integer[]', sums.map((sum) => sum.places)],
    ['tokens', 'bigint[]', sums.map((sum) => sum.tokens)],
    ['amounts', 'bigint[]', sums.map((sum) => sum.amount)],
    ['allowances', 'uuid[]', firsts.map(({ hold }) => hold.allowances[0] ?? null)],
    ['request_limits', 'integer[]', sums.map((sum) => sum.requestLimit)],
    ['token_limits', 'bigint[]', sums.map((sum) => sum.tokenLimit)],
    ['place_limits', 'integer[]', sums.map((sum) => sum.placeLimit)],
    ['call_accounts', 'integer[]', calls.map(({ accountId }) => accounts.placeOf(accountId))],
    ['call_credentials', 'integer[]', calls.map(({ credentialId }) => credentials.placeOf(credentialId))],
  ]
}

/** Those of calls that are each alone of their account, in the order of its id. */
function eachColumns(calls: readonly UsualCall[], ownerId: Id): Parameters<typeof BEGIN_EACH>[0] {
  return [
    ['accounts', 'uuid[]', calls.map(({ accountId }) => accountId)],
    ['credentials', 'uuid[]', calls.map(({ credentialId }) => credentialId)],
    ['allowances', 'uuid[]', calls.map(({ hold }) => hold.allowances[0] ?? null)],
    ['seconds', 'integer[]', calls.map(({ windows: [{ seconds }] }) => seconds)],
    ['request_limits', 'integer[]', calls.map(({ windows: [{ requestLimit }] }) => requestLimit)],
    ['token_limits', 'bigint[]', calls.map(({ windows: [{ tokenLimit }] }) => tokenLimit)],
    ['place_limits', 'integer[]', calls.map(({ claims: [claim] }) => claim?.limit ?? MOST_PLACES)],
    ...callColumns(calls, ownerId),
  ]
}

function callColumns(calls: readonly UsualCall[], ownerId: Id): Parameters<typeof BEGIN>[0] {
  return [
    ['owner', 'uuid', ownerId],
    ['days', 'date[]', daysOf(calls)],
    ['ids', 'uuid[]', calls.map(({ id }) => id)],
    ['operations', 'text[]', calls.map(({ operation }) => operation)],
    ['call_amounts', 'bigint[]', calls.map(({ hold }) => hold.amount)],
    ['terms', 'text[]', calls.map(({ hold }) => hold.terms)],
    ['call_tokens', 'bigint[]', calls.map(({ tokens }) => tokens)],
    ['at_once', 'boolean[]', calls.map(({ claims }) => claims.length > 0)],
    ...attributionColumns(calls),
  ]
}

/** Who of those that were asked for fits. There is a row without a place where none does. */
function fitsIn<T>(rows: readonly (readonly unknown[])[], asked: readonly T[]): (readonly [T, Fit])[] {
  return rows.flatMap((columns) => {
    const row = new Row(columns)
    if (row.isNull(0)) return []
    const one = asked[row.number(0) - 1]
    if (one === undefined) throw new Error('begin_fitting_calls names a place that it was not asked for')
    const [free, requests, tokens] = [row.bigint(1), row.number(2), row.number(3)]
    return [[one, { free, requests, tokens, resetAtMs: row.number(4) * 1_000, at: row.text(5) }]]
  })
}

/** As if those that fit had been judged one after the other, in the order of arrival. */
function judged(
  calls: readonly UsualCall[],
  rows: readonly (readonly unknown[])[],
  sums: ReadonlyMap<Id, Sum>,
): (readonly [UsualCall, Judgement])[] {
  const fits = new Map(fitsIn(rows, [...sums.keys()]))
  const free = new Map<Id, bigint>()
  const counted = new Map<Id, Counted>()
  return calls.flatMap((call) => {
    const { accountId, credentialId, hold, tokens } = call
    const [fit, sum] = [fits.get(credentialId), sums.get(credentialId)]
    if (fit === undefined || sum === undefined) return []
    const left = (free.get(accountId) ?? fit.free) - hold.amount
    free.set(accountId, left)
    const before = counted.get(credentialId) ?? { requests: fit.requests - sum.calls, tokens: fit.tokens - sum.tokens }
    const now = { requests: before.requests + 1, tokens: before.tokens + tokens }
    counted.set(credentialId, now)
    return [[call, begun(call, left, now, fit)] as const]
  })
}

type Counted = { readonly requests: number; readonly tokens: number }

function begun(call: UsualCall, free: bigint, { requests, tokens }: Counted, { resetAtMs, at }: Fit): Judgement {
  const [{ requestLimit, tokenLimit }] = call.windows
  const rates: Rates = {
    requests: { limit: requestLimit, left: Math.max(0, requestLimit - requests), resetAtMs },
    tokens: { limit: tokenLimit, left: Math.max(0, tokenLimit - tokens), resetAtMs },
  }
  return { outcome: 'begun', free: nanos(free), rates, judgedAt: at }
}
