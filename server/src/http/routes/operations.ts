import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import { callerOf } from '../caller.ts'
import { type JsonLimits, parseJson } from '../json.ts'

type Parts = {
  readonly run: Pipeline
  readonly names: Names
  readonly headerNames: HeaderNames
  readonly jsonLimits: JsonLimits
}

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
      async handler(request: FastifyRequest, reply: FastifyReply) {
        const { id, rawBody } = request
        const { status, headers, body } = await run({
          id,
          caller: callerOf(request),
          operation,
          query: queryOf(request),
          rawBody,
          readBody: () => (rawBody === null || rawBody.length === 0 ? undefined : parseJson(rawBody, jsonLimits)),
          maxCost: single(request.headers[headerNames.maxCost]),
          costMode: single(request.headers[headerNames.costMode]),
        })
        return reply.code(status).headers(headers).send(body)
      },
    })
  }
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

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
