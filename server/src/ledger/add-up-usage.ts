import type pg from 'pg'
import { z } from 'zod'
import { wasCanceled } from '../storage/refusal.ts'

/** Takes a tenth of a second for calls without tags, and some seconds for ones with all that a call can have; nobody waits for it. */
const AT_ONCE = 5_000
/** A portion of this many that takes too long is not too large: something else is wrong. */
const AT_ONCE_LEAST = 10
/** By how much a portion grows that was in time. */
const GROWTH = 100

const added = z.tuple([z.object({ added: z.int().nullable() })])

/**
 * Adds usage to the sums that reports are made of. Any process may, and one does at a time: whoever finds another at it leaves it the work.
 * How many rows this one added.
 *
 * A portion that takes too long leaves everything as it was. So the next is half of it, and those after it grow again: a tail of calls
 * with many tags, on a slow disk, is added up as well.
 */
export async function addUpUsage(pool: pg.Pool): Promise<number> {
  // All on one connection: on another, a portion could begin before PostgreSQL has undone the late one, and find it still at it.
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    return await addUpAll(client)
  } catch (error) {
    failure = error instanceof Error ? error : new Error('usage could not be added up', { cause: error })
    throw failure
  } finally {
    client.release(failure)
  }
}

async function addUpAll(client: pg.PoolClient): Promise<number> {
  let all = 0
  for (let most = AT_ONCE; ; ) {
    const done = await addUp(client, most)
    if (done === 'late') {
      most = Math.max(AT_ONCE_LEAST, Math.floor(most / 2))
      continue
    }
    all += done
    if (done < most) return all
    most = Math.min(AT_ONCE, most + GROWTH)
  }
}

async function addUp(client: pg.PoolClient, most: number): Promise<number | 'late'> {
  try {
    const { rows } = await client.query('select add_up_usage(most => $1) as added', [most])
    return added.parse(rows)[0].added ?? 0
  } catch (error) {
    if (most > AT_ONCE_LEAST && wasCanceled(error)) return 'late'
    throw error
  }
}

const figures = z.tuple([z.object({ rows: z.int(), oldest_seconds: z.number() })])

/** How much usage is in no sum yet, and for how long the oldest of it has been waiting. */
export async function tailFigures(pool: pg.Pool): Promise<{ readonly rows: number; readonly oldestSeconds: number }> {
  const { rows } = await pool.query(
    `select count(*)::integer as rows, coalesce(greatest(0, extract(epoch from clock_timestamp() - min(at))), 0)::double precision as oldest_seconds
     from usage_tail`,
  )
  const [{ rows: count, oldest_seconds }] = figures.parse(rows)
  return { rows: count, oldestSeconds: oldest_seconds }
}
