import { isIPv6 } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createRecentMap } from '../kernel/recent-map.ts'

/**
 * Counts look-ups of unknown keys by where they came from, in memory, so that guessing can't keep PostgreSQL busy. The window is
 * short: whoever shares an address with a guesser and comes with a new key waits for a second, not for a minute.
 */
export type FailuresByAddress = {
  /** Seconds until the address may try again; 0 where it may now. */
  readonly waitSeconds: (address: string) => number
  readonly note: (address: string) => void
  /** Waits while so many are being tried from there that all of them might fail: a burst must not get past the limit. */
  readonly enter: (address: string) => Promise<void>
  /** What was entered is over. */
  readonly leave: (address: string) => void
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** How many may fail in a window before the next is refused unseen. */
  readonly limit?: number
  readonly windowMs?: number
  readonly maxAddresses?: number
}

/** As many as an office of callers behind one address mistypes, and next to nothing for PostgreSQL. */
export const FAILURES_PER_SECOND = 20

export function createFailuresByAddress(parts: Parts): FailuresByAddress {
  const { clock, limit = FAILURES_PER_SECOND, windowMs = 1_000, maxAddresses = 100_000 } = parts
  const counts = createRecentMap<string, { failures: number; readonly endsAtMs: number }>(maxAddresses)
  const tried = new Map<string, { running: number; waiting: (() => void)[] }>()

  function failuresOf(network: string): number {
    const count = counts.get(network)
    return count !== undefined && count.endsAtMs > clock.monotonicMs() ? count.failures : 0
  }

  return {
    waitSeconds(address) {
      const count = counts.get(networkOf(address))
      if (count === undefined || count.failures < limit) return 0
      return Math.max(0, Math.ceil((count.endsAtMs - clock.monotonicMs()) / 1_000))
    },
    async enter(address) {
      const network = networkOf(address)
      for (;;) {
        const now = tried.get(network) ?? { running: 0, waiting: [] }
        const failures = failuresOf(network)
        if (now.running === 0 || failures >= limit || failures + now.running < limit) {
          now.running += 1
          tried.set(network, now)
          return
        }
        await new Promise<void>((resolve) => now.waiting.push(resolve))
      }
    },
    leave(address) {
      const network = networkOf(address)
      const now = tried.get(network)
      if (now === undefined) return
      now.running -= 1
      if (now.running === 0) tried.delete(network)
      for (const resolve of now.waiting.splice(0)) resolve()
    },
    note(address) {
      const network = networkOf(address)
      const nowMs = clock.monotonicMs()
      const count = counts.get(network)
      if (count !== undefined && count.endsAtMs > nowMs) count.failures += 1
      else counts.set(network, { failures: 1, endsAtMs: nowMs + windowMs })
    },
  }
}

/** Refuses an address from which too many came that nobody knows. */
export function requireFewFailures(failures: Pick<FailuresByAddress, 'waitSeconds'>, address: string): void {
  const retryAfterSeconds = failures.waitSeconds(address)
  if (retryAfterSeconds === 0) return
  const detail = `Too many unknown keys from your network: the limit is ${FAILURES_PER_SECOND} per second. Retry in ${retryAfterSeconds} s.`
  throw new Fault('rate_limit_exceeded', { detail, retryAfterSeconds })
}

/** Tries what may fail, in turn: a burst from one address does not get past the limit. Whatever of it fails notes that itself. */
export async function tryFrom<T>(failures: FailuresByAddress, address: string, work: () => Promise<T>): Promise<T> {
  await failures.enter(address)
  try {
    requireFewFailures(failures, address)
    return await work()
  } finally {
    failures.leave(address)
  }
}

/** Whoever has one address of IPv6 has the 2^64 beside it; one that stands for an address of IPv4 is that one. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^(?:0{0,4}:){1,5}:?ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address)
  if (mapped !== null) return [mapped[1], mapped[2]].flatMap((part) => bytesOf(part ?? '')).join('.')
  const [head = '', tail = ''] = address.toLowerCase().split('%')[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const after = tail === '' ? [] : tail.split(':')
  while (groups.length + after.length < 8 && address.includes('::')) groups.push('0')
  return [...groups, ...after]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}

function bytesOf(group: string): [number, number] {
  const value = Number.parseInt(group, 16)
  return [value >> 8, value & 255]
}
