import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import type { Window } from '../limits/window.ts'
import { RESULT_COLUMNS } from '../storage/task-results.ts'
import type { Ending, Settlement, TaskEnd } from './call.ts'
import { daysOf, Positions } from './columns.ts'
import { type Beside, type Column, createCall, type Query, Row } from './query.ts'
import { ratesOf, WINDOWS_SELECT, type WindowStates, windowKey, windowsIn } from './rates.ts'

const SELECT = `outcome, charged, overrun, free, ended_now, settled_at::text, date_part('epoch', settled_at),
  ${WINDOWS_SELECT}`

/**
 * The state of a task, its money and its place among those at once change together. Whoever ends a call first ends its task;
 * for the others it has ended. Rows are locked in the order of their ids, as by whoever reschedules some.
 */
const TASKS: Beside = {
  name: 'with_tasks',
  also: ({ of }) => `select end_tasks_at(
      task_ids => ${of('id')}, states => ${of('state')}, codes => ${of('code')}, messages => ${of('message')},
      ${RESULT_COLUMNS.map(({ argument, column }) => `${argument} => ${of(column)}`).join(', ')},
      scheduled_seconds => ${of('scheduled_seconds')}, ended_seconds => ${of('ended_seconds')}, ended_now =>
      (select array_agg(result.ended_now order by item.place)
       from unnest(${of('place')}) with ordinality item (call, place) join result on result.ordinality = item.call),
      at => (select max(settled_at) from result))`,
}

/**
 * A loss is written with the end of its call, and once: by whoever ends it. It is never more than what the call overran, whatever
 * was made of it since it was judged. Batches without a loss do not have this part at all.
 */
const LOSSES: Beside = {
  name: 'with_losses',
  also: ({ items }) => `insert into losses (id, account_id, route, nanos, claim, at)
      select item.id, item.account_id, item.route, least(item.nanos, result.overrun), item.claim, result.settled_at
      from ${items}
      join result on result.ordinality = item.place
      where result.ended_now and least(item.nanos, result.overrun) > 0
      returning id`,
}

const callOf = createCall('end_attributed_calls', SELECT)
const callWithTasksOf = createCall('end_attributed_calls', SELECT, [TASKS])
const callWithLossesOf = createCall('end_attributed_calls', SELECT, [LOSSES])
const callWithBothOf = createCall('end_attributed_calls', SELECT, [TASKS, LOSSES])

/** One statement for the ends of many calls, each answered for itself. No id may stand in a batch twice. */
export async function endBatch(query: Query, endings: readonly Ending[]): Promise<(Settlement | Error)[]> {
  const columns = encode(endings)
  const hasTasks = endings.some(({ task }) => task !== undefined)
  const hasLosses = endings.some(({ loss }) => loss !== undefined)
  const beside = [...(hasTasks ? [taskColumns(endings)] : []), ...(hasLosses ? [lossColumns(endings)] : [])]
  const withLosses = hasTasks ? callWithBothOf : callWithLossesOf
  const without = hasTasks ? callWithTasksOf : callOf
  const rows = await query((hasLosses ? withLosses : without)(columns, beside))
  const windows = windowsIn(new Row(rows[0]), 7)
  return endings.map((ending, at) => decode(ending, new Row(rows[at]), windows))
}

function lossColumns(endings: readonly Ending[]): Column[] {
  const losses = endings.flatMap(({ id, accountId, loss }, at) =>
    loss === undefined ? [] : [{ id, accountId, place: at + 1, ...loss }],
  )
  return [
    ['place', 'integer[]', losses.map(({ place }) => place)],
    ['id', 'uuid[]', losses.map(({ id }) => id)],
    ['account_id', 'uuid[]', losses.map(({ accountId }) => accountId)],
    ['route', 'text[]', losses.map(({ route }) => route)],
    ['nanos', 'bigint[]', losses.map(({ nanos: lost }) => lost)],
    ['claim', 'bigint[]', losses.map(({ claim }) => claim)],
  ]
}

function taskColumns(endings: readonly Ending[]): Column[] {
  const tasks = endings.flatMap(({ id, task }, at) =>
    task === undefined ? [] : [{ id, place: at + 1, ...whole(task) }],
  )
  return [
    ['place', 'integer[]', tasks.map(({ place }) => place)],
    ['id', 'uuid[]', tasks.map(({ id }) => id)],
    ['state', 'text[]', tasks.map(({ state }) => state)],
    ...RESULT_COLUMNS.map(
      ({ column, type }): Column => [column, type, tasks.map(({ result }) => result?.[column] ?? null)],
    ),
    ['code', 'text[]', tasks.map(({ code }) => code)],
    ['message', 'text[]', tasks.map(({ message }) => message)],
    ['scheduled_seconds', 'float8[]', tasks.map(({ times }) => times?.scheduledSeconds ?? null)],
    ['ended_seconds', 'float8[]', tasks.map(({ times }) => times?.endedSeconds ?? null)],
  ]
}

function whole(task: TaskEnd) {
  return { result: null, code: null, message: null, ...task }
}

function encode(endings: readonly Ending[]): Column[] {
  const accounts = new Positions<string>()
  for (const { accountId } of endings) accounts.of(accountId, accountId)
  const windows = distinctWindows(endings)
  return [
    ['accounts_in', 'uuid[]', accounts.values],
    ['call_days', 'date[]', daysOf(endings)],
    ['call_ids', 'uuid[]', endings.map(({ id }) => id)],
    ['call_accounts', 'uuid[]', endings.map(({ accountId }) => accountId)],
    ['call_amounts', 'bigint[]', endings.map(({ amount }) => amount)],
    ['call_forgiven', 'boolean[]', endings.map(({ forgiven }) => forgiven)],
    ['call_values', 'bigint[]', endings.map(({ usage }) => usage.value)],
    ['call_upstream_costs', 'bigint[]', endings.map(({ usage }) => usage.upstreamCost)],
    ['call_executed', 'boolean[]', endings.map(({ usage }) => usage.executed)],
    ['call_failed', 'boolean[]', endings.map(({ usage }) => usage.failed)],
    ['call_input_tokens', 'bigint[]', endings.map(({ usage }) => usage.inputTokens)],
    ['call_output_tokens', 'bigint[]', endings.map(({ usage }) => usage.outputTokens)],
    ['call_cache_read_tokens', 'bigint[]', endings.map(({ usage }) => usage.cacheReadTokens)],
    ['call_cache_write_tokens', 'bigint[]', endings.map(({ usage }) => usage.cacheWriteTokens)],
    ['call_routes', 'text[]', routesOf(endings)],
    ['ask_credentials', 'uuid[]', windows.map(({ credentialId }) => credentialId)],
    ['ask_groups', 'text[]', windows.map(({ window }) => window.group)],
    ['ask_counts_tokens', 'boolean[]', windows.map(({ window }) => window.tokenLimit !== null)],
  ]
}

/** Empty of a batch in which nobody was asked. */
function routesOf(endings: readonly Ending[]): readonly (string | null)[] {
  const some = endings.some(({ route }) => route !== undefined) ? endings : []
  return some.map(({ route }) => route ?? null)
}

/** The windows of all calls, each once. */
function distinctWindows(endings: readonly Ending[]) {
  const windows = new Positions<{ readonly credentialId: Id; readonly window: Window }>()
  for (const { asked } of endings) {
    if (asked === undefined) continue
    const { credentialId } = asked
    for (const window of asked.windows) windows.of(windowKey(credentialId, window.group), { credentialId, window })
  }
  return windows.values
}

function decode({ asked }: Ending, row: Row, windows: WindowStates): Settlement | Error {
  const outcome = row.text(0)
  if (outcome === 'misplaced') return new Error('a call can only be ended for the account that it was begun for')
  if (outcome !== 'posted' && outcome !== 'voided')
    throw new Error(`end_attributed_calls answered ${outcome}, which is no outcome`)
  return {
    outcome,
    charged: nanos(row.bigint(1)),
    overrun: nanos(row.bigint(2)),
    free: nanos(row.bigint(3)),
    endedNow: row.boolean(4),
    settledAt: row.text(5),
    rates:
      asked === undefined
        ? null
        : ratesOf(asked.windows, (group) => windows.get(windowKey(asked.credentialId, group)), row.number(6)),
  }
}
