import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isSoldByUnit, isTask, MODEL_IN_PATH, type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { Progress } from '../../gateway/call-request.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import { isStreamed } from '../../gateway/relay.ts'
import { digestHead } from '../../gateway/request-digest.ts'
import { ownAllowanceOf } from '../../identity/caller.ts'
import { Fault, noRoom } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { LARGE_BYTES } from '../../kernel/memory-budget.ts'
import { formatUsd } from '../../kernel/money.ts'
import { leftOf } from '../../ledger/balance.ts'
import type { ReadBudgetState } from '../../ledger/budget-reader.ts'
import { withAnthropicRates } from '../../limits/headers.ts'
import { type JsonLimits, parseJson } from '../../wire/json.ts'
import type { LargeJson } from '../../wire/large-json.ts'
import { sendStreamed } from '../../wire/outlet.ts'
import { sendWhole, type Whole } from '../../wire/send-whole.ts'
import { type HeaderNames, strangeOfMoney } from '../../wording/header-names.ts'
import { renderFault } from '../answer.ts'
import { keepBytes } from '../keep-bytes.ts'
import { hasRoomForTexts, memoryOf } from '../memory-of.ts'

type Parts = {
  readonly run: Pipeline
  readonly names: Names
  readonly headerNames: HeaderNames
  readonly jsonLimits: JsonLimits
  readonly largeJson: Pick<LargeJson, 'read'>
  readonly readBudget: ReadBudgetState
  /** The most that a call of a model may have as its body; others have what the listener takes. */
  readonly modelBodyBytes: number
}

/** Declares the routes of those operations that stand under a prefix. */
export function addOperations(
  scope: FastifyInstance,
  prefix: string,
  operations: readonly Operation[],
  parts: Parts,
): void {
  keepBytes(scope, 'application/json')
  const handle = createHandler(parts)
  const isCall = ({ headers }: FastifyRequest) => headers[parts.headerNames.costMode] === undefined
  const [named, plain] = [operations.filter(hasModelInPath), operations.filter((one) => !hasModelInPath(one))]
  for (const operation of plain) {
    scope.route({
      method: operation.method,
      url: spell(operation.path, parts.names).slice(prefix.length),
      config: {
        writesId: true,
        access: operation.isHidden ? 'optional' : 'credential',
        callOf: (request) => (isCall(request) ? operation : undefined),
      },
      ...(isOfModels(operation) && { bodyLimit: parts.modelBodyBytes }),
      handler: (request, reply) => handle(operation, request, reply),
    })
  }
  if (named.length > 0) addActions(scope, named, { handle, isCall, bodyLimit: parts.modelBodyBytes })
}

type Handle = (operation: Operation, request: FastifyRequest, reply: FastifyReply, model?: string) => Promise<unknown>

function createHandler({ run, headerNames, jsonLimits, largeJson, readBudget }: Parts): Handle {
  return async (operation, request, reply, model) => {
    const { id, rawBody } = request
    if (request.caller === null) throw hidden(request.headers[headerNames.costMode] !== undefined)
    const progress: Progress = {}
    request.progress = progress
    const memory = memoryOf(request)
    // A call goes on when its caller has left, and an answer waits to be read when its call has ended.
    memory.keep()
    let ending: Promise<void> | undefined
    try {
      const query = queryOf(request)
      const named = model === undefined ? {} : { model }
      const hasRoom = hasRoomForTexts(memory, rawBody)
      if (hasRoom !== true && !(await hasRoom)) throw noRoom()
      const isLarge = rawBody !== null && rawBody.length > LARGE_BYTES
      const large = isLarge ? await largeJson.read(rawBody, digestHead({ operation, query, ...named })) : undefined
      const readSmall = () => (rawBody === null || rawBody.length === 0 ? undefined : parseJson(rawBody, jsonLimits))
      const answer = await run({
        id,
        caller: request.caller,
        operation,
        ...named,
        query,
        rawBody,
        digest: large?.digest,
        readBody: large?.value ?? readSmall,
        maxCost: single(request.headers[headerNames.maxCost]),
        costMode: single(request.headers[headerNames.costMode]),
        quoteId: single(request.headers[headerNames.quoteId]),
        strange: strangeOfMoney(request.headers, headerNames),
        onDisconnect: single(request.headers[headerNames.onDisconnect]),
        hold: single(request.headers[headerNames.hold]),
        fit: single(request.headers[headerNames.fit]),
        endUser: single(request.headers[headerNames.endUser]),
        tags: single(request.headers[headerNames.tags]),
        whenLeft: (work) => whenLeft(reply.raw, work),
        idempotencyKey: single(request.headers['idempotency-key']),
        headers: (names) => pick(request.headers, names),
        progress,
        memory,
        renderFault: (fault) => renderFault(operation.dialect, fault, id).body,
      })
      const headers = operation.dialect === 'anthropic' ? withAnthropicRates(answer.headers) : answer.headers
      if (isStreamed(answer)) ending = sendStreamed(reply, { ...answer, headers })
      else {
        const whole = { ...answer, headers }
        const budget = budgetToTell(request, headerNames)
        sendWhole(reply, budget === undefined ? whole : await withBudget(whole, budget, { headerNames, readBudget }))
      }
      return reply
    } finally {
      if (ending === undefined) memory.release()
      else ending.finally(() => memory.release())
    }
  }
}

/** A connection that closes before the answer has been written is one that its caller has left. */
function whenLeft(response: ServerResponse, work: () => void): () => void {
  if (response.destroyed || response.closed) work()
  else response.once('close', work)
  return () => response.off('close', work)
}

const BUDGET = 'budget'

/** The budget of who has asked what is left of it: telling it takes a statement more. */
function budgetToTell({ headers, caller }: FastifyRequest, { tell }: HeaderNames): Id | undefined {
  return caller !== null && single(headers[tell]) === BUDGET ? ownAllowanceOf(caller) : undefined
}

/** What can't be read is not told. */
async function withBudget(
  answer: Whole,
  id: Id,
  { headerNames, readBudget }: Pick<Parts, 'headerNames' | 'readBudget'>,
): Promise<Whole> {
  const state = await readBudget(id)
  return state === undefined
    ? answer
    : { ...answer, headers: { ...answer.headers, [headerNames.budget]: formatUsd(leftOf(state)) } }
}

const isOfModels = (operation: Operation) => !isSoldByUnit(operation) && !isTask(operation)
const hasModelInPath = ({ path }: Operation) => path.includes(MODEL_IN_PATH)

type Actions = {
  readonly handle: Handle
  readonly isCall: (request: FastifyRequest) => boolean
  readonly bodyLimit: number
}

/** One protocol has the model and what is to be done with it in the path: `/models/{model}:generateContent`. */
function addActions(scope: FastifyInstance, operations: readonly Operation[], { handle, isCall, bodyLimit }: Actions) {
  const byAction = new Map(
    operations.map((one) => [one.path.slice(one.path.indexOf(MODEL_IN_PATH) + MODEL_IN_PATH.length), one]),
  )
  function asked({ params }: FastifyRequest) {
    const { '*': place = '' }: { '*'?: string } = Object(params)
    const end = place.lastIndexOf(':')
    return { model: place.slice(0, end), operation: end === -1 ? undefined : byAction.get(place.slice(end + 1)) }
  }
  const callOf = (request: FastifyRequest) => (isCall(request) ? asked(request).operation : undefined)
  // Names have slashes, which some clients encode and some do not.
  scope.post('/models/*', { config: { writesId: true, callOf }, bodyLimit }, async (request, reply) => {
    const { model, operation } = asked(request)
    if (operation === undefined) throw new Fault('route_not_found')
    return handle(operation, request, reply, model)
  })
}

/** Whoever asks for a quote without a credential is told that it is missing; for the rest there is nothing here. */
function hidden(asksForQuote: boolean): Fault {
  return new Fault(asksForQuote ? 'missing_credential' : 'route_not_found')
}

/** As it came, byte for byte. */
function queryOf({ raw: { url = '' } }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {}
  for (const name of names) {
    const value = single(headers[name])
    if (value !== undefined) picked[name] = value
  }
  return picked
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
