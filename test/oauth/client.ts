import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'undici'
import type { Site } from '../people/site.ts'
import { freshAddress } from '../people/site.ts'
import { type Answer, filledIn, type Visitor } from '../people/visitor.ts'

/** A client that speaks the protocol by hand, and can be made to speak it wrongly. */

export type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Empty for what is no JSON. */
  readonly json: Readonly<Record<string, unknown>>
}

export type Pkce = { readonly verifier: string; readonly challenge: string }

export function newPkce(): Pkce {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** By which a test asks what a token is. */
export const OPERATOR_SECRET = 'an operator who asks about tokens'.replaceAll(' ', '-')

export const REDIRECT = 'http://127.0.0.1:9876/callback'

export function createOauthClient({ url }: Pick<Site, 'url'>, address = freshAddress()) {
  async function send(method: 'GET' | 'POST', path: string, body?: string, headers: Record<string, string> = {}) {
    const reply = await request(new URL(path, url), {
      method,
      headers: { 'x-forwarded-for': address, ...headers },
      ...(body !== undefined && { body }),
    })
    const text = await reply.body.text()
    return { status: reply.statusCode, headers: reply.headers, text, json: jsonIn(text) } satisfies Reply
  }

  const client = {
    send,
    get: (path: string, headers: Record<string, string> = {}) => send('GET', path, undefined, headers),
    post: (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      send('POST', path, new URLSearchParams(fields).toString(), {
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      }),
    register: (metadata: object) =>
      send('POST', '/oauth/register', JSON.stringify(metadata), { 'content-type': 'application/json' }),
  }
  return client
}

export type OauthClient = ReturnType<typeof createOauthClient>

function jsonIn(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** A public client of this machine, as the command lines register themselves. */
export async function registered(client: OauthClient, metadata: object = {}): Promise<string> {
  const { status, json, text } = await client.register({
    ...{ client_name: 'Tram Planner', redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' },
    grant_types: ['authorization_code', 'refresh_token'],
    ...metadata,
  })
  assert.equal(status, 201, text)
  return String(json.client_id)
}

type Asked = {
  readonly clientId: string
  readonly pkce: Pkce
  /** In place of, or beside, what a right client asks with; empty for what is left out. */
  readonly changed?: Readonly<Record<string, string>>
}

export function authorizePath({ clientId, pkce, changed = {} }: Asked): string {
  const all = {
    ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT, state: 'a state of its own' },
    ...{ code_challenge: pkce.challenge, code_challenge_method: 'S256', ...changed },
  }
  return `/oauth/authorize?${new URLSearchParams(Object.entries(all).filter(([, value]) => value !== ''))}`
}

export type Choice = Readonly<Record<string, string>>

/** Where the person decides: what the client asked with leads there, in a browser that is signed in. */
export async function toConsent(visitor: Visitor, asked: Asked): Promise<string> {
  const { status, location, text } = await visitor.get(authorizePath(asked))
  assert.equal(status, 303, text)
  return new URL(location, 'http://here').pathname
}

/** Sends a form as somebody fills it in, and once more where the page says again what that allows. */
export async function sendDecision(visitor: Visitor, path: string, page: string, choice: Choice): Promise<Answer> {
  const first = await visitor.post(path, { ...filledIn(page, path), ...choice })
  return first.status === 200 && first.text.includes('Read the sentence again')
    ? visitor.post(path, { ...filledIn(first.text, path), decision: choice.decision ?? 'allow' })
    : first
}

/** Lets a person decide; where the client is told of it. */
export async function decide(visitor: Visitor, path: string, choice: Choice = {}): Promise<URL> {
  const page = await visitor.get(path)
  assert.equal(page.status, 200, page.text)
  const fields = { decision: 'allow', mode: 'live', amount: '1.00', days: '30', replace: '', ...choice }
  const decided = await sendDecision(visitor, path, page.text, fields)
  assert.equal(decided.status, 303, decided.text)
  const { status, location, text } = await visitor.get(decided.location)
  assert.equal(status, 303, text)
  return new URL(location)
}

/** A code, as the person allowed it. */
export async function authorized(visitor: Visitor, asked: Asked, choice: Choice = {}): Promise<string> {
  const back = await decide(visitor, await toConsent(visitor, asked), choice)
  const code = back.searchParams.get('code')
  assert.ok(code !== null, back.href)
  return code
}

type Exchanged = { readonly clientId: string; readonly code: string; readonly pkce: Pkce }

export function exchange(client: OauthClient, { clientId, code, pkce }: Exchanged, changed: Choice = {}) {
  return client.post('/oauth/token', {
    ...{ grant_type: 'authorization_code', client_id: clientId, code, redirect_uri: REDIRECT },
    ...{ code_verifier: pkce.verifier, ...changed },
  })
}

export function refresh(client: OauthClient, clientId: string, token: unknown, changed: Choice = {}) {
  const fields = { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(token), ...changed }
  return client.post('/oauth/token', fields)
}
