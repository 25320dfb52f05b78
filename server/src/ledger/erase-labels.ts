import type pg from 'pg'
import { z } from 'zod'
import { type Id, NO_ID } from '../kernel/ids.ts'
import type { Place, Step } from '../storage/steps.ts'

/**
 * Takes the labels of end users out of what an account was charged. An end user stays apart from others by an id, which is a hash. Nothing of
 * money changes, and no row goes. Calls that hold nothing may still run: they come first, then charges. What is given back of one afterwards has its label from there. What waits to be added up
 * comes before the sums: what somebody is adding up just then is waited for, and found in the sums.
 */
export function labelSteps(pool: pg.Pool, accountId: Id): readonly Step[] {
  return [
    { name: 'holds', portion: () => eraseInHolds(pool, accountId) },
    { name: 'charges', portion: (after) => eraseInCharges(pool, accountId, after) },
    { name: 'entries', portion: (after) => eraseInEntries(pool, accountId, after) },
    { name: 'usage that waits', portion: () => eraseInTail(pool, accountId) },
    { name: 'sums', portion: (after) => eraseInSums(pool, COMBINED_HOURS, accountId, after ?? []) },
    { name: 'sums that are being combined', portion: () => waitForCombining(pool) },
    { name: 'combined days', portion: (after) => eraseInSums(pool, COMBINED_DAYS, accountId, after ?? []) },
    { name: 'hours of the account', portion: (after) => eraseInSums(pool, HOURS, accountId, after ?? []) },
    { name: 'hours of keys', portion: (after) => eraseInSumsOfKeys(pool, HOURS, accountId, after) },
    { name: 'days of the account', portion: (after) => eraseInSums(pool, DAYS, accountId, after ?? []) },
    { name: 'days of keys', portion: (after) => eraseInSumsOfKeys(pool, DAYS, accountId, after) },
  ]
}

/** Rows that a statement looks at, whether they have a label or not. */
const PORTION = 2_000
const KEYS_AT_ONCE = 500
const LONG_AGO = '-infinity'

/** A call begins within a day of the time that its id carries. */
async function firstDay(pool: pg.Pool, accountId: Id): Promise<string> {
  const { rows } = await pool.query(
    `select to_char(created_at at time zone 'UTC' - interval '1 day', 'YYYYMMDD') as day from accounts where id = $1`,
    [accountId],
  )
  return z.object({ day: z.string() }).parse(rows[0]).day
}

const dayRow = z.object({ day: z.string() })

/** A day of charges is a partition. */
async function nextDay(pool: pg.Pool, from: string): Promise<string | null> {
  const { rows } = await pool.query(
    `select right(part.relname, 8) as day
     from pg_inherits join pg_class part on part.oid = inhrelid
     where inhparent = 'charges'::regclass and part.relname >= ('charges_' || $1) collate "C" order by part.relname limit 1`,
    [from],
  )
  return dayRow.optional().parse(rows[0])?.day ?? null
}

/** Where in a day; its statement has no name, so that it is planned for its values: only that day is opened. */
export type PlaceInDay = { readonly accountId: Id; readonly day: string; readonly at: string; readonly id: Id }

const FIRST = `first_id_at(to_date($2, 'YYYYMMDD')::timestamp at time zone 'UTC')`
const BEYOND = `first_id_at((to_date($2, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC')`
const OF_DAY = `id >= ${FIRST} and id < ${BEYOND}`

export function chargesOfDay({ accountId, day, at, id }: PlaceInDay) {
  return {
    text: `select id, ended_at::text as at, end_user_label is not null as labelled from charges
      where ${OF_DAY} and account_id = $1 and (ended_at, id) > ($3::timestamptz, $4) order by ended_at, id limit $5`,
    values: [accountId, day, at, id, PORTION],
  }
}

export function eraseOfDay(day: string, labelled: readonly Id[]) {
  return { text: `update charges set end_user_label = null where id = any ($1) and ${OF_DAY}`, values: [labelled, day] }
}

const chargeRow = z.object({ id: z.string(), at: z.string(), labelled: z.boolean() })

async function eraseInCharges(pool: pg.Pool, accountId: Id, after: Place | null): Promise<Place | null> {
  const [from = await firstDay(pool, accountId), at = LONG_AGO, id = NO_ID] = after ?? []
  const day = await nextDay(pool, from)
  if (day === null) return null
  const { rows } = await pool.query(chargesOfDay({ accountId, day, at, id }))
  const looked = z.array(chargeRow).parse(rows)
  const labelled = looked.flatMap((charge) => (charge.labelled ? [charge.id] : []))
  if (labelled.length > 0) await pool.query(eraseOfDay(day, labelled))
  const last = looked.at(-1)
  // Behind all names of that day, and before the next one.
  return last === undefined || looked.length < PORTION ? [`${day}~`] : [day, last.at, last.id]
}

const entryRow = z.object({ id: z.string(), at: z.string(), labelled: z.boolean() })

export function entriesOf(accountId: Id, [at = LONG_AGO, id = NO_ID]: Place) {
  return {
    text: `select id, entered_at::text as at, end_user_label is not null as labelled from entries
      where account_id = $1 and (entered_at, id) > ($2::timestamptz, $3) order by entered_at, id limit $4`,
    values: [accountId, at, id, PORTION],
  }
}

async function eraseInEntries(pool: pg.Pool, accountId: Id, after: Place | null): Promise<Place | null> {
  const { rows } = await pool.query(entriesOf(accountId, after ?? []))
  const looked = z.array(entryRow).parse(rows)
  const labelled = looked.flatMap(({ id, labelled }) => (labelled ? [id] : []))
  if (labelled.length > 0) await pool.query('update entries set end_user_label = null where id = any ($1)', [labelled])
  const last = looked.at(-1)
  return last === undefined || looked.length < PORTION ? null : [last.at, last.id]
}

/** Those of calls that run, which are few enough to be read as a whole. One that ends just then is waited for, and found among the charges. */
async function eraseInHolds(pool: pg.Pool, accountId: Id): Promise<null> {
  await pool.query('update holds set end_user_label = null where account_id = $1 and end_user_label is not null', [
    accountId,
  ])
  return null
}

/** It is small, and read as a whole. */
async function eraseInTail(pool: pg.Pool, accountId: Id): Promise<null> {
  await pool.query('update usage_tail set end_user_label = null where account_id = $1 and end_user_label is not null', [
    accountId,
  ])
  return null
}

/** Who combines hours of a day may have read their labels before they were erased: all that it writes is there afterwards. */
async function waitForCombining(pool: pg.Pool): Promise<null> {
  await pool.query("select pg_advisory_xact_lock(hashtext('add_up_usage'))")
  return null
}

type Sums = (
  | { readonly table: 'usage_sums'; readonly of: 'account_id' }
  | { readonly table: 'usage_totals'; readonly of: 'scope_id' }
) & { readonly grain: 'hour' | 'day' }
export const COMBINED_HOURS: Sums = { table: 'usage_sums', of: 'account_id', grain: 'hour' }
export const COMBINED_DAYS: Sums = { table: 'usage_sums', of: 'account_id', grain: 'day' }
export const HOURS: Sums = { table: 'usage_totals', of: 'scope_id', grain: 'hour' }
export const DAYS: Sums = { table: 'usage_totals', of: 'scope_id', grain: 'day' }

/** The last row of a portion. Without one, the portion is what is left. */
export function endOfSums({ table, of, grain }: Sums, id: Id, [subject = '', at = LONG_AGO]: Place) {
  return {
    text: `select subject, starts_at::text as at from ${table}
      where ${of} = $1 and about = 'end_user' and grain = '${grain}' and (subject, starts_at) > ($2, $3::timestamptz)
      order by subject, starts_at offset $4 limit 1`,
    values: [id, subject, at, PORTION - 1],
  }
}

/** In the order in which they are found, so that two that change the same rows wait and do not block each other. */
export function eraseSums({ table, of, grain }: Sums, id: Id, [subject = '', at = LONG_AGO]: Place, end: Place | null) {
  const [lastSubject = null, lastAt = null] = end ?? []
  const until = end === null ? '$4::text is null and $5::text is null' : '(subject, starts_at) <= ($4, $5::timestamptz)'
  return {
    text: `update ${table} set subject_label = null where ctid = any (array(
        select ctid from ${table} where ${of} = $1 and about = 'end_user' and grain = '${grain}' and (subject, starts_at) > ($2, $3::timestamptz)
          and ${until} and subject_label is not null order by subject, starts_at for update))`,
    values: [id, subject, at, lastSubject, lastAt],
  }
}

const endRow = z.object({ subject: z.string(), at: z.string() })

async function eraseInSums(pool: pg.Pool, sums: Sums, id: Id, after: Place): Promise<Place | null> {
  const { rows } = await pool.query(endOfSums(sums, id, after))
  const end = endRow.optional().parse(rows[0])
  const last = end === undefined ? null : [end.subject, end.at]
  await pool.query(eraseSums(sums, id, after, last))
  return last
}

const keyRow = z.object({ id: z.string(), has_sums: z.boolean() })

export function keysOf({ grain }: Sums, accountId: Id, after: Id) {
  return {
    text: `select id, exists (
        select from usage_totals where scope_id = credentials.id and about = 'end_user' and grain = '${grain}') as has_sums from credentials
      where account_id = $1 and id > $2 order by id limit $3`,
    values: [accountId, after, KEYS_AT_ONCE],
  }
}

/** One key after the other: the place is a key that is done, or a key and where in its sums. */
async function eraseInSumsOfKeys(pool: pg.Pool, sums: Sums, accountId: Id, after: Place | null): Promise<Place | null> {
  const [key = NO_ID, ...within] = after ?? []
  if (within.length > 0) {
    const next = await eraseInSums(pool, sums, key, within)
    return next === null ? [key] : [key, ...next]
  }
  const { rows } = await pool.query(keysOf(sums, accountId, key))
  const keys = z.array(keyRow).parse(rows)
  const one = keys.find(({ has_sums: hasSums }) => hasSums)
  if (one !== undefined) return [one.id, '', LONG_AGO]
  const last = keys.at(-1)
  return last === undefined || keys.length < KEYS_AT_ONCE ? null : [last.id]
}
