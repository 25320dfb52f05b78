import type pg from 'pg'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'

/** What a caller was told of a call, to be compared with what the ledger says once everything has settled. */
export type Told = {
  readonly id: Id
  readonly accountId: Id
  /** What was charged; null where the caller was refused, or told that nothing was charged. */
  readonly charged: bigint | null
}

/** Where the ledger disagrees with what callers were told; `told` is all that ever happened on its accounts. */
export async function disagreements(pool: pg.Pool, told: readonly Told[]): Promise<string[]> {
  const accounts = [...new Set(told.map(({ accountId }) => accountId))]
  const found: string[] = []
  for (const { promise, rows } of await verifyLedger(pool, accounts)) found.push(`${promise}: ${rows.join(', ')}`)

  const holds = await pool.query<{ id: Id }>('select id from holds where account_id = any ($1)', [accounts])
  for (const { id } of holds.rows) found.push(`call ${id} still holds money`)

  const charges = await pool.query<{ id: Id; charged: bigint }>(
    `select c.id, (c.amount + coalesce(sum(e.charged), 0))::bigint as charged
     from charges c left join entries e on e.corrects = c.id where c.account_id = any ($1) group by c.id, c.amount`,
    [accounts],
  )
  const booked = new Map(charges.rows.map(({ id, charged }) => [id, charged]))
  for (const { id, charged } of told) {
    const actual = booked.get(id)
    if ((actual ?? 0n) !== (charged ?? 0n))
      found.push(`call ${id} was charged ${actual}, its caller was told ${charged}`)
    if (charged !== null && actual === undefined) found.push(`call ${id} has no row, its caller saw it complete`)
  }
  const known = new Set(told.map(({ id }) => id))
  for (const [id, charged] of booked) if (!known.has(id) && charged > 0n) found.push(`nobody knows of charge ${id}`)
  return found
}
