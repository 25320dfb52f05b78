import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { MODEL_IN_PATH, type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import { isStreamed } from '../../gateway/relay.ts'
import { Fault } from '../../kernel/fault.ts'
import { LARGE_BYTES } from '../../kernel/memory-budget.ts'
import { renderFault } from '../answer.ts'
import { type JsonLimits, parseJson } from '../json.ts'
import { keepBytes } from '../keep-bytes.ts'
import type { LargeJson } from '../large-json.ts'
import { memoryOf } from '../memory-of.ts'
import { sendStreamed } from '../wire/outlet.ts'
import { sendWhole } from '../wire/send-whole.ts'

type Parts = {
  readonly run: Pipeline
  readonly names: Names
  readonly headerNames: HeaderNames
  readonly jsonLimits: JsonLimits
  readonly largeJson: Pick<LargeJson, 'read'>
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
  const [named, plain] = [operations.filter(hasModelInPath), operations.filter((one) => !hasModelInPath(one))]
  for (const operation of plain) {
    scope.route({
      method: operation.method,
      url: spell(operation.path, parts.names).slice(prefix.length),
      config: { writesId: true, access: operation.isHidden ? 'optional' : 'credential' },
      handler: (request, reply) => handle(operation, request, reply),
    })
  }
  if (named.length > 0) addActions(scope, named, handle)
}

type Handle = (operation: Operation, request: FastifyRequest, reply: FastifyReply, model?: string) => Promise<unknown>

function createHandler({ run, headerNames, jsonLimits, largeJson }: Parts): Handle {
  return async (operation, request, reply, model) => {
    const { id, rawBody } = request
    if (request.caller === null) throw hidden(request.headers[headerNames.costMode] !== undefined)
    const memory = memoryOf(request)
    // A call goes on when its caller has left, and an answer waits to be read when its call has ended.
    memory.keep()
    let ending: Promise<void> | undefined
    try {
      const isLarge = rawBody !== null && rawBody.length > LARGE_BYTES
      const readLarge = isLarge ? await largeJson.read(rawBody) : undefined
      const readSmall = () => (rawBody === null || rawBody.length === 0 ? undefined : parseJson(rawBody, jsonLimits))
      const answer = await run({
        id,
        caller: request.caller,
        operation,
        ...(model !== undefined && { model }),
        query: queryOf(request),
        rawBody,
        readBody: readLarge ?? readSmall,
        maxCost: single(request.headers[headerNames.maxCost]),
        costMode: single(request.headers[headerNames.costMode]),
        quoteId: single(request.headers[headerNames.quoteId]),
        idempotencyKey: single(request.headers['idempotency-key']),
        headers: (names) => pick(request.headers, names),
        memory,
        renderFault: (fault) => renderFault(operation.dialect, fault, id).body,
      })
      if (isStreamed(answer)) ending = sendStreamed(reply, answer)
      else sendWhole(reply, answer)
      return reply
    } finally {
      if (ending === undefined) memory.release()
      else ending.finally(() => memory.release())
    }
  }
}

const hasModelInPath = ({ path }: Operation) => path.includes(MODEL_IN_PATH)

/** One protocol has the model and what is to be done with it in the path: `/models/{model}:generateContent`. */
function addActions(scope: FastifyInstance, operations: readonly Operation[], handle: Handle): void {
  const byAction = new Map(
    operations.map((one) => [one.path.slice(one.path.indexOf(MODEL_IN_PATH) + MODEL_IN_PATH.length), one]),
  )
  // Names have slashes, which some clients encode and some do not.
  const config = { writesId: true }
  scope.post<{ Params: { '*': string } }>('/models/*', { config }, async (request, reply) => {
    const place = request.params['*']
    const end = place.lastIndexOf(':')
    const operation = byAction.get(place.slice(end + 1))
    if (end === -1 || operation === undefined) throw new Fault('route_not_found')
    return handle(operation, request, reply, place.slice(0, end))
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
