import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Visitor, visitorOf } from '../identity/people/visitor.ts'
import { Fault } from '../kernel/fault.ts'
import { type Form, parseForm } from './body.ts'
import { createDelivery } from './pages/delivery.ts'
import { type Page, sendPage } from './pages/page.ts'

/** What a page's route is asked, without anything of the framework. */
export type Asked = {
  readonly visitor: Visitor
  readonly method: string
  /** The path alone, as it came. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Form
  /** What was sent by POST; nothing otherwise. */
  readonly form: Form
  readonly host: string
  readonly cookie: string | undefined
  readonly origin: string | undefined
  /** What the browser says of where a request comes from. */
  readonly fetchSite: string | undefined
  /** What it can read, and what it has already. */
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** A page that people see, or a form that they send. A GET changes nothing: mail scanners and browsers ask for it unasked. */
export type PageRoute = {
  readonly method: 'GET' | 'POST'
  /** Below site_url; `:name` is a parameter. */
  readonly path: string
  readonly answer: (asked: Asked) => Page | Promise<Page>
}

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
  if (query === undefined)
    throw new Fault('invalid_request', {
      detail: 'The query is not valid UTF-8, or has a name twice. Correct the URL.',
    })
  return query
}

/** What is sent twice is believed of nobody. */
function oneOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
