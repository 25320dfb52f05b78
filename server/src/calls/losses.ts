import type pg from 'pg'
import { z } from 'zod'
import type { Id, Ids } from '../kernel/ids.ts'
import { capped, type Nanos, ZERO } from '../kernel/money.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Query } from '../storage/transaction.ts'

/** What an account's calls to a route lost within a minute, counted since 1970. */
export type LostInMinute = {
  readonly route: string
  readonly accountId: Id
  readonly minute: number
  readonly nanos: Nanos
}

/** What was released since counts no more. */
const COUNTS = `not exists (
  select from loss_releases released
  where released.route = losses.route and released.at >= losses.at
    and (released.account_id is null or released.account_id = losses.account_id))`

/** Sums can be more than a column holds; beyond that it makes no difference to any ceiling. */
const sum = z.string().transform((text) => capped(BigInt(text)))

const minuteRows = z.array(
  z
    .object({ route: z.string(), account_id: z.string(), minute: z.int(), nanos: sum })
    .transform(({ account_id: accountId, ...row }): LostInMinute => ({ ...row, accountId })),
)

/** Losses since a moment, by route, account and minute. Planned each time: a plan for any moment would read them all. */
export async function readLosses(pool: pg.Pool, sinceMs: number): Promise<readonly LostInMinute[]> {
  const { rows } = await pool.query(
    `select route, account_id, floor(extract(epoch from at) / 60)::integer as minute, sum(nanos)::text as nanos
     from losses where at >= to_timestamp($1::double precision / 1000) and ${COUNTS}
     group by 1, 2, 3`,
    [sinceMs],
  )
  return minuteRows.parse(rows)
}

/** Those of an hour, counted since 1970, as if all were of its last minute. */
export async function readHour(pool: pg.Pool, hour: number): Promise<readonly LostInMinute[]> {
  const { rows } = await pool.query(
    `select route, account_id, $1 * 60 + 59 as minute, sum(nanos)::text as nanos
     from losses where at >= to_timestamp($1::integer * 3600.0) and at < to_timestamp(($1 + 1) * 3600.0) and ${COUNTS}
     group by 1, 2`,
    [hour],
  )
  return minuteRows.parse(rows)
}

const HOUR_MS = 3_600_000
const HOURS_BEFORE = 24

/** The parts of the last day at a minute: which hours are read whole, and from when on losses are read by the minute. */
export function partsOfDay(minute: number): { readonly hours: readonly number[]; readonly minutesSinceMs: number } {
  const hour = Math.floor(minute / 60)
  const hours = Array.from({ length: HOURS_BEFORE - 1 }, (_, at) => hour - HOURS_BEFORE + at)
  return { hours, minutesSinceMs: (hour - 1) * HOUR_MS }
}

/**
 * What was lost in the last day: by the minute where the last hour needs it, by the hour before. An hour at a time, because there
 * may be so many that no statement reads them all in its time; and so that each account has a bounded number.
 */
export async function readDay(pool: pg.Pool, minute: number): Promise<readonly LostInMinute[]> {
  const { hours, minutesSinceMs } = partsOfDay(minute)
  const day: LostInMinute[] = []
  for (const hour of hours) for (const lost of await readHour(pool, hour)) day.push(lost)
  for (const lost of await readLosses(pool, minutesSinceMs)) day.push(lost)
  return day
}

const countRows = z.array(z.object({ count: z.string() }))

/** Changes with every release, in whatever order they are committed. */
export async function countReleases(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query('select count(*)::text as count from loss_releases')
  return countRows.parse(rows)[0]?.count ?? '0'
}

type Release = {
  readonly route: string
  /** All accounts where it is left out. */
  readonly accountId: Id | undefined
  readonly actor: string
}

const accountRows = z.array(z.object({ account_id: z.string() }).transform(({ account_id }) => account_id))

/** Makes the losses at a route until now count no more. The accounts that had some; nothing is written where none had. */
export async function releaseLosses(query: Query, ids: Ids, release: Release): Promise<readonly Id[]> {
  const { route, accountId = null, actor } = release
  const { rows } = await query(
    `select distinct account_id from losses
     where route = $1 and ($2::uuid is null or account_id = $2) and at > clock_timestamp() - interval '25 hours' and ${COUNTS}`,
    [route, accountId],
  )
  const accounts = accountRows.parse(rows)
  if (accounts.length > 0)
    await query('insert into loss_releases (id, route, account_id, actor) values ($1, $2, $3, $4)', [
      ids.next(),
      route,
      accountId,
      actor,
    ])
  return accounts
}

/** All that was lost since a moment on evidence, released or not. */
export async function evidencedSince(pool: pg.Pool, sinceMs: number): Promise<Nanos> {
  const { rows } = await pool.query(
    `select coalesce(sum(nanos), 0)::text as nanos from losses where at > to_timestamp($1::double precision / 1000)`,
    [sinceMs],
  )
  return z.array(z.object({ nanos: sum })).parse(rows)[0]?.nanos ?? ZERO
}

/** PostgreSQL's time, which losses have: that of the machine at which an operator sits may be another. */
export async function timeOfLosses(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
  const [now] = z.array(z.object({ ms: z.number() })).parse(rows)
  if (now === undefined) throw new Error('PostgreSQL did not tell its time')
  return now.ms
}

const PRUNED_AT_ONCE = 5_000

/** Deletes losses that have long ceased to count. How many that were. */
export async function pruneLosses(pool: pg.Pool, keptDays: number): Promise<number> {
  return inPortions(PRUNED_AT_ONCE, async (most) => {
    const { rowCount } = await pool.query(
      `delete from losses where ctid = any (array(
         select ctid from losses where at < clock_timestamp() - make_interval(days => $1) order by at limit $2))`,
      [keptDays, most],
    )
    return rowCount ?? 0
  })
}
