import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import type { Window } from '../limits/window.ts'
import { type Begun, type Call, type Claim, type Judgement, type Refused, TAGS_LIMIT, type Tag } from './call.ts'
import { arrayText, daysOf, Positions } from './columns.ts'
import { type Beside, type Column, createCall, type Query, Row } from './query.ts'
import { RATES_SELECT, ratesIn } from './rates.ts'

const SELECT = `outcome, free, subject, allowance_left, holder, ${RATES_SELECT}, judged_at::text, refusing::text`

const callOf = createCall('begin_attributed_calls', SELECT)

/** The rows of those that are tasks are made by the same statement: there is no call without its task, nor the other way. */
const TASKS: Beside = {
  name: 'with_tasks',
  also: ({ items }) => `insert into tasks (id, account_id, credential_id, model, prompt, state, created_at)
    select item.id, item.account_id, item.credential_id, item.model, item.prompt, 'CREATING', result.judged_at
    from ${items}
    join result on result.ordinality = item.place
    where result.outcome = 'begun'
    on conflict (id) do nothing returning id`,
}

/** The running period of a credential's own budget is put into the credential's row, so that the next call finds all that its credential has in one place. */
const BUDGETS: Beside = {
  name: 'with_budgets',
  also: ({ items }) => `select meter_budget(credential => one.credential_id, allowance => one.allowance_id) from (
      select distinct item.credential_id, item.allowance_id
      from ${items}
      join result on result.ordinality = item.place
      where result.outcome = 'begun'
    ) one`,
}

const callWithTasksOf = createCall('begin_attributed_calls', SELECT, [TASKS])
const callWithBudgetsOf = createCall('begin_attributed_calls', SELECT, [BUDGETS])
const callWithBothOf = createCall('begin_attributed_calls', SELECT, [TASKS, BUDGETS])

/** One statement for many calls. No id may stand in a batch twice. Of `metered` it puts the budgets to their credentials, where they begin. */
export async function beginBatch(
  query: Query,
  ownerId: Id,
  calls: readonly Call[],
  metered: readonly Call[] = [],
): Promise<Judgement[]> {
  const columns = encode(calls)
  const hasTasks = calls.some(({ task }) => task !== undefined)
  const beside = [
    ...(hasTasks ? [taskColumns(calls)] : []),
    ...(metered.length > 0 ? [budgetColumns(calls, metered)] : []),
  ]
  const withBudgets = hasTasks ? callWithBothOf : callWithBudgetsOf
  const without = hasTasks ? callWithTasksOf : callOf
  const rows = await query((metered.length > 0 ? withBudgets : without)(columns, beside, ownerId))
  return calls.map((call, at) => decode(call, new Row(rows[at])))
}

function budgetColumns(calls: readonly Call[], metered: readonly Call[]): Column[] {
  return [
    ['place', 'integer[]', metered.map((call) => calls.indexOf(call) + 1)],
    ['credential_id', 'uuid[]', metered.map(({ credentialId }) => credentialId)],
    ['allowance_id', 'uuid[]', metered.map(({ hold }) => hold?.own ?? null)],
  ]
}

function taskColumns(calls: readonly Call[]): Column[] {
  const tasks = calls.flatMap((call, at) => (call.task === undefined ? [] : [{ ...call, ...call.task, place: at + 1 }]))
  return [
    ['place', 'integer[]', tasks.map(({ place }) => place)],
    ['id', 'uuid[]', tasks.map(({ id }) => id)],
    ['account_id', 'uuid[]', tasks.map(({ accountId }) => accountId)],
    ['credential_id', 'uuid[]', tasks.map(({ credentialId }) => credentialId)],
    ['model', 'text[]', tasks.map(({ model }) => model)],
    ['prompt', 'bytea[]', tasks.map(({ prompt }) => prompt)],
  ]
}

/** Names each thing that the batch touches once; calls refer to it by position. */
function encode(calls: readonly Call[]): Column[] {
  const accounts = new Positions<Id>()
  const credentials = new Positions<Id>()
  const names = new Positions<string>()
  const callAccounts = calls.map((call) => accounts.of(call.accountId, call.accountId))
  const callCredentials = calls.map((call) => credentials.of(call.credentialId, call.credentialId))
  const own = ({ credentialId }: Call, name: string) =>
    joined(credentials.of(credentialId, credentialId), names.of(name, name))
  const windows = asks(
    calls,
    ({ windows }) => windows,
    (call, { group }) => own(call, group),
  )
  // An allowance may be shared by credentials; windows and claims are each credential's own.
  const allowances = asks(calls, allowancesOf, (_, id) => id)
  const claims = asks(
    calls,
    (call) => call.claims,
    (call, { scope, key }) => joined(own(call, scope), names.of(key, key)),
  )
  return [
    ['accounts_in', 'uuid[]', accounts.values],
    ['credentials_in', 'uuid[]', credentials.values],
    ['window_credentials', 'uuid[]', windows.distinct.map(({ call }) => call.credentialId)],
    ['window_groups', 'text[]', windows.distinct.map(({ item }) => item.group)],
    ['window_seconds', 'integer[]', windows.distinct.map(({ item }) => item.seconds)],
    ['allowances_in', 'uuid[]', allowances.distinct.map(({ item }) => item)],
    ['set_credentials', 'uuid[]', claims.distinct.map(({ call }) => call.credentialId)],
    ['set_scopes', 'text[]', claims.distinct.map(({ item }) => item.scope)],
    ['set_keys', 'text[]', claims.distinct.map(({ item }) => item.key)],
    ['call_days', 'date[]', daysOf(calls)],
    ['call_ids', 'uuid[]', calls.map(({ id }) => id)],
    ['call_accounts', 'integer[]', callAccounts],
    ['call_credentials', 'integer[]', callCredentials],
    ['call_holds', 'boolean[]', calls.map(({ hold }) => hold !== null)],
    ['call_amounts', 'bigint[]', calls.map(({ hold }) => hold?.amount ?? 0n)],
    ['call_tokens', 'bigint[]', calls.map(({ tokens }) => tokens)],
    ['call_operations', 'text[]', calls.map(({ operation }) => operation)],
    ['call_terms', 'text[]', calls.map(({ hold }) => hold?.terms ?? '')],
    ['call_allowances', 'text[]', calls.map((call) => textOf(allowancesOf(call)))],
    ['call_token_groups', 'text[]', calls.map(({ windows }) => tokenGroups(windows))],
    ...attributionColumns(calls),
    ['ask_windows_to', 'integer[]', windows.to],
    ['ask_windows', 'integer[]', windows.places],
    ['ask_request_limits', 'integer[]', windows.items.map(({ requestLimit }) => requestLimit)],
    ['ask_token_limits', 'bigint[]', windows.items.map(({ tokenLimit }) => tokenLimit)],
    ['ask_allowances_to', 'integer[]', allowances.to],
    ['ask_allowances', 'integer[]', allowances.places],
    ['ask_sets_to', 'integer[]', claims.to],
    ['ask_sets', 'integer[]', claims.places],
    ['ask_set_limits', 'integer[]', claims.items.map(({ limit }) => limit)],
    ['ask_fingerprints', 'text[]', claims.items.map(({ fingerprint }) => fingerprint)],
    ['ask_keep_seconds', 'integer[]', claims.items.map(({ keepSeconds }) => keepSeconds)],
    ['ask_ends_with_owner', 'boolean[]', claims.items.map(({ endsWithOwner }) => endsWithOwner)],
  ]
}

/** Empty of a batch in which nothing of it is known. */
function attributionColumns(calls: readonly Call[]): Column[] {
  const some = calls.some(({ attribution }) => attribution !== undefined) ? calls : []
  return [
    ['call_models', 'text[]', some.map(({ attribution }) => attribution?.model ?? null)],
    ['call_end_users', 'uuid[]', some.map(({ attribution }) => attribution?.endUser?.id ?? null)],
    ['call_end_user_labels', 'text[]', some.map(({ attribution }) => attribution?.endUser?.label ?? null)],
    ['call_tags', 'text[]', some.map(({ attribution }) => tagsText(attribution?.tags ?? []))],
  ]
}

/** As PostgreSQL has them: name=value, in the order of their names. */
export function tagsText(tags: readonly Tag[]): string | null {
  if (tags.length === 0) return null
  if (tags.length > TAGS_LIMIT) throw new Error(`a call has at most ${TAGS_LIMIT} tags`)
  const names = tags.map(({ name }) => name)
  if (new Set(names).size < names.length) throw new Error('a call names a tag once')
  if (names.some((name) => name === '' || name.includes('='))) throw new Error('the name of a tag has no equals sign')
  // In sums, an empty one stands for all values of the tag.
  if (tags.some(({ value }) => value === '')) throw new Error('the value of a tag is not empty')
  return arrayText(tags.map(({ name, value }) => `${name}=${value}`).sort())
}

/** What all calls ask of one kind, flattened: `to[i]` is where the items of call i end, counted from 1. */
function asks<T>(
  calls: readonly Call[],
  itemsOf: (call: Call) => readonly T[],
  nameOf: (call: Call, item: T) => string | number,
) {
  const positions = new Positions<{ readonly call: Call; readonly item: T }>()
  const items: T[] = []
  const places: number[] = []
  const to: number[] = []
  for (const call of calls) {
    for (const item of itemsOf(call)) {
      places.push(positions.of(nameOf(call, item), { call, item }))
      items.push(item)
    }
    to.push(items.length)
  }
  return { distinct: positions.values, items, places, to }
}

/** Each once: an allowance that is named twice is still one ceiling. */
function allowancesOf({ hold }: Call): readonly Id[] {
  const all = hold?.allowances ?? []
  return all.length < 2 ? all : [...new Set(all)]
}

/** More than a batch has of anything. */
const PLACES = 65_536

/** Two positions as one number, so that two different pairs never share a position. */
function joined(position: number, inner: number): number {
  return position * PLACES + inner
}

/** Callers have the same allowances from call to call, and operations the same windows. */
const texts = new WeakMap<readonly unknown[], string>()

function textOf(ids: readonly Id[]): string {
  return known(ids, () => arrayText(ids))
}

/** Those that count tokens. */
function tokenGroups(windows: readonly Window[]): string {
  return known(windows, () => arrayText(windows.flatMap(({ tokenLimit, group }) => (tokenLimit === null ? [] : group))))
}

function known(of: readonly unknown[], make: () => string): string {
  const text = texts.get(of)
  if (text !== undefined) return text
  const made = make()
  texts.set(of, made)
  return made
}

function decode(call: Call, row: Row): Judgement {
  return {
    ...verdict(call, row),
    free: nanos(row.isNull(1) ? 0n : row.bigint(1)),
    rates: ratesIn(row, 5),
    judgedAt: row.text(11),
  }
}

function verdict(call: Call, row: Row): Begun | Refused {
  const outcome = row.text(0)
  switch (outcome) {
    case 'begun':
    case 'ended':
    case 'account_unknown':
    case 'account_inactive':
    case 'account_suspended':
    case 'credential_inactive':
    case 'money_spent':
      return { outcome }
    case 'requests_spent':
    case 'tokens_spent':
      return { outcome, window: pick<Window>(call.windows, row) }
    case 'claim_taken':
    case 'claim_differs':
      return { outcome, claim: pick<Claim>(call.claims, row), holder: row.isNull(4) ? null : row.text(4) }
    case 'allowance_spent':
      return {
        ...{ outcome, allowanceId: pick(allowancesOf(call), row), left: nanos(row.bigint(3)) },
        refusing: placesIn(row.text(12)).map((place) => at(allowancesOf(call), place)),
      }
    default:
      throw new Error(`begin_attributed_calls answered ${outcome}, which is no outcome`)
  }
}

/** An array of numbers as PostgreSQL writes it. */
function placesIn(text: string): readonly number[] {
  return text.slice(1, -1).split(',').map(Number)
}

function pick<T>(items: readonly T[], row: Row): T {
  return at(items, row.number(2))
}

function at<T>(items: readonly T[], place: number): T {
  const item = items[place]
  if (item === undefined) throw new Error('begin_attributed_calls names something that the call did not ask for')
  return item
}
