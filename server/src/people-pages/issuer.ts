import { createHmac } from 'node:crypto'
import * as openid from 'openid-client'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { OutboundFailure } from '../outbound/failure.ts'
import type { Outbound } from '../outbound/outbound.ts'

/** An OpenID provider that the operator trusts to say who somebody is. */
export type Issuer = {
  /** Where a browser is sent. What it is sent with is made of a secret that only this browser has. */
  readonly begin: (own: Secret) => Promise<string>
  /** Who has come back, if it is the browser that was sent and all that it brings is right. */
  readonly finish: (own: Secret, answer: ReadonlyMap<string, string>) => Promise<IssuerClaims>
}

export type IssuerClaims = {
  readonly issuer: string
  readonly subject: string
  readonly email: string
  readonly emailVerified: boolean
  readonly name: string
}

/** Why somebody did not get in: they, or the issuer, said no; what came back is not to be believed; or nobody answered. */
export type IssuerReason = 'denied' | 'not_believed' | 'unreachable'

/** The causes of it can hold tokens, and are not kept. */
export class IssuerRefusal extends Error {
  readonly reason: IssuerReason
  /** A word of the protocol or the library, for operators. */
  readonly code: string

  constructor(reason: IssuerReason, code: string) {
    super(`${reason}: ${code}`)
    this.name = 'IssuerRefusal'
    this.reason = reason
    this.code = code
  }
}

type Parts = {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: Secret
  /** Where the issuer sends people back to. */
  readonly redirectUri: string
  /** Asks the issuer, and whoever it names for tokens and keys: within deadlines and bounds. */
  readonly outbound: Pick<Outbound, 'send'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const SCOPE = 'openid email profile'
/** What it says of itself is asked again after that; keys that it does not know are looked for in any case. */
const KNOWN_FOR_MS = 3_600_000
const CLOCKS_DIFFER_SECONDS = 30

export function createIssuer(parts: Parts): Issuer {
  const { redirectUri, clock } = parts
  let known: { readonly configuration: Promise<openid.Configuration>; readonly atMs: number } | undefined

  /** Many at once wait for one answer; a failure is not kept. */
  function configuration(): Promise<openid.Configuration> {
    const nowMs = clock.monotonicMs()
    if (known === undefined || nowMs - known.atMs > KNOWN_FOR_MS) {
      const asked = { configuration: discover(parts), atMs: nowMs }
      known = asked
      asked.configuration.catch(() => {
        if (known === asked) known = undefined
      })
    }
    return known.configuration
  }

  return {
    async begin(own) {
      const parameters = {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state: partOf(own, 'state'),
        nonce: partOf(own, 'nonce'),
        code_challenge: await openid.calculatePKCECodeChallenge(partOf(own, 'verifier')),
        code_challenge_method: 'S256',
      }
      return openid.buildAuthorizationUrl(await refusing(configuration()), parameters).href
    },

    async finish(own, answer) {
      const back = new URL(redirectUri)
      back.search = new URLSearchParams([...answer]).toString()
      const tokens = await refusing(
        configuration().then((issuer) =>
          openid.authorizationCodeGrant(issuer, back, {
            expectedState: partOf(own, 'state'),
            expectedNonce: partOf(own, 'nonce'),
            pkceCodeVerifier: partOf(own, 'verifier'),
            idTokenExpected: true,
          }),
        ),
      )
      const read = claims.safeParse(tokens.claims())
      if (!read.success) throw new IssuerRefusal('not_believed', 'claims')
      const { iss, sub, email, email_verified: emailVerified, name } = read.data
      return { issuer: iss, subject: sub, email, emailVerified, name }
    },
  }
}

/** An address that is not there, or not as one is, is one that nobody vouches for. */
const claims = z.object({
  iss: z.string().max(500),
  sub: z.string().min(1).max(255),
  email: z.string().max(254).catch(''),
  // Some providers write it as a text.
  email_verified: z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]).catch(false),
  name: z
    .string()
    .catch('')
    .transform((text) => text.slice(0, 200)),
})

/** Of one secret, so that a browser has to keep one thing and nobody has to keep any of it here. */
function partOf(own: Secret, part: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', own.reveal()).update(`issuer ${part}`).digest('base64url')
}

function discover({ url, clientId, clientSecret, outbound }: Parts): Promise<openid.Configuration> {
  const metadata = { [openid.clockTolerance]: CLOCKS_DIFFER_SECONDS }
  return openid.discovery(new URL(url), clientId, metadata, authenticationBy(clientSecret), {
    [openid.customFetch]: fetchOver(outbound),
    // Which addresses may be asked, and how, is the outbound client's to say. Keys are checked though TLS vouches already.
    execute: [openid.allowInsecureRequests, openid.enableNonRepudiationChecks],
  })
}

/** In the body where the issuer takes it there: of what stands in a header, each reads dashes and colons in its own way. */
function authenticationBy(secret: Secret): openid.ClientAuth {
  const post = openid.ClientSecretPost(secret.reveal())
  const basic = openid.ClientSecretBasic(secret.reveal())
  return (server, ...rest) =>
    server.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true
      ? post(server, ...rest)
      : basic(server, ...rest)
}

function fetchOver(outbound: Pick<Outbound, 'send'>): openid.CustomFetch {
  return async (url, { method, headers, body }) => {
    const content = body === null || body === undefined ? {} : { body: Buffer.from(String(body)) }
    const reply = await outbound.send({ url, method: method === 'POST' ? 'POST' : 'GET', headers, ...content })
    return new Response(new Uint8Array(reply.body), { status: reply.status, headers: reply.headers })
  }
}

async function refusing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw refusalOf(error)
  }
}

function refusalOf(error: unknown): IssuerRefusal {
  if (error instanceof openid.AuthorizationResponseError)
    return new IssuerRefusal(error.error === 'access_denied' ? 'denied' : 'not_believed', wordOf(error.error))
  if (error instanceof openid.ResponseBodyError) return new IssuerRefusal('not_believed', wordOf(error.error))
  if (!(error instanceof openid.ClientError)) return new IssuerRefusal('not_believed', 'unknown')
  if (error.cause instanceof OutboundFailure) return new IssuerRefusal('unreachable', error.cause.reason)
  return new IssuerRefusal('not_believed', wordOf(error.code ?? ''))
}

/** Others can have written it. */
function wordOf(text: string): string {
  return /^\w{1,60}$/.test(text) ? text : 'unknown'
}
