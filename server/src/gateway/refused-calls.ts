import type pg from 'pg'
import type { Caller } from '../identity/caller.ts'
import { type Clock, within } from '../kernel/clock.ts'
import type { Fault } from '../kernel/fault.ts'
import { type Id, idTimeMs } from '../kernel/ids.ts'
import { type Nanos, usd } from '../kernel/money.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createScrubber } from '../telemetry/scrubber.ts'
import { isKey } from './idempotency.ts'

/**
 * What was refused, for whoever asks why: behind the answer, in one statement a second. It is detail, never evidence: what does not fit, what
 * PostgreSQL does not take and what a process that dies had not written is lost, and counted as far as somebody is there to count.
 */
export type RefusedCalls = {
  readonly add: (call: RefusedRequest, fault: Fault) => void
  /** Writes what is waiting, as far as there is time. */
  readonly flush: (deadlineMs: number) => Promise<void>
}

/** A call that was refused before it began, as far as it was read. */
export type RefusedRequest = {
  readonly id: Id
  readonly caller: Pick<Caller, 'workspaceId' | 'accountId' | 'credentialId'>
  readonly operation: string
  /** By the name that the caller asked for. */
  readonly model: string | undefined
  readonly idempotencyKey: string | undefined
}

type Parts = {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly metrics: Pick<Metrics, 'refusedCallsNotKept'>
}

/** Of a workspace, live and test together. A process keeps no more by itself; the statement counts what all processes have kept. */
export const KEPT_PER_MINUTE = 200
const EVERY_MS = 1_000
const MINUTE_MS = 60_000
const WAITING_BYTES = 1_048_576
/** Workspaces of which a process tells apart how many refusals of this minute it has kept. */
const WORKSPACES = 10_000
const TEXT_LENGTH = 200

export function createRefusedCalls({ pool, clock, log, metrics }: Parts): RefusedCalls {
  const mayKeep = createMinuteLimit()
  let waiting: string[] = []
  let waitingBytes = 0
  let isWriting = false
  let written = Promise.resolve()

  /** One statement of all that is waiting, behind the one before. */
  function writeAll(): Promise<void> {
    written = written.then(writeOnce)
    return written
  }

  async function writeOnce(): Promise<void> {
    if (waiting.length === 0) return
    const [calls, count] = [`[${waiting.join(',')}]`, waiting.length]
    waiting = []
    waitingBytes = 0
    try {
      const { rows } = await pool.query<{ kept: number }>({
        name: 'keep_refused_calls',
        text: 'select keep_refused_calls(calls => $1, most => $2) as kept',
        values: [calls, KEPT_PER_MINUTE],
      })
      lose('over_limit', count - (rows[0]?.kept ?? 0))
    } catch (error) {
      lose('not_written', count)
      log.warn('refused calls were not kept', { count, error })
    }
  }

  function lose(reason: 'over_limit' | 'no_room' | 'not_written', count = 1): void {
    if (count > 0) metrics.refusedCallsNotKept.inc({ reason }, count)
  }

  async function write(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      await clock.sleep(EVERY_MS)
      await writeAll()
    }
    isWriting = false
  }

  return {
    add(call, fault) {
      if (!mayKeep(call.caller.workspaceId, minuteOf(call.id))) return lose('over_limit')
      const row = rowOf(call, fault)
      // A unit of a text is two bytes at the most.
      const bytes = 2 * row.length
      if (waitingBytes + bytes > WAITING_BYTES) return lose('no_room')
      waiting.push(row)
      waitingBytes += bytes
      if (!isWriting) void write()
    },
    async flush(deadlineMs) {
      await within(clock, writeAll(), deadlineMs)
    },
  }
}

const minuteOf = (id: Id) => Math.floor(idTimeMs(id) / MINUTE_MS)

/** Whether one more of a workspace is kept: what is beyond the limit is neither written out nor sent. */
function createMinuteLimit() {
  let minute = 0
  let kept = new Map<Id, number>()
  return (workspaceId: Id, of: number): boolean => {
    if (of > minute) {
      minute = of
      kept = new Map()
    }
    const before = kept.get(workspaceId) ?? 0
    if (before >= KEPT_PER_MINUTE || (before === 0 && kept.size >= WORKSPACES)) return false
    kept.set(workspaceId, before + 1)
    return true
  }
}

/** As JSON, which takes as much room as it has characters. */
function rowOf({ id, caller, operation, model, idempotencyKey }: RefusedRequest, fault: Fault): string {
  const { code, status, retryAfterSeconds } = fault
  const member = (name: string) => fault.members[name]
  return JSON.stringify({
    id,
    workspace_id: caller.workspaceId,
    minute: minuteOf(id),
    account_id: caller.accountId,
    credential_id: caller.credentialId,
    operation,
    model: textOf(model),
    code,
    status,
    needed: amountOf(member('needed_usd')),
    left_over: amountOf(member('left_usd') ?? member('cap_usd')),
    budget_kind: textOf(member('budget_kind')),
    budget_subject: textOf(member('budget_subject')),
    budget_period: textOf(member('budget_period')),
    limited_by: textOf(member('limited_by')),
    fitting_output: numberOf(member('fitting_output_limit')),
    retry_after_seconds: retryAfterSeconds,
    fix_url: textOf(member('fix_url'), 1_000),
    idempotency_key: isKey(idempotencyKey) ? textOf(idempotencyKey, 255) : undefined,
  })
}

const scrub = createScrubber([])

/** Somebody may have put a key in the place of a name: that is not kept, nor what PostgreSQL has no text for. */
function textOf(value: unknown, most = TEXT_LENGTH): string | undefined {
  if (typeof value !== 'string' || value.includes('\0') || scrub(value) !== value) return undefined
  return value.slice(0, most).toWellFormed()
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

/** In nanos, as PostgreSQL reads a number that may be larger than those of JSON. */
function amountOf(value: unknown): string | undefined {
  const amount: Nanos | undefined = typeof value === 'string' ? usd(value) : undefined
  return amount?.toString()
}

const PORTION = 5_000

/** Deletes what is older than it is kept. How many that were. */
export async function pruneRefusedCalls(pool: pg.Pool, keepDays: number): Promise<number> {
  return inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `delete from refused_calls where id in (
         select id from refused_calls where id < first_id_at(statement_timestamp() - make_interval(days => $1)) order by id limit $2)`,
      [keepDays, most],
    )
    return rowCount ?? 0
  })
}
