import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import type { Query } from '../storage/transaction.ts'

export type Refund = {
  readonly refundId: Id
  readonly chargeId: Id
  readonly most: Nanos
  /** A charge that was wrong, or a gift of the operator's. */
  readonly kind: 'charge_reversal' | 'forgiveness'
}

export type Refunded = {
  readonly accountId: Id
  readonly amount: Nanos
  /** What of the charge is left. */
  readonly left: Nanos
  /** False where the same refund was made before. */
  readonly isNew: boolean
}

const chargeRow = z.object({ account_id: z.string(), amount: z.bigint() })
const leftRow = z.tuple([z.object({ left: z.bigint() })])
const entryRow = z.object({ charged: z.bigint(), is_new: z.boolean() })

/** Gives back what was charged for a call, or a part of it, once for the id of the refund. Undefined where nothing was charged under that id. */
export async function refundCharge(query: Query, refund: Refund): Promise<Refunded | undefined> {
  const { refundId, chargeId, most, kind } = refund
  const { rows } = await query('select account_id, amount from charges where id = $1 and amount > 0', [chargeId])
  const charge = chargeRow.optional().parse(rows[0])
  if (charge === undefined) return undefined
  await query('select reverse_charge(reversal_id => $1, charge_id => $2, most => $3, reversal_kind => $4)', [
    ...[refundId, chargeId, most, kind],
  ])
  // Of one that is repeated the entry was made by another transaction; of nothing that is given there may be none.
  const made = await query('select charged, xmin = pg_current_xact_id()::xid as is_new from entries where id = $1', [
    refundId,
  ])
  const entry = entryRow.optional().parse(made.rows[0])
  const sum = 'select (charge.amount + coalesce(sum(entry.charged), 0))::bigint as left'
  const { rows: sums } = await query(
    `${sum} from charges charge left join entries entry on entry.corrects = charge.id where charge.id = $1 group by charge.amount`,
    [chargeId],
  )
  return {
    accountId: charge.account_id,
    amount: nanos(-(entry?.charged ?? 0n)),
    left: nanos(leftRow.parse(sums)[0].left),
    isNew: entry?.is_new ?? false,
  }
}
