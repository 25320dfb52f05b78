import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Changes } from '../../harness/changes.ts'
import type { Core } from '../../server/src/app/options.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { GROUPS, type LimitName } from '../../server/src/catalogue/limit-groups.ts'
import { callerOf } from '../../server/src/http/caller.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { rateHeaders } from '../../server/src/limits/headers.ts'

/**
 * The real server with one operation of the tests: it admits, holds what it is told to, waits, and charges.
 * Everything but the route is the product's own.
 */
const LIMITS: ReadonlySet<string> = new Set(['tokens', 'concurrency', ...Object.keys(GROUPS)])
const isLimit = (name: string): name is LimitName => LIMITS.has(name)

type Query = { hold?: string; charge?: string; ms?: string; tokens?: string; limits?: string; operation?: string }

function probe({ begin, end }: Core) {
  return async (request: FastifyRequest<{ Querystring: Query }>, reply: FastifyReply) => {
    // An edge that refuses a key in a query has to be told by a header what not to be able to read.
    const quoted = request.headers['x-probe-hold']
    const { hold = typeof quoted === 'string' ? quoted : undefined } = request.query
    const { charge = hold ?? '0', ms = '0', tokens = '0', limits = '', operation = 'probe' } = request.query
    const caller = callerOf(request)
    const { id } = request
    const { rates, free } = await begin({
      id,
      caller,
      operation: { id: operation, limits: limits.split(',').filter(isLimit) },
      hold: hold === undefined ? null : { amount: nanos(BigInt(hold)), terms: '{}' },
      tokens: Number(tokens),
      claims: [],
    })
    if (Number(ms) > 0) await systemClock.sleep(Number(ms))
    if (hold !== undefined) {
      const usage = { ...NO_USAGE, executed: true, inputTokens: Number(tokens), value: nanos(BigInt(charge)) }
      await end({ id, accountId: caller.accountId, amount: nanos(BigInt(charge)), forgiven: false, usage })
    }
    reply.headers(rateHeaders(rates))
    return { id, pid: process.pid, free: String(free), tier: caller.tier, mode: caller.mode }
  }
}

export const changes: Changes = () => ({
  families: (core) => [
    {
      name: 'probe',
      prefix: '/apis/v1',
      dialect: 'data',
      register: (scope: FastifyInstance) => void scope.get('/probe', probe(core)),
    },
    {
      name: 'probe',
      prefix: '/v1',
      dialect: 'openai',
      register: (scope: FastifyInstance) => void scope.get('/probe', probe(core)),
    },
  ],
})
