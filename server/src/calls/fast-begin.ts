import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import type { Rates, Window } from '../limits/window.ts'
import { tagsText } from './begin-batch.ts'
import type { Call, Hold, Judgement } from './call.ts'
import { daysOf, groupBy } from './columns.ts'
import { arrayOf, createStatement, type Parameter, type Query, type RecordType, Row, recordsOf } from './query.ts'

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
 * A statement that waits for a lock, or changes a row, is given the row as it is then. A row that it only reads is as old as the statement. So everything that is
 * asked stands in a row that is locked or changed, but for the ids, which are looked up by a function that sees what is there now.
 *
 * A row is found by `id = any (array[…])`, and whatever else is asked of it stands in a case: no plan can then begin with all rows of a table, in the order of an index,
 * however few there are when it is made.
 */
const BEGIN = createStatement(
  'begin_fitting_calls',
  (of) => `with held as (
    update accounts row set held = row.held + item.amount from unnest(${of('accounts')}) item
    where row.id = any (array[item.id])
      and case when row.active and row.debt = 0 and row.credited - row.charged - row.held >= item.amount and calls_may_fit() then true end
    returning row.id, row.credited - row.charged - row.held + item.amount as free
  ), locked as materialized (
    select count(*)::integer as accounts, array_agg(id) as ids, array_agg(free) as free, clock_timestamp() as at,
      calls_are_new(ids => ${of('ids')}, days => ${of('days')}) as are_new
    from held
  ), fitting as (
    update credentials row set
      all_started_at = case when ${WINDOW_STANDS} then row.all_started_at else locked.at end,
      all_requests = case when ${WINDOW_STANDS} then row.all_requests else 0 end + item.calls,
      all_tokens = case when ${WINDOW_STANDS} then row.all_tokens else 0 end + item.tokens,
      calls_at_once = row.calls_at_once + item.places,
      budget_held = row.budget_held + case when item.allowance is null then 0 else item.amount end
    from locked cross join unnest(${of('credentials')}) with ordinality item
    where row.id = any (array[item.id]) and case when row.active and row.account_id = item.account_id
      and locked.are_new and (locked.accounts = cardinality(${of('accounts')}) or item.account_id = any (locked.ids))
      and (item.places = 0 or row.calls_at_once + item.places <= item.place_limit)
      and case when ${WINDOW_STANDS} then row.all_requests else 0 end + item.calls <= item.request_limit
      and (item.tokens = 0
        or case when ${WINDOW_STANDS} then row.all_tokens else 0 end + item.tokens <= item.token_limit)
      and ${BUDGET_FITS} then true end
    returning item.ordinality::integer as place, item.id, item.account_id, row.all_requests as requests, row.all_tokens as tokens,
      row.all_started_at + make_interval(secs => item.seconds) as resets_at
  ), fit as materialized (
    select count(*)::integer as credentials, array_agg(id) as ids from fitting
  ), begun as (
    insert into holds (${HOLD_COLUMNS})
    select item.id, item.account_id, item.credential_id, ${of('owner')}, item.operation, item.amount, item.terms,
      case when item.allowance is null then '{}' else array[item.allowance] end, '{all}', item.tokens, false, item.at_once, locked.at,
      item.model, item.end_user, item.end_user_label, item.tags::text[]
    from locked cross join fit cross join unnest(${of('calls')}) item
    where fit.credentials = cardinality(${of('credentials')}) or item.credential_id = any (fit.ids)
  ), given_back as materialized (
    select case when fit.credentials < cardinality(${of('credentials')})
      then give_back(credentials_in => ${of('credentials')}, held => locked.ids, kept => fit.ids) end
    from fit cross join locked
  )
  select fitting.place, locked.free[array_position(locked.ids, fitting.account_id)], fitting.requests::float8, fitting.tokens::float8,
    extract(epoch from fitting.resets_at)::float8, locked.at::text
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
  readonly first: UsualCall
  readonly calls: number
  readonly places: number
  readonly tokens: number
  readonly amount: bigint
  readonly requestLimit: number
  readonly tokenLimit: number
  readonly placeLimit: number
}

/** Composite types of PostgreSQL, which a migration makes. One that was released never changes: a statement that asks for something else takes a type of its own. */
export const ACCOUNT: RecordType<readonly [UsualCall, ...UsualCall[]]> = {
  name: 'account_to_begin',
  fields: [
    ['id', 'uuid[]', ([{ accountId }]) => accountId],
    ['amount', 'bigint[]', amountOf],
  ],
}

export const CREDENTIAL: RecordType<Sum> = {
  name: 'credential_to_begin',
  fields: [
    ['id', 'uuid[]', ({ first }) => first.credentialId],
    ['account_id', 'uuid[]', ({ first }) => first.accountId],
    ['allowance', 'uuid[]', ({ first }) => allowanceOf(first)],
    ['seconds', 'integer[]', ({ first }) => first.windows[0].seconds],
    ['calls', 'integer[]', ({ calls }) => calls],
    ['places', 'integer[]', ({ places }) => places],
    ['tokens', 'bigint[]', ({ tokens }) => tokens],
    ['amount', 'bigint[]', ({ amount }) => amount],
    ['request_limit', 'integer[]', ({ requestLimit }) => requestLimit],
    ['token_limit', 'bigint[]', ({ tokenLimit }) => tokenLimit],
    ['place_limit', 'integer[]', ({ placeLimit }) => placeLimit],
  ],
}

export const CALL: RecordType<UsualCall> = {
  name: 'call_to_begin',
  fields: [
    ['id', 'uuid[]', ({ id }) => id],
    ['account_id', 'uuid[]', ({ accountId }) => accountId],
    ['credential_id', 'uuid[]', ({ credentialId }) => credentialId],
    ['allowance', 'uuid[]', allowanceOf],
    ['operation', 'text[]', ({ operation }) => operation],
    ['amount', 'bigint[]', ({ hold }) => hold.amount],
    ['terms', 'text[]', ({ hold }) => hold.terms],
    ['tokens', 'bigint[]', ({ tokens }) => tokens],
    ['at_once', 'boolean[]', ({ claims }) => claims.length > 0],
    ['model', 'text[]', ({ attribution }) => attribution?.model ?? null],
    ['end_user', 'uuid[]', ({ attribution }) => attribution?.endUser?.id ?? null],
    ['end_user_label', 'text[]', ({ attribution }) => attribution?.endUser?.label ?? null],
    ['tags', 'text[]', ({ attribution }) => tagsText(attribution?.tags ?? [])],
  ],
}

function allowanceOf({ hold }: UsualCall): Id | null {
  return hold.allowances[0] ?? null
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
 * Begins those that fit, and answers the others with undefined. Calls of one credential have to be of one account and one budget, and to count in a window of one length.
 */
export async function beginFitting(
  query: Query,
  ownerId: Id,
  calls: readonly UsualCall[],
): Promise<(Judgement | undefined)[]> {
  const accounts = groupBy(calls, ({ accountId }) => accountId)
  const credentials = groupBy(calls, ({ credentialId }) => credentialId)
  const sums = new Map(credentials.map((own) => [own[0].credentialId, sumOf(own)]))
  const ids = calls.map(({ id }) => id)
  const parameters: Parameter[] = [
    ['owner', 'uuid', ownerId],
    arrayOf('ids', 'uuid[]', ids),
    arrayOf('days', 'date[]', daysOf(calls)),
    recordsOf('accounts', ACCOUNT, accounts),
    recordsOf('credentials', CREDENTIAL, [...sums.values()]),
    recordsOf('calls', CALL, calls),
  ]
  return judged(calls, await query(BEGIN(parameters)), sums)
}

const MOST_PLACES = 2 ** 31 - 1

function sumOf(calls: readonly [UsualCall, ...UsualCall[]]): Sum {
  const least = (limitOf: (call: UsualCall) => number) => Math.min(...calls.map(limitOf))
  return {
    first: calls[0],
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

/** The credentials that fit, of those that were asked for. There is a row without a place where none does. */
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
): (Judgement | undefined)[] {
  const fits = new Map(fitsIn(rows, [...sums.keys()]))
  const free = new Map<Id, bigint>()
  const counted = new Map<Id, Counted>()
  return calls.map((call) => {
    const { accountId, credentialId, hold, tokens } = call
    const [fit, sum] = [fits.get(credentialId), sums.get(credentialId)]
    if (fit === undefined || sum === undefined) return undefined
    const left = (free.get(accountId) ?? fit.free) - hold.amount
    free.set(accountId, left)
    const before = counted.get(credentialId) ?? { requests: fit.requests - sum.calls, tokens: fit.tokens - sum.tokens }
    const now = { requests: before.requests + 1, tokens: before.tokens + tokens }
    counted.set(credentialId, now)
    return begun(call, left, now, fit)
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
