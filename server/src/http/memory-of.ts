import { isAscii } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { LARGE_BYTES, type Lease, REQUEST_COPIES } from '../kernel/memory-budget.ts'
import { exchangeOf } from '../wire/exchange.ts'

/** What was reserved when the request was admitted; its body may have turned out shorter than it could have been. */
export function memoryOf({ raw, rawBody }: FastifyRequest): Lease {
  const memory = exchangeOf(raw)?.memory
  if (memory === undefined) throw new TypeError('a request was not admitted')
  memory.shrink(REQUEST_COPIES * (rawBody?.length ?? 0))
  return memory
}

const ESCAPED = '\\u'

/**
 * Room for the texts of a large body that may have a character beyond Latin-1: one is enough for all of its text to take two bytes for
 * each. Not known before the body is there. False where there is none.
 */
export function hasRoomForTexts(memory: Lease, rawBody: Buffer | null): true | Promise<boolean> {
  if (rawBody === null || rawBody.length <= LARGE_BYTES) return true
  if (isAscii(rawBody) && !rawBody.includes(ESCAPED)) return true
  return memory.reserve((REQUEST_COPIES + 1) * rawBody.length)
}
