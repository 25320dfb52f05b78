import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { beginBatch } from '../../server/src/calls/begin-batch.ts'
import type { Call, Ending, Extension, Growth, Judgement, Settlement, Usage } from '../../server/src/calls/call.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { endBatch } from '../../server/src/calls/end-batch.ts'
import { extendBatch } from '../../server/src/calls/extend-batch.ts'
import { Failed } from '../../server/src/calls/failed.ts'
import { beginFitting, type UsualCall } from '../../server/src/calls/fast-begin.ts'
import { endFitting } from '../../server/src/calls/fast-end.ts'
import type { Statement } from '../../server/src/calls/query.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createColumnTypes } from '../../server/src/storage/column-types.ts'
import { startupOptions } from '../../server/src/storage/connection.ts'
import { MONEY_SETTINGS } from '../../server/src/storage/pools.ts'
import { holdOf, ids, makeAccount, makeCredential, pg } from './world.ts'

/**
 * One connection to PostgreSQL that runs the three statements by hand: a batch is what the test says it is, a transaction
 * stays open as long as the test wants, and nothing is sent again behind its back.
 */
export type Session = {
  readonly begin: (...calls: readonly Call[]) => Promise<Judgement[]>
  /** Those that fit, by the statement for them; undefined for the others. */
  readonly beginFitting: (...calls: readonly UsualCall[]) => Promise<readonly (Judgement | undefined)[]>
  readonly endFitting: (
    ...ends: readonly (readonly [UsualCall, Ending])[]
  ) => Promise<readonly (Settlement | undefined)[]>
  readonly extend: (...extensions: readonly Extension[]) => Promise<Growth[]>
  readonly end: (...endings: readonly Ending[]) => Promise<Settlement[]>
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>
  /** Whether a statement of this connection waits for a lock now. */
  readonly waits: (observer: pg.Pool) => Promise<boolean>
  readonly close: () => Promise<void>
}

export async function openSession(url: string): Promise<Session> {
  const client = new pg.Client({
    connectionString: url,
    types: createColumnTypes(),
    options: startupOptions(MONEY_SETTINGS),
  })
  // The database may be dropped before the session is closed.
  client.on('error', () => {})
  await client.connect()
  const query = async (sql: string, values: readonly unknown[] = []) =>
    (await client.query<Record<string, unknown>>({ text: sql, values: [...values] })).rows
  const run = async ({ text, values }: Statement) =>
    (await client.query<unknown[]>({ text, values: [...values], rowMode: 'array' })).rows
  const [{ pid } = {}] = await query('select pg_backend_pid() as pid')
  const ownerId = ids.next()
  return {
    begin: (...calls) => beginBatch(run, ownerId, calls),
    beginFitting: async (...calls) => unfailed(await beginFitting(run, ownerId, calls)),
    endFitting: async (...ends) => {
      const items = ends.map(([call, ending]) => ({
        ending,
        call,
        accountId: call.accountId,
        credentialId: call.credentialId,
      }))
      return unfailed(await endFitting(run, items))
    },
    extend: async (...extensions) => (await extendBatch(run, ownerId, extensions)).map(answered),
    end: async (...endings) => (await endBatch(run, endings)).map(answered),
    query,
    waits: async (observer) =>
      (await observer.query("select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'", [pid]))
        .rowCount === 1,
    close: () => client.end(),
  }
}

/** Throws why a statement failed, if one did. */
export function unfailed<T>(answers: readonly (T | Failed)[]): readonly T[] {
  return answers.map((answer) => {
    if (answer instanceof Failed) throw answer.error
    return answer
  })
}

function answered<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer
  return answer
}

/**
 * Runs `late` while another session has the account's lock, and what that session changes, and commits, only once `late`
 * is waiting for it.
 */
export async function whileLocked<T>(
  { url, observer, accountId }: { readonly url: string; readonly observer: pg.Pool; readonly accountId: Id },
  change: (holder: Session) => Promise<unknown>,
  late: (waiter: Session) => Promise<T>,
): Promise<T> {
  const [holder, waiter] = [await openSession(url), await openSession(url)]
  try {
    await holder.query('begin')
    await holder.query('select from accounts where id = $1 for no key update', [accountId])
    let isDone = false
    const outcome = late(waiter).finally(() => {
      isDone = true
    })
    outcome.catch(() => {})
    await until(async () => isDone || (await waiter.waits(observer)), PATIENCE_MS, 'the wait for the lock')
    assert.equal(isDone, false, 'a statement about an account waits for whoever has its lock')
    await change(holder)
    await holder.query('commit')
    return await outcome
  } finally {
    await Promise.all([holder.close(), waiter.close()])
  }
}

/**
 * What came of each call of a batch, in a word. A batch that breaks a constraint of the tables fails as a whole, and that
 * is what came of it; any other error is no outcome.
 */
export async function outcomesOf(batch: Promise<readonly (Judgement | Growth | Settlement)[]>): Promise<string[]> {
  try {
    return (await batch).map(({ outcome }) => outcome)
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code?.startsWith('23')) return [error.message]
    throw error
  }
}

export type Party = { readonly accountId: Id; readonly credentialId: Id }

export async function makeParty(pool: pg.Pool, balance: bigint): Promise<Party> {
  const accountId = await makeAccount(pool, balance)
  return { accountId, credentialId: await makeCredential(pool, accountId) }
}

type Asks = {
  readonly id?: Id
  /** Null for a call that is only admitted. */
  readonly hold?: bigint | null
  readonly allowances?: readonly Id[]
  readonly tokens?: number
  readonly windows?: Call['windows']
  readonly claims?: Call['claims']
  readonly operation?: string
  readonly attribution?: Call['attribution']
}

export function callOf({ accountId, credentialId }: Party, asks: Asks = {}): Call {
  const { id = ids.next(), hold = 1n, allowances = [], tokens = 0, windows = [], claims = [] } = asks
  const { operation = 'probe', attribution } = asks
  return {
    id,
    accountId,
    credentialId,
    operation,
    hold: hold === null ? null : holdOf(hold, allowances),
    tokens,
    windows,
    claims,
    attribution,
  }
}

/** What a call is to hold, and to have reserved, in all. */
export function extensionOf({ id, accountId, windows }: Call, amount: bigint, tokens = 0): Extension {
  return { id, accountId, windows, amount: nanos(amount), tokens }
}

/** The end of a call that was executed and is to be charged. */
export function postOf({ id, accountId }: Call, amount: bigint, usage: Partial<Usage> = {}): Ending {
  return {
    id,
    accountId,
    amount: nanos(amount),
    forgiven: false,
    usage: { ...NO_USAGE, value: nanos(amount), executed: true, ...usage },
  }
}

export async function moneyOf(pool: pg.Pool, { accountId }: { readonly accountId: Id }) {
  const { rows } = await pool.query<Record<'credited' | 'debt' | 'charged' | 'held' | 'promo', bigint>>(
    'select credited, debt, charged, held, promo from accounts where id = $1',
    [accountId],
  )
  const [money] = rows
  if (money === undefined) throw new Error(`there is no account ${accountId}`)
  return money
}

/** What an allowance has in each of its periods, the oldest first. */
export async function periodsOf(pool: pg.Pool, allowanceId: Id) {
  const { rows } = await pool.query<{ charged: bigint; held: bigint }>(
    'select charged, held from allowance_periods where allowance_id = $1 order by starts_at',
    [allowanceId],
  )
  return rows
}

export async function windowOf(pool: pg.Pool, { credentialId }: Party, group: string) {
  const { rows } = await pool.query<{ requests: number; tokens: bigint; started_at: string }>(
    'select requests, tokens, started_at::text from windows where credential_id = $1 and limit_group = $2',
    [credentialId, group],
  )
  return rows[0]
}

/**
 * Lets time pass for everything that a credential has open or keeps, by moving it into the past. Only what the ledger
 * counts in seconds moves; a period of an allowance is a date, see `intoThePast` in periods.test.ts.
 */
export async function passTime(pool: pg.Pool, { credentialId }: Party, seconds: number): Promise<void> {
  for (const sql of [
    `update holds set begun_at = begun_at - make_interval(secs => $2), reserved_at = reserved_at - make_interval(secs => $2)
      where credential_id = $1`,
    'update group_windows set started_at = started_at - make_interval(secs => $2) where credential_id = $1',
    'update credentials set all_started_at = all_started_at - make_interval(secs => $2) where id = $1',
    'update claims set kept_until = kept_until - make_interval(secs => $2) where credential_id = $1',
  ])
    await pool.query(sql, [credentialId, seconds])
}
