import { nanos } from '../kernel/money.ts'
import type { Ending, Settlement } from './call.ts'
import { daysOf, Positions } from './columns.ts'
import { type Column, createCall, type Query, Row } from './query.ts'

const SELECT = 'outcome, charged, overrun, free, ended_now, settled_at::text'

const callOf = createCall('end_calls', SELECT)

/** One statement for the ends of many calls, each answered for itself. No id may stand in a batch twice. */
export async function endBatch(query: Query, endings: readonly Ending[]): Promise<(Settlement | Error)[]> {
  const rows = await query(callOf(encode(endings)))
  return endings.map((_, at) => decode(new Row(rows[at])))
}

function encode(endings: readonly Ending[]): Column[] {
  const accounts = new Positions<string>()
  for (const { accountId } of endings) accounts.of(accountId, accountId)
  return [
    ['uuid[]', accounts.values],
    ['date[]', daysOf(endings)],
    ['uuid[]', endings.map(({ id }) => id)],
    ['uuid[]', endings.map(({ accountId }) => accountId)],
    ['bigint[]', endings.map(({ amount }) => amount)],
    ['boolean[]', endings.map(({ forgiven }) => forgiven)],
    ['bigint[]', endings.map(({ usage }) => usage.value)],
    ['bigint[]', endings.map(({ usage }) => usage.upstreamCost)],
    ['boolean[]', endings.map(({ usage }) => usage.executed)],
    ['boolean[]', endings.map(({ usage }) => usage.failed)],
    ['bigint[]', endings.map(({ usage }) => usage.inputTokens)],
    ['bigint[]', endings.map(({ usage }) => usage.outputTokens)],
    ['bigint[]', endings.map(({ usage }) => usage.cacheReadTokens)],
    ['bigint[]', endings.map(({ usage }) => usage.cacheWriteTokens)],
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
