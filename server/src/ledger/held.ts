import type pg from 'pg'
import { z } from 'zod'
import type { Mode } from '../kernel/mode.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

const amount = z.bigint().transform((value): Nanos => nanos(value))
const rows = z.array(
  z.object({
    mode: z.enum(['live', 'test']),
    calls: z.int(),
    held: amount,
    unsettledCalls: z.int(),
    unsettled: amount,
    unsettledSince: z.date().nullable(),
  }),
)

/** What is held now, of all accounts, and the part of it that is unsettled. */
export type HeldMoney = Omit<z.output<typeof rows>[number], 'mode'>

const NOTHING: HeldMoney = {
  calls: 0,
  held: nanos(0n),
  unsettledCalls: 0,
  unsettled: nanos(0n),
  unsettledSince: null,
}

export async function heldMoney(pool: pg.Pool): Promise<Readonly<Record<Mode, HeldMoney>>> {
  const { rows: found } = await pool.query(
    `select a.mode, count(*)::integer as calls, sum(h.amount)::bigint as held, count(h.unsettled_at)::integer as "unsettledCalls",
       coalesce(sum(h.amount) filter (where h.unsettled_at is not null), 0)::bigint as unsettled, min(h.unsettled_at) as "unsettledSince"
     from holds h join accounts a on a.id = h.account_id group by a.mode`,
  )
  const all = new Map(rows.parse(found).map(({ mode, ...money }) => [mode, money]))
  return { live: all.get('live') ?? NOTHING, test: all.get('test') ?? NOTHING }
}
