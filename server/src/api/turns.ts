import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createGate, type Gate } from '../kernel/gate.ts'
import type { Id } from '../kernel/ids.ts'
import { createMinuteCounts } from '../kernel/minute-counts.ts'

/**
 * Whose turn it is, in this process. Members share their connections to PostgreSQL with the look-ups of callers' keys, so one member runs few
 * requests at once, all members together leave half of the connections, and what waits has a bound.
 */
export type Turns = {
  /** Waits for a turn, and refuses who has too many that wait. */
  readonly take: <T>(personId: Id, kind: Kind, work: () => Promise<T>) => Promise<T>
  /** Begins a download, and refuses who has too many. Returns how to end it, which can be called twice. */
  readonly startDownload: (personId: Id) => () => void
  /** Counts a change, and refuses who has made too many. */
  readonly countWrite: (personId: Id) => void
}

type Kind = {
  /** It waits for others than PostgreSQL, and keeps no connection meanwhile. */
  readonly isOutside?: boolean | undefined
  /** It waits however many do: a page of a download, of which there are few, and which can't be asked for again by itself. */
  readonly isPage?: boolean | undefined
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Requests of all members that run at once. */
  readonly together: number
  readonly ofPerson?: number
  readonly waiting?: number
  readonly writesPerMinute?: number
}

export const RUNNING_OF_PERSON = 2
export const WAITING_OF_PERSON = 40
export const WRITES_PER_MINUTE = 300
/** Each keeps a page in memory for as long as it takes. */
export const DOWNLOADS_OF_PERSON = 2
export const DOWNLOADS_TOGETHER = 16
const DOWNLOAD_RETRY_SECONDS = 30
const PEOPLE_COUNTED = 100_000

export function createTurns(parts: Parts): Turns {
  const { clock, together, ofPerson = RUNNING_OF_PERSON, waiting = WAITING_OF_PERSON } = parts
  const { writesPerMinute = WRITES_PER_MINUTE } = parts
  const all = createGate(Math.max(1, together))
  const people = new Map<Id, Gate>()
  const downloads = createDownloads()
  const countWrites = createMinuteCounts<Id>(PEOPLE_COUNTED)

  return {
    startDownload: downloads.start,
    async take(personId, { isOutside = false, isPage = false }, work) {
      const own = people.get(personId) ?? createGate(ofPerson)
      if (!isPage && own.waits() >= waiting)
        throw new Fault('rate_limit_exceeded', {
          detail: `Concurrency limit reached: ${ofPerson} of your requests are running and ${waiting} are waiting. Wait for their answers.`,
          retryAfterSeconds: 1,
        })
      people.set(personId, own)
      try {
        return await own.pass(() => (isOutside ? work() : all.pass(work)))
      } finally {
        if (own.isEmpty()) people.delete(personId)
      }
    },
    countWrite(personId) {
      const retryAfterSeconds = countWrites(personId, writesPerMinute, clock.monotonicMs())
      if (retryAfterSeconds === undefined) return
      throw new Fault('rate_limit_exceeded', {
        detail: `Rate limit: ${writesPerMinute} changes per minute. Retry in ${retryAfterSeconds} s.`,
        retryAfterSeconds,
      })
    },
  }
}

function createDownloads() {
  const running = new Map<Id, number>()
  let all = 0
  return {
    start(personId: Id): () => void {
      const own = running.get(personId) ?? 0
      if (own >= DOWNLOADS_OF_PERSON)
        throw tooMany(`${own} of ${DOWNLOADS_OF_PERSON} of your downloads are running. Wait until one has ended.`)
      if (all >= DOWNLOADS_TOGETHER)
        throw tooMany(`${all} of ${DOWNLOADS_TOGETHER} downloads of all members are running.`)
      running.set(personId, own + 1)
      all += 1
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        all -= 1
        const left = (running.get(personId) ?? 1) - 1
        if (left === 0) running.delete(personId)
        else running.set(personId, left)
      }
    },
  }
}

function tooMany(what: string): Fault {
  return new Fault('rate_limit_exceeded', {
    detail: `Concurrency limit reached: ${what} Retry in ${DOWNLOAD_RETRY_SECONDS} s.`,
    retryAfterSeconds: DOWNLOAD_RETRY_SECONDS,
  })
}
