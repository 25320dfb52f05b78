import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Query } from '../storage/transaction.ts'

/** Whoever names an address as a member and whoever verifies it wait for each other: neither misses what the other has written. */
export async function lockAddress(query: Query, email: string): Promise<void> {
  await query("select pg_advisory_xact_lock(hashtextextended('member ' || $1, 0))", [email])
}

/** The person who has verified this address; null where nobody has, who joins what is written from here on once they do. */
export async function personWith(query: Query, email: string): Promise<Id | null> {
  await lockAddress(query, email)
  const { rows } = await query('select id from people where email = $1 and verified_at is not null', [email])
  return z.object({ id: z.string() }).optional().parse(rows[0])?.id ?? null
}
