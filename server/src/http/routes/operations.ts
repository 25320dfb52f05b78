import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import { Fault } from '../../kernel/fault.ts'
import { renderFault } from '../answer.ts'
import { type JsonLimits, parseJson } from '../json.ts'

type Parts = {
  readonly run: Pipeline
  readonly names: Names
  readonly headerNames: HeaderNames
  readonly jsonLimits: JsonLimits
}

/** A request without a credential is told that these do not exist. */
const HIDDEN: ReadonlySet<string> = new Set(['website_traffic_engagement'])

/** Declares the routes of those operations that stand under a prefix. */
export function addOperations(
  scope: FastifyInstance,
  prefix: string,
  operations: readonly Operation[],
  { run, names, headerNames, jsonLimits }: Parts,
): void {
  keepBytes(scope)
  for (const operation of operations) {
    scope.route({
      method: operation.method,
      url: spell(operation.path, names).slice(prefix.length),
      config: HIDDEN.has(operation.id) ? { access: 'optional' } : {},
      async handler(request: FastifyRequest, reply: FastifyReply) {
        const { id, rawBody } = request
        if (request.caller === null) throw hidden(request.headers[headerNames.costMode] !== undefined)
        const { status, headers, body } = await run({
          id,
          caller: request.caller,
          operation,
          query: queryOf(request),
          rawBody,
          readBody: () => (rawBody === null || rawBody.length === 0 ? undefined : parseJson(rawBody, jsonLimits)),
          maxCost: single(request.headers[headerNames.maxCost]),
          costMode: single(request.headers[headerNames.costMode]),
          quoteId: single(request.headers[headerNames.quoteId]),
          idempotencyKey: single(request.headers['idempotency-key']),
          headers: (names) => pick(request.headers, names),
          renderFault: (fault) => renderFault(operation.dialect, fault, id).body,
        })
        return reply.code(status).headers(headers).send(body)
      },
    })
  }
}

/** Whoever asks for a quote without a credential is told that it is missing; for the rest there is nothing here. */
function hidden(asksForQuote: boolean): Fault {
  return new Fault(asksForQuote ? 'missing_credential' : 'route_not_found')
}

/** A body that is no JSON is refused by the pipeline, so that it counts as a request. */
function keepBytes(scope: FastifyInstance): void {
  scope.removeContentTypeParser('application/json')
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    request.rawBody = bytes
    done(null)
  })
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
