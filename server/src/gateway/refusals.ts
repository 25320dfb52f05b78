import type pg from 'pg'
import { z } from 'zod'
import { encodeArray } from '../calls/columns.ts'
import { type Clock, within } from '../kernel/clock.ts'
import type { Fault, FaultCode } from '../kernel/fault.ts'
import { type Id, NO_ID } from '../kernel/ids.ts'
import { inPortions } from '../storage/in-portions.ts'

/**
 * How often keys were refused, by reason and hour. A process counts in memory and adds its counts to PostgreSQL's once a minute, so that
 * a flood of refusals costs one row for each reason and hour. A process that dies loses the counts of its last minute at the most.
 */
export type Refusals = {
  /** Counts an answer to a known key where it is a refusal of ours. */
  readonly count: (credentialId: Id, fault: Pick<Fault, 'code' | 'status'>) => void
  /** Adds what was counted to PostgreSQL, in one statement. What could not be added is kept for the next time. */
  readonly write: () => Promise<void>
  /** The last time, as far as there is time. */
  readonly flush: (deadlineMs: number) => Promise<void>
}

type Parts = {
  readonly pool: pg.Pool
  readonly clock: Clock
  /** PostgreSQL's, so that all processes agree on the hour. */
  readonly time: Pick<Clock, 'nowMs'>
  /** How many keys, each with a reason and an hour, are told apart until they are written. */
  readonly most?: number
}

const HOUR_MS = 3_600_000
const MOST = 10_000
/** Under which refusals of those keys are counted that are too many to be told apart. */
export const OTHER_KEYS: Id = NO_ID

type Count = {
  readonly credentialId: Id
  readonly reason: FaultCode
  readonly hour: number
  count: number
}

export function createRefusals({ pool, clock, time, most = MOST }: Parts): Refusals {
  let counts = new Map<string, Count>()

  function add({ credentialId, reason, hour, count }: Count): void {
    const known = counts.get(keyOf(credentialId, reason, hour))
    if (known !== undefined) known.count += count
    // Reasons are those of one table, so that those of all other keys together are bounded too.
    else if (counts.size < most || credentialId === OTHER_KEYS)
      counts.set(keyOf(credentialId, reason, hour), { credentialId, reason, hour, count })
    else add({ credentialId: OTHER_KEYS, reason, hour, count })
  }

  async function write(): Promise<void> {
    if (counts.size === 0) return
    const written = counts
    counts = new Map()
    try {
      await addCounts(pool, [...written.values()])
    } catch (error) {
      for (const count of written.values()) add(count)
      throw error
    }
  }

  return {
    count(credentialId, fault) {
      if (!isRefusal(fault)) return
      const { code } = fault
      const hour = Math.floor(time.nowMs() / HOUR_MS)
      const known = counts.get(keyOf(credentialId, code, hour))
      if (known !== undefined) known.count += 1
      else add({ credentialId, reason: code, hour, count: 1 })
    },
    write,
    async flush(deadlineMs) {
      await within(
        clock,
        write().catch(() => undefined),
        deadlineMs,
      )
    },
  }
}

const keyOf = (credentialId: Id, reason: FaultCode, hour: number) => `${credentialId} ${reason} ${hour}`

/**
 * What is the caller's to change, and what we refuse to protect ourselves. Whoever sends no valid credential is nobody's key, and what
 * an upstream has failed at is in the record of its call.
 */
export function isRefusal({ code, status }: Pick<Fault, 'code' | 'status'>): boolean {
  return (status >= 400 && status < 500 && status !== 401) || code === 'overloaded' || code === 'loss_ceiling_route'
}

/** In the order of the rows' keys, so that two processes never wait for each other. */
async function addCounts(pool: pg.Pool, counts: readonly Count[]): Promise<void> {
  await pool.query({
    name: 'add_refusals',
    text: `insert into refusals (credential_id, hour, reason, count)
      select credential_id, to_timestamp(hour * 3600.0), reason, count
      from unnest($1::uuid[], $2::integer[], $3::text[], $4::bigint[]) item (credential_id, hour, reason, count)
      order by credential_id, hour, reason
      on conflict (credential_id, hour, reason) do update set count = refusals.count + excluded.count`,
    values: [
      encodeArray(
        'uuid[]',
        counts.map(({ credentialId }) => credentialId),
      ),
      encodeArray(
        'integer[]',
        counts.map(({ hour }) => hour),
      ),
      encodeArray(
        'text[]',
        counts.map(({ reason }) => reason),
      ),
      encodeArray(
        'bigint[]',
        counts.map(({ count }) => BigInt(count)),
      ),
    ],
  })
}

const refusedRow = z.object({ hour: z.date(), reason: z.string(), count: z.bigint() })

/** How often a key was refused for a reason within the hour that begins then. */
export type Refused = z.output<typeof refusedRow>

const SHOWN = 1_000

/** The refusals of a key, the latest hour first, and those of a process's last minute not yet. */
export async function refusalsOf(pool: pg.Pool, credentialId: Id, since: Date): Promise<readonly Refused[]> {
  const { rows } = await pool.query(
    `select hour, reason, count from refusals where credential_id = $1 and hour >= $2
     order by hour desc, count desc, reason limit $3`,
    [credentialId, since, SHOWN],
  )
  return z.array(refusedRow).parse(rows)
}

const refusedSum = z.object({ credential_id: z.string(), reason: z.string(), count: z.bigint(), last_hour: z.date() })

/** How often each of some keys was refused since a moment, by reason, the most frequent first. */
export async function refusalSumsOf(
  pool: pg.Pool,
  credentialIds: readonly Id[],
  since: Date,
): Promise<ReadonlyMap<Id, readonly z.output<typeof refusedSum>[]>> {
  const { rows } = await pool.query(
    `select credential_id, reason, sum(count)::bigint as count, max(hour) as last_hour from refusals
     where credential_id = any ($1) and hour >= $2 group by credential_id, reason order by 3 desc, 2 limit $3`,
    [credentialIds, since, SHOWN],
  )
  return Map.groupBy(z.array(refusedSum).parse(rows), ({ credential_id: id }) => id)
}

const PORTION = 1_000

/** Deletes what is older than it is kept. How many rows that were. */
export async function pruneRefusals(pool: pg.Pool, keepDays: number): Promise<number> {
  return inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `delete from refusals where (credential_id, hour, reason) in (
         select credential_id, hour, reason from refusals
         where hour < statement_timestamp() - make_interval(days => $1) order by hour limit $2)`,
      [keepDays, most],
    )
    return rowCount ?? 0
  })
}
