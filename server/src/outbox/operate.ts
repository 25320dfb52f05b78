import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type By, type Change, record } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import { inTransaction } from '../storage/transaction.ts'

const figures = z.array(
  z.object({ kind: z.string(), waiting: z.number(), oldest_seconds: z.number(), dead: z.number() }),
)
export type OutboxFigures = z.output<typeof figures>[number]

/** How many messages of each kind wait, how long the oldest has, and how many are dead letters. */
export async function outboxFigures(pool: pg.Pool): Promise<readonly OutboxFigures[]> {
  const { rows } = await pool.query(
    `select kind, count(due_at)::integer as waiting, count(died_at)::integer as dead,
       coalesce(extract(epoch from clock_timestamp() - min(created_at) filter (where due_at is not null)), 0)::double precision as oldest_seconds
     from outbox where delivered_at is null group by kind order by kind`,
  )
  return figures.parse(rows)
}

const letters = z.array(
  z.object({
    id: z.string(),
    kind: z.string(),
    destination: z.string(),
    attempts: z.number(),
    failure: z.string().nullable(),
    created_at: z.date(),
  }),
)
export type DeadLetter = z.output<typeof letters>[number]

/** Dead letters, those that died last first. */
export async function listDead(pool: pg.Pool, most: number): Promise<readonly DeadLetter[]> {
  const { rows } = await pool.query(
    `select id, kind, destination, attempts, failure, created_at from outbox
     where died_at is not null order by died_at desc, id limit $1`,
    [most],
  )
  return letters.parse(rows)
}

const AGAIN = 'due_at = clock_timestamp(), died_at = null, attempts = 0'

/** Has a dead letter tried again, as if it had never been. Whether there was one. */
export function retryDead(pool: pg.Pool, by: By, id: Id): Promise<boolean> {
  return changeDead(pool, by, id, 'outbox.retried', `update outbox set ${AGAIN}`)
}

/** Forgets a dead letter: it is never delivered. Whether there was one. */
export function dropDead(pool: pg.Pool, by: By, id: Id): Promise<boolean> {
  return changeDead(pool, by, id, 'outbox.dropped', 'delete from outbox')
}

const changed = z.array(z.object({ kind: z.string() }))

/** Not for whom it was: that may be an address of e-mail, and what the audit log has can't be deleted. */
async function changeDead(pool: pg.Pool, by: By, id: Id, action: Change['action'], change: string): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows } = await query(`${change} where id = $1 and died_at is not null returning kind`, [id])
    const [letter] = changed.parse(rows)
    if (letter === undefined) return false
    const after = action === 'outbox.dropped' ? null : { ...letter, state: 'waiting' }
    await record(query, by, { action, subject: id, before: { ...letter, state: 'dead' }, after })
    return true
  })
}

/** Has all dead letters of a kind tried again. How many that were. */
export async function retryAllDead(pool: pg.Pool, by: By, kind: string): Promise<number> {
  return inTransaction(pool, async (query) => {
    const { rowCount } = await query(`update outbox set ${AGAIN} where kind = $1 and died_at is not null`, [kind])
    const dead = rowCount ?? 0
    if (dead > 0)
      await record(query, by, { action: 'outbox.retried', subject: kind, before: { dead }, after: { dead: 0 } })
    return dead
  })
}

const PRUNED_AT_ONCE = 1_000

type Kept = { readonly deliveredDays: number; readonly deadDays: number }

/** Forgets messages that were delivered, and dead letters that nobody wanted, so long ago. How many that were. */
export async function pruneOutbox(pool: pg.Pool, { deliveredDays, deadDays }: Kept): Promise<number> {
  const prune = (column: 'delivered_at' | 'died_at', days: number) =>
    inPortions(PRUNED_AT_ONCE, async (most) => {
      const { rowCount } = await pool.query(
        `delete from outbox where ctid = any (array(
           select ctid from outbox where ${column} < statement_timestamp() - make_interval(days => $1)
           order by ${column} limit $2 for update skip locked))`,
        [days, most],
      )
      return rowCount ?? 0
    })
  return (await prune('delivered_at', deliveredDays)) + (await prune('died_at', deadDays))
}
