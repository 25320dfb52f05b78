import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import type { Extension, Growth } from './call.ts'
import { Positions } from './columns.ts'
import { type Column, createCall, type Query, Row } from './query.ts'

const SELECT = `outcome, now_held, now_reserved::float8, free, spent_allowance, allowance_left, spent_group, tokens_left::float8,
  extract(epoch from tokens_reset_at)::float8, judged_at::text`

const callOf = createCall('extend_calls', SELECT)

/** One statement for the growth of many calls, each answered for itself. No id may stand in a batch twice. */
export async function extendBatch(
  query: Query,
  ownerId: Id,
  extensions: readonly Extension[],
): Promise<(Growth | Error)[]> {
  const rows = await query(callOf(encode(extensions), [], ownerId))
  return extensions.map((_, at) => decode(new Row(rows[at])))
}

function encode(extensions: readonly Extension[]): Column[] {
  const accounts = new Positions<string>()
  for (const { accountId } of extensions) accounts.of(accountId, accountId)
  const to: number[] = []
  const groups: string[] = []
  const seconds: number[] = []
  const limits: number[] = []
  for (const { windows } of extensions) {
    for (const { group, seconds: length, tokenLimit } of windows) {
      if (tokenLimit === null) continue
      groups.push(group)
      seconds.push(length)
      limits.push(tokenLimit)
    }
    to.push(groups.length)
  }
  return [
    ['accounts_in', 'uuid[]', accounts.values],
    ['call_ids', 'uuid[]', extensions.map(({ id }) => id)],
    ['call_accounts', 'uuid[]', extensions.map(({ accountId }) => accountId)],
    ['call_amounts', 'bigint[]', extensions.map(({ amount }) => amount)],
    ['call_tokens', 'bigint[]', extensions.map(({ tokens }) => tokens)],
    ['ask_windows_to', 'integer[]', to],
    ['ask_groups', 'text[]', groups],
    ['ask_seconds', 'integer[]', seconds],
    ['ask_token_limits', 'bigint[]', limits],
  ]
}

function decode(row: Row): Growth | Error {
  const outcome = row.text(0)
  const now = { held: nanos(row.bigint(1)), reserved: row.number(2), judgedAt: row.text(9) }
  switch (outcome) {
    case 'extended':
    case 'ended':
    case 'disowned':
    case 'account_inactive':
    case 'account_suspended':
    case 'credential_inactive':
      return { outcome, ...now }
    case 'tokens_spent':
      return { outcome, group: row.text(6), left: row.number(7), resetAtMs: row.number(8) * 1_000, ...now }
    case 'allowance_spent':
      return { outcome, allowanceId: row.text(4), left: nanos(row.isNull(5) ? 0n : row.bigint(5)), ...now }
    case 'money_spent':
      return { outcome, left: nanos(row.bigint(3)), ...now }
    case 'misplaced':
      return new Error('a call can only be extended for the account that it was begun for')
    default:
      throw new Error(`extend_calls answered ${outcome}, which is no outcome`)
  }
}
