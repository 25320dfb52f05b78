import { type DataOperation, type Names, spell } from '../../catalogue/operation.ts'
import type { MeasuredUnits, Reply } from '../../catalogue/price.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import type { ReplyRoom } from '../../kernel/memory-budget.ts'
import type { Links } from '../../links/links.ts'
import type { Session } from '../../links/sessions.ts'
import type { Measured } from '../../pricing/priced.ts'
import type { Prices } from '../../pricing/prices.ts'
import { ADAPTERS } from '../../upstreams/adapters/adapters.ts'
import type { Binding, Bindings } from '../../upstreams/bindings.ts'
import type { TokenCounter } from '../../upstreams/tokens/count-tokens.ts'
import type { Transport } from '../../upstreams/transport.ts'
import { adviceOnUnits } from '../../wording/money-advice.ts'
import type { CallRequest } from '../call-request.ts'
import type { LossGuard } from '../loss-guard.ts'
import { parseInput } from '../parse-input.ts'
import type { Attempt, Plan, Sent } from '../plan.ts'
import { DATA_REPLY_BYTES } from '../reply-bytes.ts'
import { findBindings, notConfigured } from '../routing.ts'
import { credentialFor, DEADLINES, failed, sendOnce } from '../send.ts'
import type { TellRefused } from '../tell-refused.ts'
import { type DeclaredModels, declaredModel } from './declared-models.ts'

type Parts = {
  readonly prices: Prices
  readonly bindings: Bindings
  readonly transport: Pick<Transport, 'send'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly names: Names
  readonly declaredModels: DeclaredModels
  readonly links: Pick<Links, 'require' | 'tokenOf' | 'another' | 'accepted'>
  readonly counter: Pick<TokenCounter, 'count'>
  readonly lossGuard: LossGuard
  readonly refusedBy: TellRefused
}

/** Of what an upstream reads without saying how much: nobody knows its vocabulary, and this one is a usual one. */
const TOKENIZER = 'o200k'

/** One thing at one price, of one upstream, which is asked once: what became of a request that failed is not always known. */
export function createDataPlan(parts: Parts) {
  const { prices, bindings, clock, names, links, declaredModels, counter, lossGuard, refusedBy } = parts
  return async (request: CallRequest, operation: DataOperation): Promise<Plan> => {
    const { caller, query, rawBody } = request
    const { price, limits, upstream } = operation
    const input = parseInput(operation, request)
    const model = declaredModel(operation, input, declaredModels)
    const asked = { input, query, rawBody }
    const terms = await prices.termsFor(operation, caller)
    const expected = price.expected(input)
    const session = operation.actsFor && (await links.require(caller.credentialId, operation.actsFor.scopes))
    const binding = await bindingFor(bindings, operation, { mode: caller.mode, session })
    lossGuard([{ binding }], { accountId: caller.accountId, sold: operation.id })
    const adapter = ADAPTERS[upstream.adapter]
    // What passes through is worth as much to the caller as if it had been paid for: who could make it unreadable would pay nothing.
    const withholds = upstream.adapter === 'pass_through'

    const send = (id: Id, credential: Pick<Binding, 'credential'>, room: ReplyRoom) =>
      sendOnce(
        parts,
        binding,
        () => {
          const { query, body } = adapter.ask(asked)
          const words = { ...names, ...binding.segments, ...(session && { linked_user: session.userId ?? '' }) }
          const target = spell(upstream.path, words)
          return {
            method: operation.method,
            target: query === '' ? target : `${target}?${query}`,
            headers: {
              accept: 'application/json',
              // The upstream's own record can be found by it.
              'x-request-id': id,
              ...(body !== null && { 'content-type': 'application/json' }),
              ...credentialFor(credential, upstream.credentialHeader),
            },
            body,
            maxBodyBytes: upstream.maxBodyBytes,
            room,
            deadlines: deadlinesOf(upstream),
          }
        },
        adapter.readLarge,
      )

    /** What is wrong with a path may be the caller's, and may be ours: the operator sees which. */
    function told(sent: Sent): Sent {
      if (sent.outcome === 'answered') refusedBy({ binding, status: sent.reply.status, target: upstream.path })
      return sent
    }

    /** As the user who has linked an account. Tokens that the platform does not take say that the link has ended. */
    async function sendFor(id: Id, session: Session, room: ReplyRoom): Promise<Sent> {
      const before: Attempt[] = []
      let beganMs = clock.monotonicMs()
      const told = (sent: Sent): Sent => ({ ...sent, attempts: [...before, ...sent.attempts] })
      try {
        let access = await links.tokenOf(session, id)
        let left = { id, ...operation.attempts }
        for (;;) {
          const sent = await send(id, { credential: access.token }, room)
          if (sent.outcome !== 'answered' || sent.reply.status !== 401) {
            if (sent.outcome === 'answered' && isSuccess(sent.reply)) await links.accepted(session)
            return told(sent)
          }
          before.push(...sent.attempts)
          beganMs = clock.monotonicMs()
          left = { id, requests: left.requests - 1, refreshes: left.refreshes - (access.isRefreshedByUs ? 1 : 0) }
          // Nothing was done. Another token may be taken; where there is none, the caller is told to link again.
          access = await links.another(session, access, left)
        }
      } catch (error) {
        return told(failed(binding, { beganMs, endedMs: clock.monotonicMs() }, error, false))
      }
    }

    return {
      sold: operation.id,
      model,
      terms,
      most: [price.most(input)],
      moneyAdvice(left) {
        const costly = price.costly?.(input)
        if (costly === undefined) return undefined
        return adviceOnUnits({ ...costly, terms, mostOf: (units) => [BigInt(costly.mostOf(units))] })(left)
      },
      expected: () => [expected],
      isExact: price.isExact,
      assumption: () => price.assumption?.(input) ?? '',
      // Input alone, by estimate; the settlement corrects it. One at least: who has none left begins nothing that counts them.
      tokens: limits.includes('tokens') ? Math.max(1, Number(expected)) : 0,
      headers: {},
      replyBytes: Math.min(upstream.maxBodyBytes, DATA_REPLY_BYTES),
      replyMostBytes: upstream.maxBodyBytes,
      send: (id, room) => (session === undefined ? send(id, binding, room).then(told) : sendFor(id, session, room)),
      measure(reply) {
        const measured = price.measure(reply)
        if (measured !== undefined) return asCounts(measured)
        if (withholds && isSuccess(reply)) throw new Fault('upstream_unreadable')
        // What is not handed over is not charged, and may have cost us all that it could.
        if (price.counted === undefined || reply.status >= 300 || adapter.answer(reply, asked) === undefined)
          return undefined
        return price.counted(input, (text) => counter.count(text, TOKENIZER)).then(asCountedByUs)
      },
      answer: (reply, measured) => adapter.answer(reply, asked, measured?.inputTokens),
      isAboutUs: ({ status }) =>
        status === 401 || status === 402 || (status === 403 && upstream.passesOnForbidden !== true),
    }
  }
}

function isSuccess({ status }: Reply): boolean {
  return status >= 200 && status < 300
}

function asCounts({ units, ...tokens }: MeasuredUnits): Measured {
  return { counts: [units], ...tokens }
}

function asCountedByUs(units: MeasuredUnits): Measured {
  return { ...asCounts(units), source: 'counted' }
}

type Whose = { readonly mode: Binding['mode']; readonly session: Session | undefined }

/** The first of its slot; for a user who linked an account, the one where that was. */
async function bindingFor(
  bindings: Bindings,
  { upstream: { slot } }: DataOperation,
  { mode, session }: Whose,
): Promise<Binding> {
  const found =
    session === undefined
      ? (await findBindings(bindings, slot, mode))[0]
      : await bindings.findOne(slot, mode, session.upstreamId)
  // A user's token goes nowhere but to where our own secret is for.
  if (found?.enabled !== true || (session !== undefined && found.credential === null)) throw notConfigured(mode)
  return found
}

/** An answer that comes whole has its headers at its end. */
function deadlinesOf({ totalMs }: DataOperation['upstream']) {
  return { ...DEADLINES, headersMs: Math.max(DEADLINES.headersMs, totalMs), totalMs }
}
