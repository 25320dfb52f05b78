import { nanos } from '../kernel/money.ts'
import type { Ending, Settlement, TaskEnd } from './call.ts'
import { bytesLiteral, daysOf, literal, Positions, textLiteral } from './columns.ts'
import { type Column, callOf, type Query, Row, type Statement } from './query.ts'

const SELECT = 'outcome, charged, overrun, free, ended_now, settled_at::text'

/** One statement for the ends of many calls, each answered for itself. No id may stand in a batch twice. */
export async function endBatch(query: Query, endings: readonly Ending[]): Promise<(Settlement | Error)[]> {
  const columns = encode(endings)
  const hasTasks = endings.some(({ task }) => task !== undefined)
  const rows = await query(hasTasks ? withTasks(columns, endings) : callOf('end_calls', SELECT, columns))
  return endings.map((_, at) => decode(new Row(rows[at])))
}

/**
 * The state of a task, its money and its place among those at once change together. Whoever ends a call first ends its task;
 * for the others it has ended. Rows are locked in the order of their ids, as by whoever reschedules some.
 */
function withTasks(columns: readonly Column[], endings: readonly Ending[]): Statement {
  const tasks = endings.flatMap(({ id, task }, at) =>
    task === undefined ? [] : [{ id, place: at + 1, ...whole(task) }],
  )
  return callOf('end_calls', SELECT, columns, {
    name: 'end_calls_with_tasks',
    columns: [
      ['integer[]', literal(tasks.map(({ place }) => place))],
      ['uuid[]', literal(tasks.map(({ id }) => id))],
      ['text[]', textLiteral(tasks.map(({ state }) => state))],
      ['bytea[]', bytesLiteral(tasks.map(({ videoUrl }) => videoUrl))],
      ['float8[]', literal(tasks.map(({ seconds }) => seconds))],
      ['integer[]', literal(tasks.map(({ videos }) => videos))],
      ['integer[]', literal(tasks.map(({ resolution }) => resolution))],
      ['text[]', textLiteral(tasks.map(({ code }) => code))],
      ['text[]', textLiteral(tasks.map(({ message }) => message))],
    ],
    also: (parameters) => `update tasks set
        state = item.state, video_url = item.video_url, seconds = item.seconds, videos = item.videos,
        resolution = item.resolution, code = item.code, message = item.message,
        prompt = case when item.state = 'SUCCEEDED' then tasks.prompt end,
        next_poll_at = null, ended_at = item.ended_at
      from (
        select result.settled_at as ended_at, item.*
        from unnest(${parameters})
          item (place, id, state, video_url, seconds, videos, resolution, code, message)
        join result on result.ordinality = item.place and result.ended_now
        join tasks on tasks.id = item.id and tasks.ended_at is null
        order by item.id for no key update of tasks
      ) item
      where tasks.id = item.id`,
  })
}

function whole(task: TaskEnd) {
  const nothing = { videoUrl: null, seconds: null, videos: null, resolution: null, code: null, message: null }
  return { ...nothing, ...task }
}

function encode(endings: readonly Ending[]): Column[] {
  const accounts = new Positions<string>()
  for (const { accountId } of endings) accounts.of(accountId, accountId)
  return [
    ['uuid[]', literal(accounts.values)],
    ['date[]', daysOf(endings)],
    ['uuid[]', literal(endings.map(({ id }) => id))],
    ['uuid[]', literal(endings.map(({ accountId }) => accountId))],
    ['bigint[]', literal(endings.map(({ amount }) => amount))],
    ['boolean[]', literal(endings.map(({ forgiven }) => forgiven))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.value))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.upstreamCost))],
    ['boolean[]', literal(endings.map(({ usage }) => usage.executed))],
    ['boolean[]', literal(endings.map(({ usage }) => usage.failed))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.inputTokens))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.outputTokens))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.cacheReadTokens))],
    ['bigint[]', literal(endings.map(({ usage }) => usage.cacheWriteTokens))],
  ]
}

function decode(row: Row): Settlement | Error {
  const outcome = row.text(0)
  if (outcome === 'misplaced') return new Error('a call can only be ended for the account that it was begun for')
  if (outcome !== 'posted' && outcome !== 'voided')
    throw new Error(`end_calls answered ${outcome}, which is no outcome`)
  return {
    outcome,
    charged: nanos(row.bigint(1)),
    overrun: nanos(row.bigint(2)),
    free: nanos(row.bigint(3)),
    endedNow: row.boolean(4),
    settledAt: row.text(5),
  }
}
