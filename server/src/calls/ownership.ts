import { type Clock, systemClock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Log } from '../telemetry/log.ts'
import type { Calls } from './calls.ts'
import { type Query, Row } from './query.ts'
import { unsettleStatement } from './unsettle.ts'

/**
 * The lease by which PostgreSQL knows that this process lives and runs the calls that it began. With every renewal it
 * learns PostgreSQL's clock and compares the calls that PostgreSQL has as its own with those that it knows of.
 */
export type Ownership = {
  /** Resolves when the lease is held and PostgreSQL's clock known. What the process reports of itself is written with each renewal. */
  readonly start: (report?: () => string) => Promise<void>
  /** Ends the lease at once: whatever is still open is an orphan from now on. */
  readonly stop: () => Promise<void>
}

type Parts = {
  readonly query: Query
  readonly ownerId: Id
  readonly calls: Pick<Calls, 'isOurs'>
  readonly clock: Clock
  readonly time: DatabaseTime
  readonly log: Log
  readonly renewEveryMs?: number
  readonly leaseSeconds?: number
}

/** How many of its own calls a process looks at in one comparison, oldest first. */
const COMPARED = 10_000
const RETRY_MS = 500

export function createOwnership(parts: Parts): Ownership {
  const { query, ownerId, calls, clock, time, log, renewEveryMs = 3_000, leaseSeconds = 10 } = parts
  const stopping = new AbortController()
  let heldSince: number | undefined
  let unknownBefore: ReadonlySet<Id> = new Set()
  let running: Promise<void> | undefined
  let report: (() => string) | undefined

  async function renew(): Promise<void> {
    const askedAtMs = clock.monotonicMs()
    const [columns] = await query({
      name: 'renew_lease',
      text: `with reported as (
          insert into process_reports (owner_id, at, report) select $1::uuid, clock_timestamp(), $3::text where $3::text is not null
          on conflict (owner_id) do update set at = excluded.at, report = excluded.report
        )
        select extract(epoch from at)::float8, extract(epoch from since)::float8 from renew_lease(owner => $1, seconds => $2)`,
      values: [ownerId, leaseSeconds, report?.() ?? null],
    })
    const row = new Row(columns)
    time.learn(row.number(0) * 1_000, askedAtMs, clock.monotonicMs())
    const since = row.number(1)
    if (heldSince !== undefined && since !== heldSince)
      log.warn('the lease was renewed late: had it ended, calls of this process were taken for orphans')
    heldSince = since
  }

  /**
   * A call that PostgreSQL has as ours and that we know nothing of was lost in this process, after its upstream may have
   * been asked. It is disowned when it was unknown twice: what was being begun at the first look is known at the second.
   */
  async function compare(): Promise<void> {
    const rows = await query({
      name: 'open_calls_of_owner',
      text: 'select id from open_calls_of(owner => $1, most => $2) id',
      values: [ownerId, COMPARED],
    })
    const unknown = new Set(rows.map((columns) => new Row(columns).text(0)).filter((id) => !calls.isOurs(id)))
    const lost = [...unknown].filter((id) => unknownBefore.has(id))
    unknownBefore = unknown
    if (lost.length === 0) return
    await query(unsettleStatement(lost, ownerId))
    for (const id of lost) log.error('a call was lost in this process and is unsettled', { request_id: id })
  }

  async function run(): Promise<void> {
    let pauseMs = renewEveryMs
    for (;;) {
      await clock.sleep(pauseMs, stopping.signal).catch(() => {})
      if (stopping.signal.aborted) return
      try {
        await renew()
        pauseMs = renewEveryMs
        await compare().catch((error: unknown) => log.warn('open calls were not compared', { error }))
      } catch (error) {
        log.warn('the lease was not renewed', { error })
        pauseMs = RETRY_MS
      }
    }
  }

  return {
    async start(given) {
      report = given
      await renew()
      running = run()
    },
    async stop() {
      stopping.abort()
      await running
      if (heldSince === undefined) return
      const statement = {
        name: 'end_lease',
        text: `with ended as (delete from process_reports where owner_id = $1)
          update owners set lease_until = clock_timestamp() where id = $1`,
      }
      await query({ ...statement, values: [ownerId] }).catch((error: unknown) =>
        log.warn('the lease was not ended, and will end by itself', { error }),
      )
    },
  }
}

/** An answer that took longer says too little about the moment at which it was given. */
const UNSURE_MS = 1_000

/** PostgreSQL's clock, as far as it is known here. Ids carry it, so that a process whose own clock is wrong makes right ids. */
export type DatabaseTime = Pick<Clock, 'nowMs'> & {
  /** It was this late there at some moment between two of our own. */
  readonly learn: (thereMs: number, askedAtMs: number, answeredAtMs: number) => void
}

export function createDatabaseTime(clock: Clock = systemClock): DatabaseTime {
  let offsetMs: number | undefined
  return {
    nowMs() {
      if (offsetMs === undefined) throw new Error("PostgreSQL's clock is not known yet")
      return clock.monotonicMs() + offsetMs
    },
    learn(thereMs, askedAtMs, answeredAtMs) {
      // A process that was stopped while it waited has seen the answer late; what it knew before is better.
      if (offsetMs !== undefined && answeredAtMs - askedAtMs > UNSURE_MS) return
      offsetMs = thereMs - (askedAtMs + answeredAtMs) / 2
    },
  }
}
