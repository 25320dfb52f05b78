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

const later = (one: bigint, other: bigint) => (one > other ? one : other)

/**
 * Of calls whose ids are of this moment or later. It has no name, so that it is planned for its values: only the days that it asks for are opened.
 * A row without a key is of no call: it keeps an id from being used.
 */
export function chargesStatement({ accountId, after, untilUs, most }: PageOfAccount, indexedFromUs: bigint) {
  const [from, to] = [later(after.us - DAYS_APART_US, indexedFromUs), untilUs + DAYS_APART_US]
  return {
    text: `select ${CHARGE_COLUMNS}
      from charges
      where account_id = $1 and (ended_at, id) > (${at('$2')}, $3::uuid) and ended_at <= ${at('$4')}
        and id >= first_id_at(${at('$6')}) and id < first_id_at(${at('$7')}) and credential_id is not null
      order by ended_at, id limit $5`,
    values: [accountId, after.us, after.id, untilUs, most, later(from, 0n), later(from, to)],
  }
}

export async function pageOfCharges(
  pool: pg.Pool,
  page: PageOfAccount,
  indexedFromUs: bigint,
): Promise<readonly Charge[]> {
  const { rows } = await pool.query(chargesStatement(page, indexedFromUs))
  return z.array(chargeRow).parse(rows)
}

const indexedRows = z.tuple([z.object({ us: z.bigint().nullable() })])

/** From which moment on all days of charges have an index by account. Those before were there before it, and are read by key. */
export async function findIndexedFrom(pool: pg.Pool): Promise<bigint> {
  const { rows } = await pool.query(
    `select (extract(epoch from (to_date(max(substr(day.relname, 9)), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') * 1000000)::bigint as us
     from pg_inherits part join pg_class day on day.oid = part.inhrelid
     where part.inhparent = 'charges'::regclass and not exists (
       select from pg_inherits own join pg_index i on i.indexrelid = own.inhrelid
       where own.inhparent = 'charges_of_account'::regclass and i.indrelid = day.oid)`,
  )
  const [{ us }] = indexedRows.parse(rows)
  return us ?? 0n
}

export type PageByKey = {
  /** In the order of their ids. */
  readonly keys: readonly Id[]
  readonly after: Charge | undefined
  readonly fromUs: bigint
  readonly untilUs: bigint
  /** Ids of calls are before it. */
  readonly indexedFromUs: bigint
  readonly most: number
}

/** Whether a window has any of the days that are read by key. */
export const isBeforeIndex = (fromUs: bigint, indexedFromUs: bigint) => fromUs - DAYS_APART_US < indexedFromUs

/** Key by key, the oldest of each first: every day has an index for that. */
export function chargesByKeyStatement({ keys, after, fromUs, untilUs, indexedFromUs, most }: PageByKey) {
  const left = after === undefined ? keys : keys.filter((key) => key >= (after.credential_id ?? ''))
  const idsFrom = later(fromUs - DAYS_APART_US, 0n)
  const idsTo = untilUs + DAYS_APART_US < indexedFromUs ? untilUs + DAYS_APART_US : indexedFromUs
  return {
    text: `select charge.* from unnest($1::uuid[]) key (id) cross join lateral (
        select ${CHARGE_COLUMNS} from charges
        where credential_id = key.id and ended_at <= ${at('$5')} and id >= first_id_at(${at('$6')}) and id < first_id_at(${at('$7')})
          and (ended_at, id) > (case when key.id = $2 then ${at('$3')} else ${at('$8')} end, case when key.id = $2 then $4::uuid else '${BEGINNING.id}' end)
        order by ended_at, id limit $9) charge
      order by key.id, charge.ended_at, charge.id limit $9`,
    values: [
      ...[left, after?.credential_id ?? null, after?.us ?? 0n, after?.id ?? BEGINNING.id],
      ...[untilUs, idsFrom, later(idsFrom, idsTo), fromUs, most],
    ],
  }
}

export async function pageOfChargesByKey(pool: pg.Pool, page: PageByKey): Promise<readonly Charge[]> {
  const { rows } = await pool.query(chargesByKeyStatement(page))
  return z.array(chargeRow).parse(rows)
}

const keyRows = z.array(z.object({ id: z.string() }))

/** Keys and grants of an account, also those that have ended, in the order of their ids. */
export async function credentialsOf(
  pool: pg.Pool,
  { accountId, after, most }: { readonly accountId: Id; readonly after: Id | undefined; readonly most: number },
): Promise<readonly Id[]> {
  const { rows } = await pool.query(
    'select id from credentials where account_id = $1 and id > $2 order by id limit $3',
    [accountId, after ?? BEGINNING.id, most],
  )
  return keyRows.parse(rows).map(({ id }) => id)
}
