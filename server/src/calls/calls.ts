import { type Clock, within } from '../kernel/clock.ts'
import { Fault, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import type { Log } from '../telemetry/log.ts'
import type { Call, Ending, Extension, Growth, HandOver, Judgement, Settlement } from './call.ts'
import { encodeArray } from './columns.ts'
import { extendBatch } from './extend-batch.ts'
import { judgedPath, type Path } from './fast-path.ts'
import { createHandOver, createPatientQuery } from './hand-over.ts'
import { createLane, type Lane } from './lane.ts'
import { Contended, Unanswered } from './money-query.ts'
import { OpenCalls } from './open-calls.ts'
import type { Query } from './query.ts'

/** BEGIN, EXTEND and END of a call, batched with those of its neighbours. */
export type LaneFigures = { readonly waiting: number; readonly lagMs: number }

export type Calls = {
  /** Admits, claims and holds, or refuses. A fault means that nothing is held, or will not be for long. */
  readonly begin: (call: Call) => Promise<Judgement>
  /**
   * Raises what a call of this process holds, to a total, or leaves it as it is. `unanswered` where PostgreSQL did not say which in time:
   * nobody may count on it then, and END settles whichever it was.
   */
  readonly extend: (extension: Extension) => Promise<Growth | Unheard>
  /**
   * Posts or voids. A call has one ender: after a fault it gives back what a sending of its own may have posted, as soon
   * as PostgreSQL answers again and unless this process dies first.
   */
  readonly end: (ending: Ending) => Promise<Settlement>
  /**
   * Posts or voids the call of a task, which belongs to no process: whoever hears of its end does it, once or more. A fault
   * leaves it as it is, or ended.
   */
  readonly endTask: (ending: Ending & Required<Pick<Ending, 'task'>>) => Promise<Settlement>
  /**
   * Gives a call that this process began to its task, so that it goes on whatever becomes of us. What could not be written
   * in time is written as soon as PostgreSQL answers again; should this process die first, the task is unsettled. True
   * where it is known now who has the task.
   */
  readonly handOver: (task: HandOver) => Promise<boolean>
  /** Nobody can say whether the upstream has it: the money stays held until somebody can. */
  readonly leaveUnsettled: (id: Id) => Promise<void>
  /** The caller of a call of this process has left, and its place is free while the call goes on. It keeps it where PostgreSQL does not answer. */
  readonly freePlace: (id: Id) => void
  /** Whether this process is at a call: it is being begun, runs, or is being ended. */
  readonly isOurs: (id: Id) => boolean
  readonly open: () => readonly Id[]
  /** What calls of a key that this process is at have reserved of its tokens, in the window that ends then. */
  readonly reservedTokens: (credentialId: Id, windowEndsAtMs: number) => number
  /** What waits to be written by each kind of statement, and how long the first of it has waited. */
  readonly lanes: () => Readonly<Record<'begin' | 'extend' | 'end', LaneFigures>>
  /** How long one more call would wait to be begun and ended. */
  readonly waitMs: () => number
  /** Waits until no call is open any more; false where the deadline passed first. */
  readonly untilNoneOpen: (deadlineMs: number) => Promise<boolean>
  /** Waits until every ending has been written; false where the deadline passed first. */
  readonly flush: (deadlineMs: number) => Promise<boolean>
}

export type Unheard = { readonly outcome: 'unanswered' }

type Parts = {
  readonly query: Query
  readonly ownerId: Id
  readonly clock: Clock
  readonly log: Log
  /** By the judging functions alone, where it is left out. */
  readonly path?: Path
  readonly beginDeadlineMs?: number
  readonly extendDeadlineMs?: number
  readonly endDeadlineMs?: number
  readonly batchLimit?: number
  readonly queueLimit?: number
}

class Late extends Error {
  readonly sent: boolean

  constructor(sent: boolean) {
    super('the deadline passed')
    this.sent = sent
  }
}

/**
 * A call that would wait for longer than this, because PostgreSQL answers but not so many, is refused at once: most callers would be gone
 * when their turn came. It is longer than PostgreSQL is given to answer, so that one that hangs is not taken for a busy one.
 */
const PATIENCE_MS = 2_500
const NEVER_MS = Number.POSITIVE_INFINITY
const LOOK_MS = 10
const CLAIMS_LIMIT = 16
/** What is configured is refused when it would be more. */
const ALLOWANCES_LIMIT = 8
/** Every ending, and every extension, belongs to a call that was begun, and those are bounded: none is ever refused for want of room. */
const NO_LIMIT = Number.POSITIVE_INFINITY

export function createCalls(parts: Parts): Calls {
  const { query, ownerId, clock, log, path = judgedPath } = parts
  const { beginDeadlineMs = 5_000, extendDeadlineMs = 5_000, endDeadlineMs = 10_000 } = parts
  const { batchLimit = 256, queueLimit = 20_000 } = parts
  const shared = {
    clock,
    batchLimit,
    queueLimit,
    isTransient: (error: unknown) => error instanceof Unanswered,
    isContended: (error: unknown) => error instanceof Contended,
    accountOf: ({ accountId }: { readonly accountId: Id }) => accountId,
    lateness: (_: unknown, sent: boolean) => new Late(sent),
    overload: () => new Fault('overloaded', { retryAfterSeconds: 1 }),
  }
  const begins = createLane<Call, Judgement>({
    ...shared,
    idOf: ({ id }) => id,
    // An admission leaves no row by which it would be known again, and a second one would count twice.
    mayRepeat: ({ hold }) => hold !== null,
    // A refusal must not be followed by the hold of an earlier sending that arrives late.
    answeredLate: (call, judgement) => {
      if (call.hold !== null && judgement?.outcome !== 'begun') settleInBackground(voidOf(call))
    },
    execute: (calls) => path.begin(query, ownerId, calls),
  })
  const extensions = createLane<Extension, Growth>({
    ...shared,
    queueLimit: NO_LIMIT,
    idOf: ({ id }) => id,
    // An earlier sending that arrives late finds its total held already, or no hold: it needs no word of its own.
    mayRepeat: () => true,
    execute: (items) => extendBatch(query, ownerId, items),
  })
  const endings = createLane<Ending, Settlement>({
    ...shared,
    queueLimit: NO_LIMIT,
    idOf: ({ id }) => id,
    mayRepeat: () => true,
    execute: (items) => path.end(query, items),
  })
  const open = new OpenCalls()
  const background = new Map<Id, Promise<void>>()
  const untilAnswered = createPatientQuery({ query, clock })
  const away = createHandOver({ query, ownerId, clock, log, open, background, patienceMs: endDeadlineMs })

  async function begin(call: Call): Promise<Judgement> {
    requireSound(call)
    requireRoom()
    // An id that is being voided, because an earlier sending of it may arrive yet, would lose its hold again.
    if (background.has(call.id)) throw unavailable(new Error('the id of a call is being voided'))
    if (call.hold !== null) open.add(call.id)
    try {
      const judgement = await begins.submit(call, beginDeadlineMs)
      if (judgement.outcome !== 'begun') open.delete(call.id)
      else if (judgement.rates.tokens !== null) open.noteReserve(call, judgement.rates.tokens.resetAtMs)
      return judgement
    } catch (error) {
      open.delete(call.id)
      if (!(error instanceof Late)) throw error
      // What was sent may hold money yet, even after this: the void leaves a tombstone for a hold that comes late.
      if (error.sent && call.hold !== null) settleInBackground(voidOf(call))
      throw unavailable(error)
    }
  }

  /** Endings come first: what has begun is answered in time before anything else begins. */
  function requireRoom(): void {
    if (Math.max(begins.lagMs(), extensions.lagMs(), endings.lagMs()) > PATIENCE_MS) throw shared.overload()
  }

  async function extend(extension: Extension): Promise<Growth | Unheard> {
    try {
      const growth = await extensions.submit(extension, extendDeadlineMs)
      if (growth.outcome === 'extended') open.raiseReserve(extension.id, growth.reserved)
      return growth
    } catch (error) {
      if (error instanceof Late) return { outcome: 'unanswered' }
      throw error
    }
  }

  async function end(ending: Ending): Promise<Settlement> {
    try {
      const settlement = await endings.submit(ending, endDeadlineMs)
      open.delete(ending.id)
      return settlement
    } catch (error) {
      if (!(error instanceof Late)) {
        // Nobody will end it any more: it must not be taken for a call that still runs here.
        open.delete(ending.id)
        log.error('a call could not be ended', { request_id: ending.id, error })
        throw new Fault('internal_error', { cause: error })
      }
      settleInBackground({ ...ending, forgiven: true })
      throw new Fault('settlement_timeout', { cause: error, members: { call_id: ending.id } })
    }
  }

  async function endTask(ending: Ending): Promise<Settlement> {
    try {
      return await endings.submit(ending, endDeadlineMs)
    } catch (error) {
      throw error instanceof Late ? unavailable(error) : error
    }
  }

  function settleInBackground(ending: Ending): void {
    const work = settleWithoutCaller(ending)
      .catch((error: unknown) => log.error('a call could not be ended', { request_id: ending.id, error }))
      .finally(() => background.delete(ending.id))
    background.set(ending.id, work)
  }

  /** The caller got nothing, so nothing is charged: what has not been posted is posted as 0, what has is given back. */
  async function settleWithoutCaller(ending: Ending): Promise<void> {
    const { endedNow, charged } = await endings.submit(ending, NEVER_MS)
    open.delete(ending.id)
    if (endedNow || charged === ZERO || !ending.forgiven) return
    const values = [ending.id, charged.toString()]
    await untilAnswered({ name: 'forgive_charge', text: 'select forgive_charge(charge_id => $1, most => $2)', values })
  }

  /** A begin that fails meanwhile leaves a void to be written, and an ending that fails leaves a reversal. */
  async function untilWritten(): Promise<void> {
    while (begins.size() + endings.size() + background.size > 0) {
      await Promise.all([begins.idle(), endings.idle(), ...background.values()])
      // Those who waited for a lane submit what follows from its answer in the turns after it.
      await clock.sleep(1)
    }
  }

  function freePlace(id: Id): void {
    const values = [encodeArray('uuid[]', [id]), ownerId]
    query({ name: 'free_places', text: 'select free_places(ids => $1, of => $2)', values }).catch((error: unknown) =>
      log.warn('the place of a call whose caller has left could not be freed', { request_id: id, error }),
    )
  }

  async function untilNoneOpen(deadlineMs: number): Promise<boolean> {
    const deadlineAtMs = clock.monotonicMs() + deadlineMs
    while (open.size > 0 && clock.monotonicMs() < deadlineAtMs) await clock.sleep(LOOK_MS)
    return open.size === 0
  }

  return {
    begin,
    extend,
    end,
    endTask,
    handOver: away.handOver,
    leaveUnsettled: away.leaveUnsettled,
    freePlace,
    isOurs: (id) => open.has(id) || background.has(id),
    open: () => open.ids(),
    reservedTokens: (credentialId, windowEndsAtMs) => open.reservedTokens(credentialId, windowEndsAtMs),
    lanes: () => ({ begin: figuresOf(begins), extend: figuresOf(extensions), end: figuresOf(endings) }),
    waitMs: () => begins.waitMs() + endings.waitMs(),
    untilNoneOpen,
    flush: (deadlineMs) => within(clock, untilWritten(), deadlineMs),
  }
}

function figuresOf({ size, lagMs }: Pick<Lane<never, unknown>, 'size' | 'lagMs'>): LaneFigures {
  return { waiting: size(), lagMs: Math.round(lagMs()) }
}

/** What would be judged or written wrongly, and can only come from a mistake of ours. */
function requireSound({ windows, claims, hold }: Call): void {
  if (hold !== null && hold.allowances.length > ALLOWANCES_LIMIT)
    throw new Error(`a call counts against at most ${ALLOWANCES_LIMIT} allowances`)
  if (claims.length > CLAIMS_LIMIT) throw new Error(`a call has at most ${CLAIMS_LIMIT} claims`)
  if (hasRepetition(windows, ({ group }) => group)) throw new Error('a call names a window once')
  if (hasRepetition(claims, ({ scope, key }) => `${scope}\0${key}`)) throw new Error('a call names a claim once')
}

function hasRepetition<T>(items: readonly T[], nameOf: (item: T) => string): boolean {
  return items.length > 1 && new Set(items.map(nameOf)).size < items.length
}

/** The end of a call that was certainly never executed. */
export function voidOf({ id, accountId, task }: Pick<Call, 'id' | 'accountId' | 'task'>): Ending {
  const ending = { id, accountId, amount: null, forgiven: false, usage: NO_USAGE }
  return task === undefined ? ending : { ...ending, task: NEVER_EXECUTED }
}

const NEVER_EXECUTED = { state: 'FAILED', code: 'NotExecuted', message: 'The task was never carried out.' } as const

export const NO_USAGE = {
  value: ZERO,
  upstreamCost: ZERO,
  executed: false,
  failed: false,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
} as const
