import type pg from 'pg'
import { z } from 'zod'
import { canonicalBytes, sha256 } from '../../contracts/canonical.ts'
import type { Snapshot } from '../../http/routes/sales.ts'

export type Read = {
  readonly snapshot: Snapshot
  /** By the clock of PostgreSQL, as the observation is. */
  readonly ageMs: number
  /** Whether the worker has tried to make another since, and could not. */
  readonly hasFailed: boolean
}

/** Makes one of what is read at the time of PostgreSQL, and puts it in place of the one before. */
export async function keepSnapshot(
  pool: pg.Pool,
  read: (observedAt: Date) => Promise<{ readonly observed_at: string }>,
): Promise<void> {
  try {
    // Taken before anything is read: a snapshot is never younger than what is in it.
    const bytes = canonicalBytes(await read(await timeOf(pool)))
    await pool.query(
      `insert into sales_snapshots (content_hash, bytes) values ($1, $2)
         on conflict (is_newest) do update
           set content_hash = excluded.content_hash, bytes = excluded.bytes, failed_at = null`,
      [sha256(bytes), bytes],
    )
  } catch (error) {
    await pool.query('update sales_snapshots set failed_at = clock_timestamp() where failed_at is null')
    throw error
  }
}

async function timeOf(pool: pg.Pool): Promise<Date> {
  const { rows } = await pool.query('select clock_timestamp() as now')
  return z.tuple([z.object({ now: z.date() })]).parse(rows)[0].now
}

const row = z.object({
  content_hash: z.string(),
  bytes: z.instanceof(Buffer),
  failed_at: z.date().nullable(),
  now: z.date(),
})
const observation = z.object({ observed_at: z.iso.datetime().transform((text) => new Date(text)) })

/** The newest; undefined where none has been made. Throws where its bytes are not what they are said to be. */
export async function readSnapshot(pool: pg.Pool): Promise<Read | undefined> {
  const { rows } = await pool.query(
    'select content_hash, bytes, failed_at, clock_timestamp() as now from sales_snapshots',
  )
  if (rows[0] === undefined) return undefined
  const { content_hash: contentHash, bytes, failed_at: failedAt, now } = row.parse(rows[0])
  if (sha256(bytes) !== contentHash) throw new Error(`the bytes kept for ${contentHash} have another hash`)
  const { observed_at: observedAt } = observation.parse(JSON.parse(bytes.toString('utf8')))
  const ageMs = Math.max(0, now.getTime() - observedAt.getTime())
  return { snapshot: { contentHash, bytes, observedAt }, ageMs, hasFailed: failedAt !== null }
}
