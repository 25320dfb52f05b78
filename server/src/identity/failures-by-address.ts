import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'

/** Counts failed authentications by where they came from, in memory, so that guessing costs us next to nothing. */
export type FailuresByAddress = {
  /** Seconds until the address may try again; 0 where it may now. */
  readonly waitSeconds: (address: string) => number
  readonly note: (address: string) => void
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** How many may fail in a window before the next is refused unseen. */
  readonly limit?: number
  readonly windowMs?: number
  readonly maxAddresses?: number
}

export function createFailuresByAddress(parts: Parts): FailuresByAddress {
  const { clock, limit = 30, windowMs = 60_000, maxAddresses = 100_000 } = parts
  const counts = new LRUCache<string, { failures: number; readonly endsAtMs: number }>({ max: maxAddresses })
  return {
    waitSeconds(address) {
      const count = counts.get(networkOf(address))
      if (count === undefined || count.failures < limit) return 0
      return Math.max(0, Math.ceil((count.endsAtMs - clock.monotonicMs()) / 1_000))
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

/** Whoever has one address of IPv6 has the 2^64 beside it. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail = ''] = address.toLowerCase().split('%')[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const after = tail === '' ? [] : tail.split(':')
  while (groups.length + after.length < 8 && address.includes('::')) groups.push('0')
  return [...groups, ...after]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}
