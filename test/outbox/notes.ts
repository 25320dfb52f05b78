import type pg from 'pg'
import { z } from 'zod'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { enqueue, type Message, type OutboxKind } from '../../server/src/storage/outbox.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'

/** A kind of the tests: a text for an address. */
export const NOTE: OutboxKind = { name: 'test.note', isSealed: false }
export const SECRET_NOTE: OutboxKind = { name: 'test.secret-note', isSealed: true }

export const note = z.object({ text: z.string() })

const ids = createIds({ clock: systemClock })
const parts = { ids, seal: null }

/** Writes messages in one transaction, which is rolled back in the end where it should be. Their ids. */
export async function write(pool: pg.Pool, messages: readonly Message[], isRolledBack = false): Promise<readonly Id[]> {
  const written: Id[] = []
  const rollback = new Error('rolled back')
  await inTransaction(pool, async (query) => {
    for (const message of messages) written.push((await enqueue(query, parts, message)) ?? '')
    if (isRolledBack) throw rollback
  }).catch((error: unknown) => {
    if (error !== rollback) throw error
  })
  return written
}

export function notesTo(destination: string, many: number): readonly Message[] {
  return Array.from({ length: many }, (_, at) => ({ kind: NOTE, destination, payload: { text: `note ${at}` } }))
}

const states = z.array(z.object({ state: z.enum(['waiting', 'delivered', 'dead']), many: z.number() }))

/** How many messages wait, were delivered and are dead. */
export async function statesIn(pool: pg.Pool): Promise<Readonly<Record<string, number>>> {
  const { rows } = await pool.query(
    `select case when due_at is not null then 'waiting' when delivered_at is not null then 'delivered' else 'dead' end as state,
       count(*)::integer as many from outbox group by 1`,
  )
  return Object.fromEntries(states.parse(rows).map(({ state, many }) => [state, many]))
}

/** As if so long had passed for all that waits: it is due, and no lease lasts. */
export async function letTimePass(pool: pg.Pool): Promise<void> {
  await pool.query("update outbox set due_at = due_at - interval '1 day' where due_at is not null")
}
