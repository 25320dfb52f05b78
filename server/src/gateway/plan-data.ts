import { type DataOperation, type Names, spell } from '../catalogue/operation.ts'
import { Fault, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { ADAPTERS } from '../upstreams/adapters/adapters.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import type { Transport } from '../upstreams/transport.ts'
import { parseInput } from './parse-input.ts'
import type { CallRequest } from './pipeline.ts'
import type { Plan } from './plan.ts'
import type { Prices } from './prices.ts'
import { credentialFor, DEADLINES, sendOnce } from './send.ts'

type Parts = {
  readonly prices: Prices
  readonly bindings: Bindings
  readonly transport: Pick<Transport, 'send'>
  readonly names: Names
}

/** One thing at one price, of one upstream, which is asked once: what became of a request that failed is not always known. */
export function createDataPlan({ prices, bindings, transport, names }: Parts) {
  return async (request: CallRequest, operation: DataOperation): Promise<Plan> => {
    const { caller, query, rawBody } = request
    const { price, limits, upstream } = operation
    const input = parseInput(operation, request)
    const asked = { input, query, rawBody }
    const terms = await prices.termsFor(operation, caller)
    const expected = price.expected(input)
    const [binding] = await findBindings(bindings, upstream.slot, caller.mode)
    if (binding === undefined) throw notConfigured()
    const adapter = ADAPTERS[upstream.adapter]

    const send = (id: Id, binding: Binding) =>
      sendOnce(transport, binding, () => {
        const { query, body } = adapter.ask(asked)
        const target = spell(upstream.path, { ...names, ...binding.segments })
        return {
          method: operation.method,
          target: query === '' ? target : `${target}?${query}`,
          headers: {
            accept: 'application/json',
            // The upstream's own record can be found by it.
            'x-request-id': id,
            ...(body !== null && { 'content-type': 'application/json' }),
            ...credentialFor(binding, upstream.credentialHeader),
          },
          body,
          maxBodyBytes: upstream.maxBodyBytes,
          deadlines: deadlinesOf(upstream),
        }
      })

    return {
      terms,
      most: [price.most(input)],
      expected: [expected],
      isExact: price.isExact,
      // Counted by estimate where the operation counts them; the settlement corrects it.
      tokens: limits.includes('tokens') ? Number(expected) : 0,
      headers: {},
      send: (id) => send(id, binding),
      measure(reply) {
        const measured = price.measure(reply)
        if (measured === undefined) return undefined
        const { units, ...tokens } = measured
        return { counts: [units], ...tokens }
      },
      answer: (reply) => adapter.answer(reply, asked),
      isAboutUs: ({ status }) =>
        status === 401 || status === 402 || (status === 403 && upstream.passesOnForbidden !== true),
    }
  }
}

/** An answer that comes whole has its headers at its end. */
function deadlinesOf({ totalMs }: DataOperation['upstream']) {
  return { ...DEADLINES, headersMs: Math.max(DEADLINES.headersMs, totalMs), totalMs }
}

export async function findBindings(
  bindings: Bindings,
  slot: string,
  mode: Binding['mode'],
): Promise<readonly Binding[]> {
  try {
    return await bindings.find(slot, mode)
  } catch (cause) {
    throw unavailable(cause)
  }
}

export function notConfigured(): Fault {
  return new Fault('managed_upstream_transport', { detail: 'No upstream is configured for this operation.' })
}
