import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Query } from '../storage/transaction.ts'

/** Throws where an operator has blocked the person, who is not blocked meanwhile: whoever blocks waits until the transaction has ended. */
export async function requireUnblocked(query: Query, personId: Id): Promise<void> {
  const { rows } = await query('select blocked_at from people where id = $1 for share', [personId])
  if (rows[0] !== undefined && rows[0].blocked_at !== null) throw new Fault('person_blocked')
}
