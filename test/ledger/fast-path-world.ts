import type { Call, Judgement, Settlement } from '../../server/src/calls/call.ts'
import type { Path } from '../../server/src/calls/fast-path.ts'
import type { Query } from '../../server/src/calls/query.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Period } from '../../server/src/kernel/period.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { ids, makeAccount, makeAllowance, makeCredential, type pg } from './world.ts'

/** Two accounts with three credentials, all of whom have budgets: one of two that have to be alike whatever is done to both. */
export type Twin = {
  readonly pool: pg.Pool
  readonly query: Query
  readonly path: Path
  readonly ownerId: Id
  readonly accounts: readonly Id[]
  readonly credentials: readonly Key[]
  /** Of the first account, of kinds that credentials share. */
  readonly shared: readonly Id[]
  readonly payments: Id[]
  /** In the order in which they were asked for. */
  readonly calls: Call[]
  /** Those of them that were charged. */
  readonly charged: Id[]
  /** What each id is called in both. */
  readonly names: Map<string, string>
}

type Key = {
  readonly id: Id
  readonly accountId: Id
  /** Its budget now, and one that it has in turn with it. */
  own: Id | undefined
  spare: Id | undefined
}

const OWN: readonly (readonly [Period, bigint] | undefined)[] = [['day', 160n], ['total', 200n], undefined]
/** By the day or in total, so that a day that passes takes no call into another week or month. */
const SHARED: readonly Period[] = ['day', 'total', 'day', 'total', 'total']

export async function makeTwin(
  { pool, query, path }: Pick<Twin, 'pool' | 'query' | 'path'>,
  credited: bigint,
): Promise<Twin> {
  const names = new Map<string, string>()
  const named = (id: Id, name: string) => {
    names.set(id, name)
    return id
  }
  const accounts = [named(await makeAccount(pool, 0n), 'x'), named(await makeAccount(pool, 0n), 'y')]
  const payments = []
  for (const accountId of accounts) {
    const entryId = ids.next()
    await creditAccount(pool, { entryId, accountId, kind: 'payment', amount: nanos(credited) })
    payments.push(entryId)
  }
  const credentials = []
  for (const [at, of] of [0, 0, 1].entries()) {
    const accountId = accounts[of] ?? ''
    const id = named(await makeCredential(pool, accountId), `credential ${at}`)
    const budget = OWN[at]
    const own = budget && named(await makeAllowance(pool, accountId, ...budget), `budget ${at}`)
    const spare = budget && named(await makeAllowance(pool, accountId, 'day', 120n), `spare ${at}`)
    credentials.push({ id, accountId, own, spare })
  }
  const shared = []
  for (const [at, period] of SHARED.entries())
    shared.push(named(await makeAllowance(pool, accounts[0] ?? '', period, 400n), `shared ${at}`))
  return {
    pool,
    query,
    path,
    ownerId: ids.next(),
    accounts,
    credentials,
    shared,
    payments,
    calls: [],
    charged: [],
    names,
  }
}

export function nameCall({ names, calls }: Twin, call: Call): Call {
  names.set(call.id, `call ${calls.length}`)
  calls.push(call)
  return call
}

/** Lets seconds pass by moving what was written into the past. */
export async function pass({ pool, accounts }: Twin, seconds: number): Promise<void> {
  const by = 'make_interval(secs => $2)'
  for (const sql of [
    `update holds set begun_at = begun_at - ${by}, reserved_at = reserved_at - ${by} where account_id = any ($1)`,
    `update credentials set all_started_at = all_started_at - ${by} where account_id = any ($1)`,
    `update group_windows set started_at = started_at - ${by} where credential_id in (select id from credentials where account_id = any ($1))`,
  ])
    await pool.query(sql, [accounts, seconds])
}

const DAY = `interval '1 day'`
const OF_DAYS = `(select id from allowances where period = 'day' and account_id = any ($1))`

/** What was begun, and what is counted by the day, is of the day before. */
export async function passDay({ pool, accounts }: Twin): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    for (const sql of [
      `update holds set begun_at = begun_at - ${DAY}, reserved_at = reserved_at - ${DAY} where account_id = any ($1)`,
      `update charges set begun_at = begun_at - ${DAY} where account_id = any ($1)`,
      `update credentials set all_started_at = all_started_at - ${DAY} where account_id = any ($1)`,
      // Two steps, so that no day is met on the way to its place.
      `update kept_periods set starts_at = starts_at - interval '10000 days' where allowance_id in ${OF_DAYS}`,
      `update kept_periods set starts_at = starts_at + interval '9999 days' where allowance_id in ${OF_DAYS}`,
      `update credentials set budget_starts_at = budget_starts_at - ${DAY}, budget_ends_at = budget_ends_at - ${DAY} where budget_id in ${OF_DAYS}`,
    ])
      await client.query(sql, [accounts])
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Everything that is kept of a twin, by names. */
export async function rowsOf({ pool, accounts, names }: Twin): Promise<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {}
  for (const [what, sql] of Object.entries(ROWS)) {
    const { rows } = await pool.query<Record<string, unknown>>(sql, [accounts])
    found[what] = rows.map((row) => renamed(Object.values(row).map(String).join(' | '), names)).sort()
  }
  return found
}

const OF_KEYS = 'credential_id in (select id from credentials where account_id = any ($1))'
const ROWS: Readonly<Record<string, string>> = {
  accounts: 'select id, credited, debt, charged, held, promo, lapsed from accounts where id = any ($1)',
  windows: `select credential_id, limit_group, requests, tokens from windows where ${OF_KEYS}`,
  places: 'select id, active, calls_at_once from credentials where account_id = any ($1)',
  periods: `select allowance_id, p.starts_at, p.amount, charged, held from allowance_periods p join allowances a on a.id = allowance_id
    where account_id = any ($1) and charged + held > 0`,
  holds: `select id, account_id, credential_id, operation, amount, terms, allowances, token_groups, tokens_estimated, tokens_moved, claims, at_once,
    unsettled_at is null, reserved_at is null, asked_model, end_user_label, tags from holds where account_id = any ($1)`,
  charges: `select id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at is null, model, route, end_user_label, tags
    from charges where account_id = any ($1)`,
  usage: `select credential_id, operation, model, end_user_label, tags, sum(requests), sum(failed_requests), sum(input_tokens), sum(output_tokens),
    sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged) from usage_tail where account_id = any ($1) group by 1, 2, 3, 4, 5`,
  claims: `select credential_id, scope, key, call_id, fingerprint, kept_until is null from claims where ${OF_KEYS}`,
  entries: 'select account_id, kind, credited, charged, promo, debt, overrun from entries where account_id = any ($1)',
}

const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g

function renamed(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(UUID, (id) => names.get(id) ?? id)
}

/** What a caller is told, but for the times. What is free depends on whose turn it was, where a batch was carried out by two statements. */
export function toldOf(
  answers: readonly (Judgement | Settlement | Error)[],
  names: ReadonlyMap<string, string>,
  isWhole: boolean,
) {
  return answers.map((answer) => {
    if (answer instanceof Error) return answer.message
    const { judgedAt: _, settledAt: __, free, rates, ...told } = { judgedAt: '', settledAt: '', ...answer }
    const text = JSON.stringify(told, (_key, value) => (typeof value === 'bigint' ? `${value}` : value))
    // Of two statements that end calls of one credential, the first knows nothing of what the second gives back.
    const tokensLeft = isWhole || 'judgedAt' in answer ? rates?.tokens?.left : ''
    const left = rates && [rates.requests?.limit, rates.requests?.left, rates.tokens?.limit, tokensLeft].join(' ')
    return renamed(`${text} ${left} ${isWhole ? free : ''}`, names)
  })
}

type Seen = { readonly name: string; readonly rows: number }

/** Statements since the last look, and how many rows with a place each has answered. */
export function watched(query: Query) {
  let seen: Seen[] = []
  const running = new Set<Promise<unknown>>()
  const run: Query = async (statement) => {
    const rows = await query(statement)
    seen.push({ name: statement.name, rows: rows.filter(([place]) => place !== null).length })
    return rows
  }
  return {
    query: (statement: Parameters<Query>[0]) => {
      const answer = run(statement)
      running.add(answer)
      answer.catch(() => {}).finally(() => running.delete(answer))
      return answer
    },
    /** Once all are answered, those that nobody waits for too. */
    take: async () => {
      while (running.size > 0) await Promise.allSettled(running)
      const taken = seen
      seen = []
      return taken
    },
  }
}

/**
 * Where what a caller was told of times is not what the rows say: that a call began or ended then, and that its window ends a minute after it began.
 */
export async function wrongTimes(
  { pool }: Twin,
  asked: readonly Pick<Call, 'id' | 'windows'>[],
  answers: readonly (Judgement | Settlement | Error)[],
): Promise<readonly Id[]> {
  const told = asked.flatMap(({ id, windows }, at) => {
    const answer = answers[at]
    if (answer === undefined || answer instanceof Error) return []
    if ('settledAt' in answer) return answer.endedNow ? [{ id, at: answer.settledAt, resetAtMs: null }] : []
    const resetAtMs = windows.length === 1 ? (answer.rates.requests?.resetAtMs ?? null) : null
    return answer.outcome === 'begun' ? [{ id, at: answer.judgedAt, resetAtMs }] : []
  })
  const { rows } = await pool.query<{ id: Id }>(
    `select item.id from unnest($1::uuid[], $2::timestamptz[], $3::float8[]) item (id, at, reset_ms)
     left join holds on holds.id = item.id left join charges on charges.id = item.id left join credentials k on k.id = holds.credential_id
     where coalesce(charges.ended_at, holds.begun_at) is distinct from item.at
       or abs(extract(epoch from k.all_started_at + interval '1 minute') * 1000 - item.reset_ms) > 0.1`,
    [told.map(({ id }) => id), told.map(({ at }) => at), told.map(({ resetAtMs }) => resetAtMs)],
  )
  return rows.map(({ id }) => id)
}
