import type { FastifyRequest } from 'fastify'
import { type Lease, REQUEST_COPIES } from '../kernel/memory-budget.ts'
import { exchangeOf } from './wire/exchange.ts'

/** What was reserved when the request was admitted; its body may have turned out shorter than it could have been. */
export function memoryOf({ raw, rawBody }: FastifyRequest): Lease {
  const memory = exchangeOf(raw)?.memory
  if (memory === undefined) throw new TypeError('a request was not admitted')
  memory.shrink(REQUEST_COPIES * (rawBody?.length ?? 0))
  return memory
}
