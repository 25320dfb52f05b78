import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invalidRequest } from '../kernel/fault.ts'
import { createDelivery } from '../pages/delivery.ts'
import { type Form, parseForm } from '../pages/form-data.ts'
import type { SentPage } from '../pages/page.ts'
import type { Asked, PageRoute } from '../pages/page-route.ts'
import { visitorOf } from '../people/visitor.ts'

/** Anybody may ask for them: who may see what is in a page, its route decides. */
export function addPageRoutes(scope: FastifyInstance, routes: readonly PageRoute[]): void {
  const deliver = createDelivery()
  for (const { method, path, answer } of routes)
    scope.route({
      method,
      // The family's own prefix is the first page.
      url: path === '/' ? '' : path,
      config: { access: 'public' },
      exposeHeadRoute: method === 'GET',
      async handler(request, reply) {
        const asked = askedBy(request)
        return sendPage(reply, deliver(asked, await answer(asked)))
      },
    })
}

export function sendPage(reply: FastifyReply, { status, headers, cookies = [], body }: SentPage): FastifyReply {
  for (const cookie of cookies) reply.header('set-cookie', cookie)
  return reply.code(status).headers(headers).send(body)
}

const NOTHING: Form = new Map()

function askedBy(request: FastifyRequest): Asked {
  const { address, headers, body, params } = request
  const [path = '', query] = request.url.split('?', 2)
  return {
    visitor: visitorOf(address, headers['user-agent']),
    method: request.method,
    path,
    params: Object.fromEntries(Object.entries(Object(params)).map(([name, value]) => [name, String(value)])),
    query: queryOf(query),
    form: body instanceof Map ? body : NOTHING,
    host: headers.host ?? '',
    cookie: headers.cookie,
    origin: headers.origin,
    fetchSite: oneOf(headers['sec-fetch-site']),
    acceptEncoding: oneOf(headers['accept-encoding']),
    ifNoneMatch: headers['if-none-match'],
  }
}

function queryOf(text: string | undefined): Form {
  const query = parseForm(Buffer.from(text ?? '', 'latin1'))
  if (query === undefined) throw invalidRequest('The query is not valid UTF-8, or has a name twice. Correct the URL.')
  return query
}

/** What is sent twice is believed of nobody. */
function oneOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
