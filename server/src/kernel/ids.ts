import { randomFillSync } from 'node:crypto'
import type { Clock } from './clock.ts'

/** UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then a counter within the millisecond, then randomness. */
export type Id = string

/** Nobody's, and before all others in every order. */
export const NO_ID: Id = '00000000-0000-0000-0000-000000000000'

export type Ids = { readonly next: () => Id }

type Parts = {
  readonly clock: Pick<Clock, 'nowMs'>
  /** Fills the buffer with random bytes; a seeded one makes ids repeatable in tests. */
  readonly random?: (buffer: Uint8Array) => void
}

const COUNTER_LIMIT = 0xfff
const MAX_MS = 2 ** 48 - 1

/**
 * Makes ids that never go backwards within a process, even when its clock does: a partition is chosen by the id, so an
 * id must not fall behind the ones that were given out before it.
 */
export function createIds({ clock, random = fillFromPool() }: Parts): Ids {
  const bytes = Buffer.alloc(16)
  let lastMs = 0
  let counter = 0

  function next(): Id {
    const nowMs = Math.min(MAX_MS, Math.max(0, Math.floor(clock.nowMs())))
    if (nowMs > lastMs) {
      lastMs = nowMs
      counter = 0
    } else if (counter < COUNTER_LIMIT) {
      counter += 1
    } else {
      lastMs += 1
      counter = 0
    }
    random(bytes)
    bytes.writeUIntBE(lastMs, 0, 6)
    bytes.writeUInt16BE(0x7000 | counter, 6)
    bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
    return format(bytes.toString('hex'))
  }

  return { next }
}

/** The Unix milliseconds that an id carries. */
export function idTimeMs(id: Id): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Before every id of a moment and behind those of all moments before it. */
export function firstIdAt(ms: number): Id {
  const hex = Math.min(MAX_MS, Math.max(0, Math.floor(ms)))
    .toString(16)
    .padStart(12, '0')
  return format(`${hex}00000000000000000000`)
}

/** Any UUID: what the ledger makes by itself has ids of another version than ours. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export function isId(text: string): text is Id {
  return UUID_V7.test(text)
}

function format(hex: string): Id {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** One system call for 256 ids' worth of randomness instead of one per id. */
function fillFromPool(): (buffer: Uint8Array) => void {
  const pool = Buffer.alloc(4096)
  let used = pool.length
  return (buffer) => {
    if (used + buffer.length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    buffer.set(pool.subarray(used, used + buffer.length))
    used += buffer.length
  }
}
