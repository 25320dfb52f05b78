import type { RawAsked, RawRoute, Respond } from '../http/raw-routes.ts'
import { createCookies } from '../pages/cookies.ts'
import { ClientRefusal, readClientMetadata } from './client-metadata.ts'
import { PATHS } from './configuration.ts'
import { browserIn, requireDecider } from './deciding-browser.ts'
import { type CountedRequest, giveOneBack, takeOne } from './limits.ts'
import { readable } from './parameters.ts'
import { requestFor } from './request-for.ts'
import { rememberBrowser } from './request-notes.ts'
import type { AuthorizationServer } from './server.ts'

const FORM = /^application\/x-www-form-urlencoded\b/i

type Prepare = (asked: RawAsked) => { readonly url: string; readonly body: Buffer }

/** What clients and their browsers reach of the library: each under its limit, and with what they sent in the form that it expects. */
export function authorizationRoutes(server: AuthorizationServer): readonly RawRoute[] {
  const { resources, siteUrl, attempts, states } = server
  const cookies = createCookies({ isSecure: siteUrl.startsWith('https:') })

  function pass(counted: CountedRequest | null, prepare: Prepare): RawRoute['answer'] {
    return async (asked) => {
      if (counted !== null) await takeOne(attempts, counted, asked.visitor)
      try {
        const prepared = prepare(asked)
        const provider = await server.provider()
        return async (response) => {
          const request = requestFor(asked, siteUrl, prepared)
          if (asked.url.startsWith(PATHS.authorization)) {
            const { mark, cookie } = browserIn(cookies, asked.headers.cookie)
            rememberBrowser(request, mark)
            if (cookie !== null) response.setHeader('set-cookie', cookie)
          }
          await provider.callback()(request, response)
          if (counted === 'token' && response.statusCode < 400) await giveOneBack(attempts, counted, asked.visitor)
        }
      } catch (error) {
        if (error instanceof ClientRefusal) return refuse(error)
        throw error
      }
    }
  }

  const resume: RawRoute['answer'] = async (asked) => {
    const [path = ''] = asked.url.split('?', 1)
    await requireDecider(
      { states, cookies },
      { uid: path.slice(path.lastIndexOf('/') + 1), cookie: asked.headers.cookie },
    )
    return pass(null, asIs)(asked)
  }

  const asIs: Prepare = ({ url, body }) => ({ url, body })
  const withQuery: Prepare = ({ url }) => {
    // A query may have another question mark in it.
    const [path = ''] = url.split('?', 1)
    const query = readable(url.slice(path.length + 1), resources, { needsScope: true })
    return { url: `${path}?${query}`, body: NOTHING }
  }
  const withForm =
    (needsScope: boolean): Prepare =>
    ({ url, headers, body }) => {
      if (!FORM.test(headers['content-type'] ?? '')) return { url, body }
      return { url, body: Buffer.from(readable(body.toString('utf8'), resources, { needsScope })) }
    }
  const metadata =
    (path: string): Prepare =>
    () => ({ url: path, body: NOTHING })
  const wellKnown = (path: string): readonly RawRoute[] =>
    [path, `${path}/*`].flatMap((at) =>
      (['GET', 'OPTIONS'] as const).map((method) => ({ method, path: at, answer: pass(null, metadata(path)) })),
    )

  return [
    ...wellKnown('/.well-known/oauth-authorization-server'),
    ...wellKnown('/.well-known/openid-configuration'),
    { method: 'GET', path: PATHS.jwks, answer: pass(null, metadata(PATHS.jwks)) },
    { method: 'GET', path: PATHS.authorization, isPage: true, answer: pass('authorize', withQuery) },
    { method: 'GET', path: `${PATHS.authorization}/:uid`, isPage: true, answer: resume },
    { method: 'POST', path: PATHS.token, answer: pass('token', withForm(false)) },
    { method: 'POST', path: PATHS.device_authorization, answer: pass('device', withForm(true)) },
    { method: 'POST', path: PATHS.revocation, answer: pass('revoke', withForm(false)) },
    { method: 'POST', path: PATHS.introspection, answer: pass(null, withForm(false)) },
    { method: 'POST', path: PATHS.registration, answer: pass('register', registration) },
  ]
}

const NOTHING = Buffer.alloc(0)

/** Of a registration only what is known here reaches the library. */
const registration: Prepare = ({ url, body }) => {
  return { url, body: Buffer.from(JSON.stringify(readClientMetadata(jsonIn(body), 'registration'))) }
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new ClientRefusal('invalid_client_metadata', 'The body is not JSON.')
  }
}

function refuse({ error, message }: ClientRefusal): Respond {
  const body = JSON.stringify({ error, error_description: message.replaceAll(/[^ -!#-[\]-~]/g, '?') })
  return async (response) => {
    const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
    response.writeHead(400, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
  }
}
