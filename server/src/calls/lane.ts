import type { Clock } from '../kernel/clock.ts'
import { Failed, orFailed } from './failed.ts'

/**
 * Turns concurrent items into batches, one batch in flight at a time: while one is in flight, the next collects, and after one of
 * several it collects for a moment longer. An item whose outcome is unknown, because the connection died or did not answer, is
 * sent again under its id until its deadline.
 */
export type Lane<Item, Result> = {
  /** Rejects with what `lateness` makes of it when the deadline passes first. */
  readonly submit: (item: Item, deadlineMs: number) => Promise<Result>
  /** Items that are waiting or in flight. */
  readonly size: () => number
  /** How long the first of those has waited that were not sent yet; 0 while PostgreSQL does not answer. */
  readonly lagMs: () => number
  /** How long one more item would wait, by what the last batches took; 0 where the next batch has room for it, and while PostgreSQL does not answer. */
  readonly waitMs: () => number
  /** Resolves when there are none. */
  readonly idle: () => Promise<void>
}

type Parts<Item, Result> = {
  readonly clock: Clock
  readonly idOf: (item: Item) => string
  /** Whether PostgreSQL knows the item again, so that it can be sent twice. */
  readonly mayRepeat: (item: Item) => boolean
  readonly batchLimit: number
  /** Beyond this many waiting items a new one is refused at once. */
  readonly queueLimit: number
  /**
   * Runs a batch, and gives up by itself when PostgreSQL does not answer: a hung connection must not hold the lane. All items of
   * a credential are answered by one statement of it, so that they fail together and stay in order.
   */
  readonly execute: (items: readonly Item[]) => Promise<readonly (Result | Error | Failed)[]>
  /** Whether the outcome of a failed statement is unknown, or it was certainly not carried out and may work later. */
  readonly isTransient: (error: unknown) => boolean
  /** Whether the statement was given up because some account in it is locked by somebody else: nothing of it was carried out. */
  readonly isContended: (error: unknown) => boolean
  readonly accountOf: (item: Item) => string
  /**
   * An item was answered, or refused by an error, of which an earlier sending got no answer: that one may be carried out yet,
   * whatever became of this one.
   */
  readonly answeredLate?: (item: Item, result: Result | undefined) => void
  /** What to tell who waited, `sent` if PostgreSQL may have carried it out. */
  readonly lateness: (item: Item, sent: boolean) => Error
  readonly overload: () => Error
}

type Entry<Item, Result> = {
  readonly item: Item
  readonly submittedAtMs: number
  readonly deadlineAtMs: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  sent: boolean
  unanswered: boolean
  settled: boolean
}

const BACKOFF_MS = { least: 40, most: 500 }

export function createLane<Item, Result>(parts: Parts<Item, Result>): Lane<Item, Result> {
  return createQueue(parts)
}

type Queue<Item, Result> = Lane<Item, Result> & { readonly enqueue: (entry: Entry<Item, Result>) => void }

/** With `done` it is the lane of one account that was set aside, and says when it has nothing left to do. */
function createQueue<Item, Result>(parts: Parts<Item, Result>, done?: () => void): Queue<Item, Result> {
  const { clock, idOf, batchLimit, queueLimit, execute, isTransient } = parts
  const enough = Math.min(MANY, batchLimit)
  const hasLaneOfItsOwn = done !== undefined
  let waiting: Entry<Item, Result>[] = []
  let inFlight: readonly Entry<Item, Result>[] = []
  let running = false
  let starting: NodeJS.Immediate | undefined
  let watching = false
  /** Attempts in a row of which nothing was answered. */
  let failures = 0
  /** Entries of a refused batch that are being sent one by one. */
  let takenApart: readonly Entry<Item, Result>[] = []
  let idlers: (() => void)[] = []
  /** How long the last two full batches took. */
  let tookMs = UNKNOWN_PACE
  const aside = new Map<string, Queue<Item, Result>>()

  function submit(item: Item, deadlineMs: number): Promise<Result> {
    const own = aside.get(parts.accountOf(item))
    if (own !== undefined) return own.submit(item, deadlineMs)
    if (waiting.length >= queueLimit) return Promise.reject(parts.overload())
    return new Promise((resolve, reject) => {
      const submittedAtMs = clock.monotonicMs()
      const deadlineAtMs = submittedAtMs + deadlineMs
      enqueue({ item, resolve, reject, submittedAtMs, deadlineAtMs, sent: false, unanswered: false, settled: false })
    })
  }

  function enqueue(entry: Entry<Item, Result>): void {
    waiting.push(entry)
    watch()
    if (!running) {
      running = true
      // What else arrives in this turn of the event loop joins the first batch.
      starting = setImmediate(start)
      return
    }
    const firstAtMs = waiting[0]?.submittedAtMs ?? entry.submittedAtMs
    if (starting !== undefined && entry.submittedAtMs - firstAtMs > TURN_MS) start()
  }

  function start(): void {
    clearImmediate(starting)
    starting = undefined
    run()
  }

  /**
   * Somebody keeps an account of these locked, and we can't tell which: each account gets a lane of its own until it
   * has nothing to do, so that the others do not wait for that one.
   */
  function setAside(entries: Iterable<Entry<Item, Result>>): void {
    for (const entry of entries) {
      if (entry.settled) continue
      const account = parts.accountOf(entry.item)
      const own = aside.get(account) ?? createQueue(parts, () => aside.delete(account))
      aside.set(account, own)
      own.enqueue({ ...entry })
      entry.settled = true
    }
  }

  /** With what was refused and what waits already for their accounts, in this order: it would make the next batch wait for them too. */
  function keepApart(entries: readonly Entry<Item, Result>[]): void {
    if (entries.length === 0) return
    setAside(entries)
    const isApart = ({ item }: Entry<Item, Result>) => aside.has(parts.accountOf(item))
    setAside(takenApart.filter(isApart))
    const { apart = [], staying = [] } = Object.groupBy(waiting, (entry) => (isApart(entry) ? 'apart' : 'staying'))
    waiting = staying
    setAside(apart)
  }

  async function run(): Promise<void> {
    failures = 0
    tookMs = UNKNOWN_PACE
    let before = 0
    for (;;) {
      if (before >= SEVERAL && waiting.length > 0 && waiting.length < enough) await clock.sleep(LINGER_MS)
      const batch = takeBatch()
      before = batch.length
      if (batch.length === 0) break
      inFlight = batch
      const startedMs = clock.monotonicMs()
      const { again, isAnswered } = await attempt(batch)
      inFlight = []
      failures = isAnswered ? 0 : failures + 1
      if (again.length === 0) {
        // A small one takes less, and would promise too much.
        if (isAnswered && batch.length === batchLimit) tookMs = [tookMs[1], clock.monotonicMs() - startedMs]
        continue
      }
      waiting = [...again.filter((entry) => !entry.settled), ...waiting]
      before = 0
      await clock.sleep(Math.min(BACKOFF_MS.most, BACKOFF_MS.least * 2 ** Math.max(0, failures - 1)))
    }
    running = false
    done?.()
    for (const resolve of idlers) resolve()
    idlers = []
  }

  /** The next items in the order of arrival. An id that is in the batch already waits for the next one. */
  function takeBatch(): Entry<Item, Result>[] {
    const batch: Entry<Item, Result>[] = []
    const ids = new Set<string>()
    const later: Entry<Item, Result>[] = []
    let at = 0
    for (; at < waiting.length && batch.length < batchLimit; at += 1) {
      const entry = waiting[at]
      if (entry === undefined || entry.settled) continue
      const id = idOf(entry.item)
      if (ids.has(id)) later.push(entry)
      else {
        ids.add(id)
        batch.push(entry)
      }
    }
    waiting = [...later, ...waiting.slice(at)]
    return batch
  }

  /** What has to be sent again, in the order of arrival, and whether anything was answered. */
  async function attempt(batch: readonly Entry<Item, Result>[]) {
    const { again, apart, refused, ...sent } = await send(batch)
    let { isAnswered } = sent
    takenApart = refused
    keepApart(apart)
    // One item that PostgreSQL refuses must not take its neighbours with it. Nor does it go ahead of what came first for its account.
    for (const entry of refused) {
      if (entry.settled) continue
      const account = parts.accountOf(entry.item)
      if ([...again].some(({ item }) => parts.accountOf(item) === account)) again.add(entry)
      else {
        const alone = await send([entry])
        keepApart(alone.apart)
        for (const one of alone.again) again.add(one)
        isAnswered ||= alone.isAnswered
      }
    }
    takenApart = []
    return { again: batch.filter((entry) => again.has(entry)), isAnswered }
  }

  /** Answers those that PostgreSQL answered. Refused are several of which one may be to blame. */
  async function send(batch: readonly Entry<Item, Result>[]) {
    for (const entry of batch) entry.sent = true
    const outcomes = await orFailed(() => execute(batch.map(({ item }) => item)))
    const again = new Set<Entry<Item, Result>>()
    const [apart, refused] = [[] as Entry<Item, Result>[], [] as Entry<Item, Result>[]]
    let isAnswered = false
    for (const [at, entry] of batch.entries()) {
      const outcome = outcomes instanceof Failed ? outcomes : (outcomes[at] ?? new Error('PostgreSQL left an item out'))
      if (outcome instanceof Failed && parts.isContended(outcome.error)) {
        // A lane of one account waits longer each time.
        if (hasLaneOfItsOwn) again.add(entry)
        else apart.push(entry)
        isAnswered ||= !hasLaneOfItsOwn
      } else if (outcome instanceof Failed && isTransient(outcome.error)) keepIfRepeatable(entry, again)
      else if (outcome instanceof Failed && batch.length > 1) refused.push(entry)
      else {
        answer(entry, outcome instanceof Failed ? errorOf(outcome) : outcome)
        isAnswered = true
      }
    }
    return { again, apart, refused, isAnswered }
  }

  function answer(entry: Entry<Item, Result>, result: Result | Error): void {
    const refused = result instanceof Error
    if (entry.unanswered) parts.answeredLate?.(entry.item, refused ? undefined : result)
    settle(entry, () => (refused ? entry.reject(result) : entry.resolve(result)))
  }

  function keepIfRepeatable(entry: Entry<Item, Result>, again: Set<Entry<Item, Result>>): void {
    entry.unanswered = true
    if (parts.mayRepeat(entry.item)) again.add(entry)
    else settle(entry, () => entry.reject(parts.lateness(entry.item, true)))
  }

  function settle(entry: Entry<Item, Result>, tell: () => void): void {
    if (entry.settled) return
    entry.settled = true
    tell()
  }

  /** One timer for all deadlines, there only while something waits. */
  function watch(): void {
    if (watching) return
    watching = true
    const tick = () => {
      const nowMs = clock.monotonicMs()
      for (const entry of [...inFlight, ...waiting]) {
        if (entry.deadlineAtMs <= nowMs) settle(entry, () => entry.reject(parts.lateness(entry.item, entry.sent)))
      }
      watching = running
      if (running) setTimeout(tick, TICK_MS)
    }
    setTimeout(tick, TICK_MS)
  }

  return {
    submit,
    enqueue,
    size: () => [...aside.values()].reduce((sum, own) => sum + own.size(), waiting.length + inFlight.length),
    lagMs() {
      const first = waiting.find(({ sent, settled }) => !sent && !settled)
      return first === undefined || failures > 0 ? 0 : clock.monotonicMs() - first.submittedAtMs
    },
    waitMs() {
      if (failures > 0 || waiting.length < batchLimit) return 0
      // The shorter of two, so that a single slow one is not taken for the pace.
      return (waiting.length / batchLimit) * Math.min(...tookMs)
    },
    async idle() {
      while (running || aside.size > 0) {
        await Promise.all([...aside.values()].map((own) => own.idle()))
        if (running) await new Promise<void>((resolve) => idlers.push(resolve))
      }
    },
  }
}

function errorOf({ error }: Failed): Error {
  return error instanceof Error ? error : new Error('not an error', { cause: error })
}

const TICK_MS = 25
/**
 * PostgreSQL and the gateway both take less for one batch than for two of half its size, so that callers wait for less where many call. Who calls while nothing is in flight waits
 * for nobody, and nor does a batch that is large already.
 */
const LINGER_MS = 3
const SEVERAL = 3
const MANY = 100
/** By guess, until there have been two. */
const UNKNOWN_PACE: readonly [number, number] = [100, 100]
/** A turn has no end while a thousand sockets have something to read: PostgreSQL is not kept waiting for it. */
const TURN_MS = 5
