import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Query } from '../storage/transaction.ts'

/** What a workspace may ask for so many times a day, and by which column of which table that is counted. */
type Asked = {
  readonly table: 'closures' | 'exports' | 'quota_requests'
  readonly at: 'asked_at' | 'as_of' | 'created_at'
  readonly most: number
  /** Behind "Rate limit: ". */
  readonly what: string
}

const fewRow = z.object({ made: z.int(), wait: z.int().nullable() })

/** Refuses another one of them within a day of the last few. */
export async function requireFewToday(query: Query, workspaceId: Id, { table, at, most, what }: Asked): Promise<void> {
  const { rows } = await query(
    `select count(*)::integer as made, ceil(extract(epoch from min(at) + interval '1 day' - clock_timestamp()))::integer as wait
     from (select ${at} as at from ${table} where workspace_id = $1 and ${at} > clock_timestamp() - interval '1 day'
       order by id desc limit $2) latest`,
    [workspaceId, most],
  )
  const { made, wait } = fewRow.parse(rows[0])
  if (made < most) return
  throw new Fault('rate_limit_exceeded', { detail: `Rate limit: ${what}`, retryAfterSeconds: Math.max(1, wait ?? 1) })
}
