import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Binding } from './bindings.ts'

/**
 * Keeps all processes together within what our accounts at upstreams may send in a minute. A process leases a few
 * requests of the current window at a time and counts them down in memory, so that few calls wait for PostgreSQL.
 */
export type Quota = { readonly take: (upstream: Limited) => QuotaTaken | Promise<QuotaTaken> }

export type Limited = Pick<Binding, 'id' | 'requestsPerMinute'>
export type QuotaTaken = 'taken' | { readonly retryAfterSeconds: number }

type Parts = { readonly pool: pg.Pool; readonly clock: Pick<Clock, 'monotonicMs'>; readonly windowSeconds?: number }

const MAX_UPSTREAMS = 10_000
const AHEAD_MOST = 100

export function createQuota({ pool, clock, windowSeconds = 60 }: Parts): Quota {
  const shares = new LRUCache<Id, Share>({ max: MAX_UPSTREAMS })

  function shareOf(id: Id): Share {
    const known = shares.get(id)
    if (known !== undefined) return known
    const share = createShare(clock, (limit, needed, ahead) =>
      askForLease(pool, [id, limit, windowSeconds, needed, ahead]),
    )
    shares.set(id, share)
    return share
  }

  return {
    take: ({ id, requestsPerMinute }) => (requestsPerMinute === null ? 'taken' : shareOf(id).take(requestsPerMinute)),
  }
}

/** What this process has of the quota of one upstream. */
type Share = { readonly take: (limit: number) => Promise<QuotaTaken> }

type Lease = {
  readonly limit: number
  readonly ahead: number
  left: number
  /** Whether the window had no more to give. */
  readonly isLast: boolean
  /** The window can't have ended before; from then on, what is left of the lease is void. */
  readonly voidAtMs: number
  /** The window can't end later. */
  readonly overAtMs: number
}

type Ask = (limit: number, needed: number, ahead: number) => Promise<Granted>

function createShare(clock: Pick<Clock, 'monotonicMs'>, ask: Ask): Share {
  let lease: Lease | undefined
  let leasing: Promise<void> | undefined
  let waiting = 0

  /** Undefined where it needs another lease to say. */
  function takeOne(limit: number): QuotaTaken | undefined {
    if (lease === undefined) return undefined
    const nowMs = clock.monotonicMs()
    if (lease.left > 0 && nowMs < lease.voidAtMs) {
      lease.left -= 1
      return 'taken'
    }
    // A limit that was changed since is for PostgreSQL to judge.
    const isSpent = lease.isLast && lease.limit === limit && nowMs < lease.overAtMs
    return isSpent ? { retryAfterSeconds: Math.max(1, Math.ceil((lease.overAtMs - nowMs) / 1_000)) } : undefined
  }

  /** Ahead of need it takes twice as many each time, so that who asks seldom has little that others could use. */
  async function renew(limit: number): Promise<void> {
    const sentAtMs = clock.monotonicMs()
    const ahead = lease === undefined || sentAtMs >= lease.voidAtMs ? 0 : Math.min(AHEAD_MOST, lease.ahead * 2 + 1)
    const needed = waiting
    const { granted, endsInMs } = await ask(limit, needed, ahead)
    lease = {
      limit,
      ahead,
      left: granted,
      isLast: granted < needed,
      voidAtMs: sentAtMs + endsInMs,
      overAtMs: clock.monotonicMs() + endsInMs,
    }
  }

  /** One at a time, for all who wait. Those who waited when it was asked for are served by it, as they come first. */
  async function nextLease(limit: number): Promise<void> {
    waiting += 1
    leasing ??= Promise.resolve(limit)
      .then(renew)
      .finally(() => {
        leasing = undefined
      })
    await leasing.finally(() => {
      waiting -= 1
    })
  }

  return {
    async take(limit) {
      for (;;) {
        const taken = takeOne(limit)
        if (taken !== undefined) return taken
        await nextLease(limit)
      }
    },
  }
}

type Granted = { readonly granted: number; readonly endsInMs: number }

const grantedRow = z
  .object({ granted: z.int().min(0), ends_in_ms: z.number() })
  .transform((row): Granted => ({ granted: row.granted, endsInMs: row.ends_in_ms }))

async function askForLease(pool: pg.Pool, values: readonly unknown[]): Promise<Granted> {
  try {
    const { rows } = await pool.query(
      `select granted, ends_in_ms
       from lease_quota(upstream => $1, quota => $2, seconds => $3, needed => $4, ahead => $5)`,
      [...values],
    )
    return grantedRow.parse(rows[0])
  } catch (cause) {
    throw unavailable(cause)
  }
}
