import type pg from 'pg'
import { z } from 'zod'
import { type Id, NO_ID } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

/** What an account was charged and credited, the oldest first, page by page up to a moment. What a row says here never changes. */

/** Behind which a page begins. */
export type Position = { readonly us: bigint; readonly id: Id }
export const BEGINNING: Position = { us: 0n, id: NO_ID }

export type PageOfAccount = {
  readonly accountId: Id
  readonly after: Position
  /** The last microsecond that belongs to it. */
  readonly untilUs: bigint
  readonly most: number
}

const amount = z.bigint().transform((value): Nanos => nanos(value))
const entryRow = z.object({
  id: z.string(),
  us: z.bigint(),
  kind: z.string(),
  credited: amount,
  charged: amount,
  promo: amount,
  debt: amount,
  corrects: z.string().nullable(),
  entered_at: z.date(),
})
export type Entry = Readonly<z.output<typeof entryRow>>

const at = (place: string) => `('epoch'::timestamptz + ${place}::bigint * interval '1 microsecond')`

export function entriesStatement({ accountId, after, untilUs, most }: PageOfAccount) {
  return {
    text: `select id, (extract(epoch from entered_at) * 1000000)::bigint as us, kind, credited, charged, promo, debt, corrects, entered_at from entries
      where account_id = $1 and (entered_at, id) > (${at('$2')}, $3::uuid) and entered_at <= ${at('$4')}
      order by entered_at, id limit $5`,
    values: [accountId, after.us, after.id, untilUs, most],
  }
}

export async function pageOfEntries(pool: pg.Pool, page: PageOfAccount): Promise<readonly Entry[]> {
  const { rows } = await pool.query(entriesStatement(page))
  return z.array(entryRow).parse(rows)
}

const chargeRow = z.object({
  id: z.string(),
  us: z.bigint(),
  credential_id: z.string().nullable(),
  operation: z.string().nullable(),
  model: z.string().nullable(),
  route: z.string().nullable(),
  outcome: z.enum(['posted', 'voided']),
  amount,
  promo: amount,
  value: amount,
  failed: z.boolean(),
  input_tokens: z.bigint(),
  output_tokens: z.bigint(),
  cache_read_tokens: z.bigint(),
  cache_write_tokens: z.bigint(),
  end_user: z.string().nullable(),
  end_user_label: z.string().nullable(),
  tags: z.array(z.string()).nullable(),
  begun_at: z.date().nullable(),
  ended_at: z.date(),
})
export type Charge = Readonly<z.output<typeof chargeRow>>

/** A call ends within days of the time that its id carries; other days' charges are not looked at. */
const DAYS_APART_US = 8n * 86_400_000_000n

const CHARGE_COLUMNS = `id, (extract(epoch from ended_at) * 1000000)::bigint as us, credential_id, operation, model, route, outcome, amount, promo, value,
        failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, end_user, end_user_label, tags, begun_at, ended_at`

/**
 * It has no name, so that it is planned for its values: only the days that it asks for are opened.
 * A row without a key is of no call: it keeps an id from being used.
 */
export function chargesStatement({ accountId, after, untilUs, most }: PageOfAccount) {
  const from = after.us > DAYS_APART_US ? after.us - DAYS_APART_US : 0n
  return {
    text: `select ${CHARGE_COLUMNS}
      from charges
      where account_id = $1 and (ended_at, id) > (${at('$2')}, $3::uuid) and ended_at <= ${at('$4')}
        and id >= first_id_at(${at('$6')}) and id < first_id_at(${at('$7')}) and credential_id is not null
      order by ended_at, id limit $5`,
    values: [accountId, after.us, after.id, untilUs, most, from, untilUs + DAYS_APART_US],
  }
}

export async function pageOfCharges(pool: pg.Pool, page: PageOfAccount): Promise<readonly Charge[]> {
  const { rows } = await pool.query(chargesStatement(page))
  return z.array(chargeRow).parse(rows)
}
