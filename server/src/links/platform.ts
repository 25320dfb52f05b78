import * as oauth from 'openid-client'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'

/** A platform whose users let us act for them, and how we are known there. */
export type Platform = {
  readonly upstreamId: string
  readonly clientId: string
  readonly clientSecret: Secret
  /** Where its users are asked. */
  readonly authorizeUrl: string
  /** Under which everything else stands. */
  readonly baseUrl: string
  /** Asks it, within deadlines; what fails says whether anything can have come of it. */
  readonly send: Send
}

export type Send = (request: {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
}) => Promise<{ readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }>

export type Tokens = {
  readonly access: Secret
  readonly refresh: Secret | null
  readonly scopes: readonly string[]
  readonly expiresInSeconds: number
}

/** The platform has refused: it will not be otherwise when it is asked again. */
export class Refused extends Error {
  constructor(cause: unknown) {
    super('the platform refused', { cause })
    this.name = 'Refused'
  }
}

/** The platform could not be asked, or sent us away before it looked at what we asked: nothing has come of it. */
export class Unasked extends Error {
  constructor(cause: unknown) {
    super('the platform could not be asked', { cause })
    this.name = 'Unasked'
  }
}

export const NEEDED_FOR_USER: readonly string[] = ['tweet.read', 'users.read']
/** What the platform gives an access token at the least where it does not say. */
const SHORT_SECONDS = 60
const LONGEST_SECONDS = 365 * 86_400
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304])
const NOT_THERE: ReadonlySet<number> = new Set([400, 404])

function configurationOf(platform: Platform): oauth.Configuration {
  const { baseUrl, authorizeUrl, clientId, clientSecret } = platform
  const server = {
    issuer: new URL(baseUrl).origin,
    authorization_endpoint: authorizeUrl,
    token_endpoint: `${baseUrl}/oauth2/token`,
    revocation_endpoint: `${baseUrl}/oauth2/revoke`,
  }
  const configuration = new oauth.Configuration(server, clientId, {}, basic(clientId, clientSecret))
  configuration[oauth.customFetch] = fetchOver(platform)
  // Which addresses may be asked, and how, is the transport's to say.
  oauth.allowInsecureRequests(configuration)
  return configuration
}

/** What it is asked can be found by the call that it is asked for, here and in the platform's own record. */
export function onBehalfOf(callId: Id, platform: Platform): Platform {
  const { send } = platform
  return {
    ...platform,
    send: (request) => send({ ...request, headers: { ...request.headers, 'x-request-id': callId } }),
  }
}

/** As the platform documents it. The library's own writes a dash as %2D, as a standard has it and few platforms expect. */
function basic(id: string, secret: Secret): oauth.ClientAuth {
  const value = `Basic ${Buffer.from(`${id}:${secret.reveal()}`).toString('base64')}`
  return (_server, _client, _body, headers) => headers.set('authorization', value)
}

/** The library asks through us, so that what it asks has our deadlines and bounds, and reaches nobody else. */
function fetchOver({ baseUrl, send }: Platform): oauth.CustomFetch {
  return async (url, { method, headers, body }) => {
    if (!url.startsWith(`${baseUrl}/`)) throw new Unasked(new Error('the address is not the platform'))
    const { status, ...answer } = await send({
      method: method === 'GET' ? 'GET' : 'POST',
      target: url.slice(baseUrl.length),
      headers,
      body: body === null || body === undefined ? null : Buffer.from(String(body)),
    })
    if (isSentBack(status, answer)) throw new Unasked(new Error(`it answered ${status}`))
    if (status >= 400 && status < 500) throw new Rejected(status, errorIn(answer.body))
    const content = WITHOUT_BODY.has(status) ? null : new Uint8Array(answer.body)
    return new Response(content, { status, headers: answer.headers })
  }
}

/** It had no time, or does not know our client, which says nothing about a user: nothing was done. Who stands before it may
 * answer 503 when it has been asked already, but not in its form. */
function isSentBack(status: number, { headers }: Pick<Awaited<ReturnType<Send>>, 'headers'>): boolean {
  if (status === 503) return headers['retry-after'] !== undefined || /json/.test(headers['content-type'] ?? '')
  return status === 401 || status === 429
}

/** The platform has refused what it was asked. */
class Rejected extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string) {
    super(`it answered ${status} ${code}`)
    this.status = status
    this.code = code
  }
}

const errorBody = z.object({ error: z.string().regex(/^[a-z_]{1,60}$/) })

function errorIn(body: Buffer): string {
  try {
    return errorBody.parse(JSON.parse(body.toString('utf8'))).error
  } catch {
    return ''
  }
}

type Asked = {
  readonly state: string
  readonly verifier: string
  readonly scopes: readonly string[]
  readonly redirectUri: string
}

/** Where the user is to decide. */
export async function authorizationUrl(
  platform: Platform,
  { state, verifier, scopes, redirectUri }: Asked,
): Promise<string> {
  return oauth
    .buildAuthorizationUrl(configurationOf(platform), {
      redirect_uri: redirectUri,
      scope: scopes.join(' '),
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    .toString()
}

/** Exchanges the code that the user came back with. It works once, and for half a minute. */
export async function exchangeCode(platform: Platform, asked: Asked, code: string): Promise<Tokens> {
  const back = new URL(asked.redirectUri)
  back.search = new URLSearchParams({ code, state: asked.state }).toString()
  const checks = { pkceCodeVerifier: asked.verifier, expectedState: asked.state }
  return tokensOf(
    await oauth.authorizationCodeGrant(configurationOf(platform), back, checks).catch((error: unknown) => {
      const rejected = rejectionIn(error)
      throw rejected === undefined ? withoutAnswer(error) : new Refused(rejected)
    }),
    asked.scopes,
  )
}

/** Spends a refresh token for new ones. */
export async function refreshTokens(platform: Platform, refresh: Secret, scopes: readonly string[]): Promise<Tokens> {
  const response = await oauth
    .refreshTokenGrant(configurationOf(platform), refresh.reveal())
    .catch((error: unknown) => {
      const rejected = rejectionIn(error)
      if (rejected === undefined) throw withoutAnswer(error)
      // Only this one is about the token; whatever else is refused is about us, and has not spent it.
      throw rejected.code === 'invalid_grant' ? new Refused(rejected) : new Unasked(rejected)
    })
  return tokensOf(response, scopes)
}

/** Ends what the user has allowed. One that has ended is no error. */
export async function revokeToken(platform: Platform, token: Secret): Promise<void> {
  await oauth.tokenRevocation(configurationOf(platform), token.reveal()).catch((error: unknown) => {
    const rejected = rejectionIn(error)
    if (rejected === undefined) throw withoutAnswer(error)
    if (!NOT_THERE.has(rejected.status)) throw new Unasked(rejected)
  })
}

/** What our own part has thrown, through the library. */
function thrownIn(error: unknown): unknown {
  return error instanceof oauth.ClientError && error.cause !== undefined ? error.cause : error
}

function rejectionIn(error: unknown): Rejected | undefined {
  const thrown = thrownIn(error)
  return thrown instanceof Rejected ? thrown : undefined
}

/** The library's errors carry the answer that they are about, and with it what must not be logged. */
function withoutAnswer(error: unknown): unknown {
  const thrown = thrownIn(error)
  if (thrown instanceof Unasked) return thrown
  if (error instanceof oauth.ClientError || error instanceof oauth.ResponseBodyError)
    return new Error(`the platform did not answer properly (${error.code})`)
  return error
}

function tokensOf(response: oauth.TokenEndpointResponse, asked: readonly string[]): Tokens {
  const { access_token: access, refresh_token: refresh, scope, expires_in: seconds = SHORT_SECONDS } = response
  return {
    access: new Secret(access),
    refresh: refresh === undefined || refresh === '' ? null : new Secret(refresh),
    scopes: scope === undefined ? asked : scope.split(' ').filter((one) => one !== ''),
    expiresInSeconds: Math.min(Math.max(0, seconds), LONGEST_SECONDS),
  }
}

const me = z.object({ data: z.object({ id: z.string().regex(/^\d{1,30}$/), username: z.string().max(200) }) })

/** Who the user is there. */
export async function readUser(
  { send }: Platform,
  access: Secret,
): Promise<{ readonly id: string; readonly username: string }> {
  const headers = { accept: 'application/json', authorization: `Bearer ${access.reveal()}` }
  const { status, body } = await send({ method: 'GET', target: '/users/me', headers, body: null })
  if (status !== 200) throw new Refused(new Error(`it answered ${status}`))
  return me.parse(JSON.parse(body.toString('utf8'))).data
}
