import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type ProcessReport, reportIn } from './report.ts'

/** A process of the installation, as its lease and its last report say. */
export type ProcessView = {
  readonly id: Id
  /** False where its lease has ended without it having stopped: it died, or can't reach PostgreSQL. */
  readonly isAlive: boolean
  /** When it last renewed its lease. */
  readonly seenAt: Date
  /** Since when it has always renewed its lease in time. */
  readonly heldSince: Date
  /** Null where its release writes none that can be read. */
  readonly report: ProcessReport | null
}

/** Beyond this a process no longer knows in time of revoked keys and changed prices. */
const LAGGING_MS = 5_000

/** Whether it lives and follows the database. */
export function isReady({ isAlive, report }: ProcessView): boolean {
  return isAlive && report !== null && report.changesLagMs !== null && report.changesLagMs < LAGGING_MS
}

/** By then it has read the change log, or can't. */
const STARTING_SECONDS = 10

/** Whether it has begun so short a time ago that it says nothing yet of how it is. */
export function isStarting({ report }: ProcessView): boolean {
  return report !== null && report.changesLagMs === null && report.upSeconds < STARTING_SECONDS
}

/** Far more than an installation has. */
const MOST = 500

const rows = z.array(
  z.object({
    id: z.string(),
    isAlive: z.boolean(),
    seenAt: z.date(),
    heldSince: z.date(),
    report: z.string().nullable(),
  }),
)

/** All that live, and those that died lately: the rows of dead ones go with their leases. At most so many, the longest there first. */
export async function readProcesses(pool: pg.Pool): Promise<readonly ProcessView[]> {
  const { rows: found } = await pool.query(
    `select o.id, o.lease_until > clock_timestamp() as "isAlive", coalesce(p.at, o.held_since) as "seenAt", o.held_since as "heldSince", p.report
     from owners o left join process_reports p on p.owner_id = o.id
     where o.lease_until > clock_timestamp() or p.report is not null
     order by o.lease_until > clock_timestamp() desc, o.id limit $1`,
    [MOST],
  )
  return rows
    .parse(found)
    .map((row) => ({ ...row, report: row.report === null ? null : (reportIn(row.report) ?? null) }))
}
