import { Readable } from 'node:stream'
import type pg from 'pg'
import { inShort } from '../callers/request-records.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { endedLately } from '../ledger/list-requests.ts'
import { makersOf } from './request-makers.ts'

/** Calls as they end, for whoever watches. However many do, this process asks once a second for all of them, and never where nobody does. */
export type RequestWatch = {
  /** Server-sent events, for so long at the most. */
  readonly open: (watcher: Whose, seconds: number) => Readable
  /** Ends all streams, so that nothing waits for those who watch. */
  readonly close: () => void
}

type Whose = {
  readonly accountId: Id
  readonly personId: Id
  /** Throws once whoever watches may no longer. */
  readonly stillMay: () => Promise<void>
}

type Watcher = Whose & {
  readonly stream: Readable
  readonly endsAtMs: number
  askedAtMs: number
  writtenAtMs: number
  /** The calls of the last look, of which nothing is told twice. */
  known: ReadonlySet<Id>
}

type Parts = {
  readonly pool: pg.Pool
  /** PostgreSQL's time, by which calls end. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const EVERY_MS = 1_000
/** A call that ended may be seen a little later than one that ended after it; and who comes again misses none. */
const BEHIND_MS = 10_000
const OF_EACH = 50
export const LASTS_SECONDS = 600
const MAY_STILL_EVERY_MS = 60_000
/** A proxy that keeps answers back is known by hearing nothing. */
const SIGN_EVERY_MS = 4_000
const OF_PERSON = 4
const TOGETHER = 500
/** Who reads this slowly has gone, or will have to come again. */
const UNREAD_BYTES = 262_144

export function createRequestWatch({ pool, time, clock }: Parts): RequestWatch {
  const watchers = new Set<Watcher>()
  let timer: NodeJS.Timeout | undefined
  let isLooking = false
  let isClosed = false

  function end(watcher: Watcher): void {
    watchers.delete(watcher)
    watcher.stream.push(null)
    if (watchers.size === 0) clearInterval(timer)
  }

  function write(watcher: Watcher, text: string): void {
    watcher.writtenAtMs = clock.monotonicMs()
    watcher.stream.push(text)
    if (watcher.stream.readableLength > UNREAD_BYTES) end(watcher)
  }

  async function look(): Promise<void> {
    const watching = Map.groupBy(watchers, ({ accountId }) => accountId)
    const accountIds = [...watching.keys()]
    const rows = await endedLately(pool, { accountIds, sinceMs: time.nowMs() - BEHIND_MS, ofEach: OF_EACH })
    const news = rows.filter(({ id, account_id: of }) => watching.get(of)?.some(({ known }) => !known.has(id)))
    const calls = news.map((row) => ({ of: row.account_id, credentialId: row.credential_id, body: inShort(row) }))
    const named = await makersOf(pool, calls)
    const events = calls.map((call) => ({ of: call.of, id: call.body.id, text: event('request', named(call)) }))
    const eventsOf = Map.groupBy(events.toReversed(), ({ of }) => of)
    const rowsOf = Map.groupBy(rows, ({ account_id: of }) => of)
    for (const [accountId, some] of watching) {
      const known = new Set(rowsOf.get(accountId)?.map(({ id }) => id))
      // Some may have left meanwhile.
      for (const watcher of some.filter((one) => watchers.has(one))) {
        const told = eventsOf.get(accountId)?.filter(({ id }) => !watcher.known.has(id)) ?? []
        watcher.known = known
        if (told.length > 0) write(watcher, told.map(({ text }) => text).join(''))
      }
    }
  }

  async function tick(): Promise<void> {
    const nowMs = clock.monotonicMs()
    for (const watcher of watchers) {
      if (nowMs >= watcher.endsAtMs) end(watcher)
      else if (nowMs - watcher.askedAtMs >= MAY_STILL_EVERY_MS) {
        watcher.askedAtMs = nowMs
        watcher.stillMay().catch(() => end(watcher))
      }
    }
    if (watchers.size === 0) return
    await look()
    for (const watcher of watchers)
      if (clock.monotonicMs() - watcher.writtenAtMs >= SIGN_EVERY_MS) write(watcher, event('look', {}))
  }

  function start(): void {
    timer = setInterval(() => {
      if (isLooking) return
      isLooking = true
      // Where PostgreSQL can't be asked, those who watch hear nothing, and look for themselves.
      void tick()
        .catch(() => undefined)
        .finally(() => {
          isLooking = false
        })
    }, EVERY_MS)
    timer.unref()
  }

  return {
    open(whose, seconds) {
      const own = Array.from(watchers).filter(({ personId }) => personId === whose.personId)
      if (own.length >= OF_PERSON || watchers.size >= TOGETHER)
        throw new Fault('rate_limit_exceeded', {
          detail: `Concurrency limit reached: ${OF_PERSON} streams of a person and ${TOGETHER} of all. Close one, or ask for the list.`,
          retryAfterSeconds: 10,
        })
      const stream = new Readable({ read() {} })
      const nowMs = clock.monotonicMs()
      const watcher: Watcher = {
        ...whose,
        stream,
        endsAtMs: nowMs + seconds * 1_000,
        askedAtMs: nowMs,
        writtenAtMs: nowMs,
        known: new Set(),
      }
      stream.once('close', () => {
        if (watchers.delete(watcher) && watchers.size === 0) clearInterval(timer)
      })
      if (watchers.size === 0) start()
      watchers.add(watcher)
      write(watcher, `retry: 2000\n${event('look', {})}`)
      // A process that stops has nobody wait for it; who watches comes again, to another.
      if (isClosed) end(watcher)
      return stream
    },
    close() {
      isClosed = true
      for (const watcher of watchers) end(watcher)
    },
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
