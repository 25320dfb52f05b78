import { type Names, type Operation, spell } from '../catalogue/operation.ts'
import type { Id } from '../kernel/ids.ts'
import type { Incoming } from '../upstreams/adapters/adapter.ts'
import { ADAPTERS } from '../upstreams/adapters/adapters.ts'
import type { Binding } from '../upstreams/bindings.ts'
import { type Transport, UpstreamFailure } from '../upstreams/transport.ts'
import type { Priced, Sent } from './judge.ts'

/** Asks an upstream once, and never again: what became of a request that failed is not always known. */
export type Send = (id: Id, operation: Operation, priced: Pick<Priced, 'asked' | 'binding'>) => Promise<Sent>

type Parts = { readonly transport: Pick<Transport, 'send'>; readonly names: Names }

const DEADLINES = { connectMs: 5_000, headersMs: 60_000, idleMs: 30_000 }

export function createSend({ transport, names }: Parts): Send {
  return async (id, operation, { asked, binding }) => {
    const { adapter, path, credentialHeader, totalMs, maxBodyBytes } = operation.upstream
    let isAsked = false
    try {
      const { query, body } = ADAPTERS[adapter].ask(asked)
      const target = spell(path, { ...names, ...binding.segments })
      isAsked = true
      const reply = await transport.send({
        upstream: binding,
        method: operation.method,
        target: query === '' ? target : `${target}?${query}`,
        headers: {
          accept: 'application/json',
          // The upstream's own record can be found by it.
          'x-request-id': id,
          ...(body !== null && { 'content-type': 'application/json' }),
          ...credentialFor(binding, credentialHeader),
        },
        body,
        maxBodyBytes,
        deadlines: { ...DEADLINES, totalMs },
      })
      return { reply: { ...reply, json: jsonOf(reply) } }
    } catch (error) {
      if (error instanceof UpstreamFailure) return { failure: error, certainty: error.certainty }
      return { failure: error, certainty: isAsked ? 'unknown' : 'not_sent' }
    }
  }
}

function credentialFor(
  { credential }: Binding,
  header: Operation['upstream']['credentialHeader'],
): Record<string, string> {
  if (credential === null) return {}
  const secret = credential.reveal()
  return { [header]: header === 'authorization' ? `Bearer ${secret}` : secret }
}

const BYTE_ORDER_MARK = /^\uFEFF/

/** Undefined where the body is no JSON; an encoding that we did not ask for is not read. */
function jsonOf({ headers, body }: Omit<Incoming, 'json'>): unknown {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return undefined
  try {
    return JSON.parse(body.toString('utf8').replace(BYTE_ORDER_MARK, ''))
  } catch {
    return undefined
  }
}
