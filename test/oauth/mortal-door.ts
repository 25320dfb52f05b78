import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { authorizationRoutes } from '../../server/src/authorization/requests.ts'
import type { AuthorizationServer } from '../../server/src/authorization/server.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { ZERO } from '../../server/src/kernel/money.ts'
import { createSeal, type Seal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { loadAssets } from '../../server/src/pages/assets.ts'
import { parseForm } from '../../server/src/pages/form-data.ts'
import { createPages } from '../../server/src/pages/page.ts'
import type { PageRoute } from '../../server/src/pages/page-route.ts'
import { createPasswords } from '../../server/src/people/passwords.ts'
import { createPeople } from '../../server/src/people/people.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { createOffer } from '../../server/src/people-pages/offer.ts'
import { createSiteRoutes } from '../../server/src/people-pages/routes.ts'
import { connect } from '../ledger/world.ts'
import { SITE, serverHere } from './server-here.ts'

/**
 * For tests, a process of its own that answers for the authorization server, and ends with SIGKILL as soon as the n-th statement of
 * its first request has left: before it hears of it, and before the next one.
 */
export type MortalDoor = {
  readonly url: string
  readonly masterKey: string
  /** Null to live. */
  readonly dieAfter: number | null
}
export type Opened = { readonly port: number }

process.on('disconnect', () => process.exit())

process.once('message', async ({ url, masterKey, dieAfter }: MortalDoor) => {
  const { pools } = connect(url)
  const seal = createSeal({ current: new Secret(masterKey) })
  const server = serverHere({ pool: pools.rest, seal })
  await server.provider()
  const routes = authorizationRoutes(server)
  const pages = pagesHere({ pool: pools.rest, server, seal })
  let statements: number | undefined
  const send: (...asked: unknown[]) => unknown = pg.Client.prototype.query
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...asked: unknown[]): unknown {
      const sent = send.apply(this, asked)
      if (statements !== undefined) statements += 1
      if (statements === dieAfter) process.kill(process.pid, 'SIGKILL')
      return sent
    },
  })
  const listener = createServer(async (request, response) => {
    statements ??= 0
    const { method = '', url: at = '', headers } = request
    const body = await bodyOf(request)
    const [path = ''] = at.split('?')
    const visitor = visitorOf('203.0.113.9')
    const route = routes.find((one) => one.method === method && isAt(one.path, path))
    const respond = await route?.answer({ visitor, method, url: at, headers, body })
    response.setHeader('x-statements', String(statements))
    if (respond !== undefined) return respond(response)
    const shown = pages.find((one) => one.method === method && isAt(one.path, path))
    if (shown === undefined) return response.writeHead(404).end()
    const { host = '', cookie, origin, 'sec-fetch-site': fetchSite } = headers
    const params = { uid: path.split('/').at(-1) ?? '' }
    const form = parseForm(body) ?? new Map()
    const asked = { visitor, method, path, params, query: new Map(), form, host, cookie, origin }
    const plain = { acceptEncoding: undefined, ifNoneMatch: undefined }
    const page = await shown.answer({ ...asked, ...plain, fetchSite: String(fetchSite) })
    response.writeHead(page.status, { ...page.headers, 'set-cookie': [...(page.cookies ?? [])] }).end(page.body)
  }).listen(0, '127.0.0.1', () => {
    const { port } = listener.address() as AddressInfo
    process.send?.({ port } satisfies Opened)
  })
})

/** What people decide, as the website answers it. */
type Here = { readonly pool: pg.Pool; readonly server: AuthorizationServer; readonly seal: Seal }

function pagesHere({ pool, server, seal }: Here): readonly PageRoute[] {
  const ids = createIds({ clock: systemClock })
  const people = createPeople({
    ...{
      pool,
      ids,
      seal: null,
      passwords: createPasswords(),
      sendMail: async () => {},
      credit: async () => {},
      testCredit: async () => {},
    },
    settings: { siteUrl: SITE, name: 'Farebox', signUp: 'open', domains: [], credit: ZERO },
  })
  const pages = createPages({ assets: loadAssets(), siteUrl: undefined })
  const settings = { isSignUpOpen: true, missing: [], credit: ZERO, issuer: null }
  const offer = createOffer({ catalogue, sold: () => catalogue.operations, models: { list: async () => [] } })
  const authorization = { server, pool, ids, seal, offer }
  return createSiteRoutes({ people, pages, siteUrl: SITE, settings, issuer: null, authorization })
}

/** Whether a path is that of a route, with any one word for its parameter. */
function isAt(route: string, path: string): boolean {
  const [words, asked] = [route.split('/'), path.split('/')]
  return words.length === asked.length && words.every((word, at) => word.startsWith(':') || word === asked[at])
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces)
}
