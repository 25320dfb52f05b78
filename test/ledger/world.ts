import pg from 'pg'
import { PATIENCE_MS } from '../../harness/until.ts'
import { type Calls, createCalls } from '../../server/src/calls/calls.ts'
import { createFastPath, judgedPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { type Nanos, nanos } from '../../server/src/kernel/money.ts'
import type { Period } from '../../server/src/kernel/period.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { createPools, type Pools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'

export const ids = createIds({ clock: systemClock })

type Options = {
  readonly beginDeadlineMs?: number
  readonly endDeadlineMs?: number
  readonly moneyQueryTimeoutMs?: number
  readonly connectTimeoutMs?: number
  readonly batchLimit?: number
  /** As a gateway has it: by one statement what fits, and the rest judged. Without it all is judged. */
  readonly fast?: boolean
}

/** The module under test over pools of its own, as one gateway process has it, but with patience where a test names no deadline. */
export function connect(
  url: string,
  options: Options = {},
): { readonly pools: Pools; readonly calls: Calls; readonly ownerId: Id } {
  const { moneyQueryTimeoutMs = PATIENCE_MS, connectTimeoutMs = PATIENCE_MS, fast = false, ...rest } = options
  const timeouts = { moneyQueryTimeoutMs, connectTimeoutMs, restStatementTimeoutMs: PATIENCE_MS }
  const pools = createPools({ url: new Secret(url), log: silentLog, ...timeouts })
  const ownerId = ids.next()
  const calls = createCalls({
    query: createMoneyQuery(pools.money),
    ownerId,
    clock: systemClock,
    log: silentLog,
    path: fast ? createFastPath({ clock: systemClock, log: silentLog }) : judgedPath,
    beginDeadlineMs: PATIENCE_MS,
    endDeadlineMs: PATIENCE_MS,
    ...rest,
  })
  return { pools, calls, ownerId }
}

export async function makeAccount(pool: pg.Pool, credit: bigint): Promise<Id> {
  const id = ids.next()
  await pool.query("insert into accounts (id, mode) values ($1, 'live')", [id])
  if (credit > 0n)
    await creditAccount(pool, { entryId: ids.next(), accountId: id, kind: 'payment', amount: nanos(credit) })
  return id
}

export async function makeCredential(pool: pg.Pool, accountId: Id): Promise<Id> {
  const id = ids.next()
  await pool.query('insert into credentials (id, account_id) values ($1, $2)', [id, accountId])
  return id
}

export async function makeAllowance(pool: pg.Pool, accountId: Id, period: Period, amount: bigint): Promise<Id> {
  const id = ids.next()
  await pool.query('insert into allowances (id, account_id, period, amount) values ($1, $2, $3, $4)', [
    id,
    accountId,
    period,
    amount,
  ])
  return id
}

export function holdOf(
  amount: bigint,
  allowances: readonly Id[] = [],
): { amount: Nanos; terms: string; allowances: readonly Id[]; own?: Id | undefined } {
  return { amount: nanos(amount), terms: '{}', allowances, ...(allowances.length === 1 && { own: allowances[0] }) }
}

/** A window that nobody fills, such as every call of a gateway has. */
export const ROOMY = { group: 'all', seconds: 60, requestLimit: 1_000_000_000, tokenLimit: 2 ** 40 }

export { pg }

/** Empties tables and all that refer to them. The audit log, which is among those, lets nobody: a test's own database may be told to. */
export async function emptyTables(pool: Pick<pg.Pool, 'query'>, ...tables: readonly string[]): Promise<void> {
  await pool.query(`begin; set local session_replication_role = replica; truncate ${tables.join(', ')} cascade; commit`)
}
