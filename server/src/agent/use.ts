import { admit } from '../callers/admit.ts'
import type { Operation } from '../catalogue/operation.ts'
import type { Wish } from '../gateway/begin.ts'
import type { CallRequest, Progress } from '../gateway/call-request.ts'
import { isStreamed } from '../gateway/relay.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { asFault, Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, usd, ZERO } from '../kernel/money.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { parseJson } from '../wire/json.ts'
import { NOBODY } from '../wire/outlet.ts'
import { requireApproval } from './approval.ts'
import { type Arguments, spellArguments } from './call-arguments.ts'
import type { FreeOperations } from './free-operations.ts'
import type { AgentOperations } from './operations.ts'
import { type AgentParts, COUNTED } from './parts.ts'

/** A call that an agent wants. */
export type Wanted = {
  readonly id: Id
  readonly operationId: string
  readonly given: Arguments
  /** In decimal USD. */
  readonly maxCost: string
  /** What the cap was cut from, where it was given with more decimals than money has. */
  readonly cutCap?: number
  readonly idempotencyKey: string | undefined
}

/** What came of it. What is known of its money is told whatever came of it. */
export type Used = {
  readonly id: Id
  readonly operationId: string
  readonly answer?: Answer
  readonly fault?: Fault
  readonly cost: Nanos | undefined
  /** Held for what goes on when it has been answered. */
  readonly held: Nanos | undefined
  readonly balance: Nanos | undefined
  /** The most that it may have cost, where it failed so that nobody knows. */
  readonly atMost?: Nanos
  /** What the cap of the call was cut from. */
  readonly cutCap?: number
  /** What the task cost that the call asked about, once it has ended. */
  readonly taskCost?: Nanos
}

/** What a call would cost, as a quote says it. */
export type Quote = (request: AgentRequest, operation: Operation, given: Arguments) => Promise<unknown>

export type Use = (request: AgentRequest, wanted: Wanted) => Promise<Used>

type Parts = Pick<AgentParts, 'run' | 'begin' | 'headerNames' | 'jsonLimits' | 'refused'> & {
  readonly operations: AgentOperations
  readonly free: FreeOperations
}

/** Makes a call on the path of every call: what is refused, held, charged and recorded is as over HTTP. */
export function createUse(parts: Parts): { readonly use: Use; readonly quote: Quote } {
  const { run, headerNames, jsonLimits, refused, operations, free } = parts

  async function make(request: AgentRequest, wanted: Wanted, progress: Progress): Promise<Used> {
    const { caller } = request
    const { id, operationId } = wanted
    const own = free.find(operationId)
    if (own !== undefined) {
      if (!own.isReadOnly) requireApproval(caller)
      if (!own.isReadOnly && wanted.idempotencyKey !== undefined)
        return refuseCounted(parts, request, wanted, invalidRequest(NO_KEY))
      const { json, ...task } = await own.run(request, wanted)
      const answer = { status: 200, headers: JSON_TYPE, body: JSON.stringify(json) }
      return { id, operationId, answer, cost: ZERO, held: undefined, balance: undefined, ...task }
    }
    const operation = operations.find(operationId)
    if (operation === undefined) return refuseCounted(parts, request, wanted, operations.unknown(operationId))
    if (!isCounting(operation)) requireApproval(caller)
    const answer = await runWith(request, wanted, operation, { progress })
    const { headers } = answer
    const money = (name: string) => (headers[name] === undefined ? undefined : usd(headers[name]))
    return {
      id,
      operationId,
      answer,
      cost: money(headerNames.cost),
      held: money(headerNames.held),
      balance: money(headerNames.balance),
    }
  }

  const use: Use = async (request, wanted) => {
    const progress: Progress = {}
    try {
      return await make(request, wanted, progress)
    } catch (thrown) {
      const fault = refused({ ...request, id: wanted.id }, asFault(thrown), {
        operation: operations.find(wanted.operationId)?.id,
        model: progress.model,
        idempotencyKey: wanted.idempotencyKey,
        isBegun: progress.begun === true,
      })
      const { [headerNames.cost]: charged, [headerNames.balance]: balance } = fault.headers
      const isUnknown = charged === undefined && (progress.begun === true || isOfEarlierCall(fault))
      return {
        id: wanted.id,
        operationId: wanted.operationId,
        fault,
        // A call can fail when it has been settled, and is charged then. One that has not begun was sent to nobody.
        cost: charged !== undefined ? usd(charged) : isUnknown || isOfChargedCall(fault) ? undefined : ZERO,
        held: undefined,
        balance: balance === undefined ? undefined : usd(balance),
        ...(wanted.cutCap !== undefined && { cutCap: wanted.cutCap }),
        ...(isUnknown && { atMost: usd(wanted.maxCost) }),
      }
    }
  }

  const quote: Quote = async (request, operation, given) => {
    const wanted = { id: request.id, given, maxCost: undefined, idempotencyKey: undefined }
    const { body } = await runWith(request, wanted, operation, { costMode: 'quote' })
    return JSON.parse(body.toString())
  }

  async function runWith(
    request: AgentRequest,
    wanted: Asked,
    operation: Operation,
    { costMode, progress }: Pick<CallRequest, 'progress'> & { readonly costMode?: 'quote' },
  ): Promise<Answer> {
    const spelt = spell(operation, wanted.given)
    if (spelt instanceof Fault) return refuseCounted(parts, request, wanted, spelt, operation)
    const { rawBody } = spelt
    const answer = await run({
      ...spelt,
      id: wanted.id,
      caller: request.caller,
      operation,
      readBody: () => (rawBody === null ? undefined : parseJson(rawBody, jsonLimits)),
      maxCost: wanted.maxCost,
      costMode,
      progress,
      quoteId: undefined,
      idempotencyKey: wanted.idempotencyKey,
      endUser: single(request.headers[headerNames.endUser]),
      tags: single(request.headers[headerNames.tags]),
      // An agent that creates a task knows that it does: its operation says so.
      headers: (names) => (names.includes(headerNames.async) ? { [headerNames.async]: 'enable' } : {}),
      memory: request.memory,
      renderFault: ({ message }) => message,
    })
    if (!isStreamed(answer)) return answer
    // Nothing that can be asked for here streams. If an upstream did it all the same, its call has to come to its end.
    await answer.body.sendTo(NOBODY)
    throw new Fault('internal_error', { cause: new Error(`${operation.id} streamed to a tool`) })
  }

  return { use, quote }
}

/** An earlier call under the same idempotency key, whose charge is told. */
const isOfChargedCall = ({ code }: Fault) => code === 'idempotency_completed'

/** An earlier call under the same idempotency key of which nobody knows yet what it costs. */
export function isOfEarlierCall({ code }: Fault): boolean {
  return code === 'idempotency_running' || code === 'outcome_unknown'
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

type Asked = Pick<Wanted, 'id' | 'given' | 'idempotencyKey'> & { readonly maxCost: string | undefined }

const NO_KEY = 'This operation is free and takes no idempotency key. Send it without one, by itself.'

/** What counts tokens holds nothing and costs nothing. */
const isCounting = ({ protocol }: Operation) => protocol?.endsWith('_count_tokens') === true

const JSON_TYPE = { 'content-type': 'application/json' }

function spell(operation: Operation, given: Arguments) {
  try {
    return spellArguments(operation, given)
  } catch (thrown) {
    return asFault(thrown)
  }
}

/** A request that is wrong counts as a request, as everywhere. */
async function refuseCounted(
  { begin }: Pick<AgentParts, 'begin'>,
  { caller }: AgentRequest,
  { id }: Pick<Wanted, 'id'>,
  fault: Fault,
  operation: Wish['operation'] = COUNTED,
): Promise<never> {
  throw fault.withHeaders(await admit(begin, { id, caller }, operation))
}
