import type pg from 'pg'
import { encodeArray } from '../calls/columns.ts'
import { type Clock, within } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Log } from '../telemetry/log.ts'
import type { RouteReason } from './plan.ts'

/**
 * How a call went, for its owner to look up: evidence, the upstream's part, times. The ledger alone says what it cost, so
 * these are written behind the answer; what a crash loses of them is detail.
 */
export type RecordDetail = {
  /** By the name that the caller asked for; null for what is no model's. */
  readonly model: string | null
  readonly status: number
  /** By which version of its price it was charged. */
  readonly price_version: string
  readonly formula: string | null
  readonly evidence: Readonly<Record<string, string | number | boolean | null>>
  readonly upstream: readonly RecordedAttempt[]
  /** By which of a model's routes it went, and why; null where it has none. */
  readonly routing: RecordedRouting | null
  /** Milliseconds since the request came. */
  readonly timeline: Readonly<Record<string, number>>
  /** What was held for it, and each time that this grew. */
  readonly hold: readonly RecordedHold[]
  /** In USD, what the account had left when it had ended. */
  readonly balance_after: string
  /** As the timeline: when the first byte of the answer's body went to the caller; null where nobody was there for it. */
  readonly first_byte_ms: number | null
}

/** As the timeline, and in USD. */
export type RecordedHold = { readonly at_ms: number; readonly usd: string }

export type RecordedRouting = { readonly slot: string; readonly upstream_model: string; readonly reason: RouteReason }

/** A request to an upstream. Which of a slot's upstreams it was is for operators alone. */
export type RecordedAttempt = {
  readonly slot: string
  readonly upstream_id: Id
  readonly outcome: 'answered' | 'not_sent' | 'unknown'
  readonly status: number | null
  readonly reason: string | null
  /** As the timeline. */
  readonly began_ms: number
  readonly ended_ms: number
}

export type Records = {
  /** What one process knows of a call is added to what another knew: a task is begun by one and ended by another. */
  readonly add: (id: Id, detail: Partial<RecordDetail>) => void
  /** Writes what is waiting, as far as there is time. */
  readonly flush: (deadlineMs: number) => Promise<void>
}

type Parts = { readonly pool: pg.Pool; readonly clock: Clock; readonly log: Log; readonly waitMs?: number }

const WAITING_LIMIT = 20_000
const BATCH = 1_000

export function createRecords({ pool, clock, log, waitMs = 100 }: Parts): Records {
  /** As JSON, by the id of the call. */
  const waiting = new Map<Id, string>()
  let writing: Promise<void> | undefined

  async function write(): Promise<void> {
    await clock.sleep(waitMs)
    while (waiting.size > 0) {
      const batch = firstOf(waiting, BATCH)
      for (const [id] of batch) waiting.delete(id)
      await pool
        .query({
          name: 'insert_request_records',
          text: `insert into request_records (id, detail)
            select id, detail::jsonb from unnest($1::uuid[], $2::text[]) item (id, detail)
            on conflict (id) do update set detail = request_records.detail || excluded.detail`,
          values: [ids(batch), details(batch)],
        })
        .catch((error: unknown) => log.warn('details of calls were not kept', { count: batch.length, error }))
    }
  }

  function start(): Promise<void> {
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }

  return {
    add(id, detail) {
      if (waiting.size >= WAITING_LIMIT) return
      const known = waiting.get(id)
      waiting.set(id, JSON.stringify(known === undefined ? detail : { ...JSON.parse(known), ...detail }))
      void start()
    },
    async flush(deadlineMs) {
      const written = async () => {
        while (waiting.size > 0 || writing !== undefined) await start()
      }
      await within(clock, written(), deadlineMs)
    },
  }
}

function firstOf(waiting: ReadonlyMap<Id, string>, most: number): Waiting {
  const first: (readonly [Id, string])[] = []
  for (const entry of waiting) {
    if (first.length === most) break
    first.push(entry)
  }
  return first
}

type Waiting = readonly (readonly [id: Id, detail: string])[]

const ids = (batch: Waiting) =>
  encodeArray(
    'uuid[]',
    batch.map(([id]) => id),
  )
const details = (batch: Waiting) =>
  encodeArray(
    'text[]',
    batch.map(([, detail]) => detail),
  )

/**
 * Deletes records older than they are kept; an id carries its time. How many that were. The time is the statement's: by one that moves
 * no index can be asked, and every record would be read to find that none is old.
 */
export async function pruneRecords(pool: pg.Pool, keepDays: number): Promise<number> {
  return inPortions(BATCH, async (most) => {
    const { rowCount } = await pool.query(
      `delete from request_records where id in (
         select id from request_records where id < first_id_at(statement_timestamp() - make_interval(days => $1)) order by id limit $2)`,
      [keepDays, most],
    )
    return rowCount ?? 0
  })
}
