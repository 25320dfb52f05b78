import { randomBytes, timingSafeEqual } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { type Configuration, Provider } from 'oidc-provider'
import { makeAccessToken } from '../identity/key-format.ts'
import type { Log } from '../telemetry/log.ts'
import { markedHash } from './adapter.ts'
import type { Clients } from './clients.ts'
import { COOKIES, PATHS } from './configuration.ts'
import type { Answering } from './keep-here.ts'
import { shardOfRequest } from './request-notes.ts'
import { TOLD_SCOPES } from './scopes.ts'
import { tellWhyRefused } from './why-refused.ts'

type Parts = {
  readonly issuer: string
  readonly configuration: Configuration
  readonly clients: Pick<Clients, 'used'>
  /** Keeps whoever would be sent to a client that nobody has allowed. */
  readonly keepHere: (ctx: Answering) => Promise<void>
  readonly log: Pick<Log, 'error' | 'warn'>
}

/** The library with what is ours of it: the form of access tokens, how secrets are compared, and what it tells. */
export function buildProvider({ issuer, configuration, clients, keepHere, log }: Parts): Provider {
  const provider = new Provider(issuer, configuration)
  // The request that it is given says how we are reached, and was written by us.
  provider.proxy = true
  shapeTokens(provider)
  provider.Client.prototype.compareClientSecret = function compare(given) {
    return isSame(markedHash(given), this.clientSecret ?? '')
  }
  provider.use(async (ctx, next) => {
    await next()
    await keepHere(ctx)
    dropSessionCookie(ctx)
    if (ctx.path.startsWith('/.well-known/')) tellLess(ctx)
    if (ctx.path === PATHS.device_authorization) dropFilledInLink(ctx)
  })
  provider.on('server_error', (_ctx, error) => log.error('the authorization server failed', { error }))
  // The framework below it would write to the console.
  EventEmitter.prototype.on.call(provider, 'error', (error) => log.error('the authorization server failed', { error }))
  // The library emits it, and its types do not name it.
  EventEmitter.prototype.on.call(provider, 'grant.error', tellWhyRefused)
  provider.on('grant.success', ({ oidc }) => {
    if (oidc.client === undefined) return
    clients.used(oidc.client.clientId).catch((error) => log.warn('the use of a client was not noted', { error }))
  })
  return provider
}

type Shaped = { readonly grantId?: string | undefined; format?: string }

/** `fb_at_…`, with the grant and its shard, by which a token is known wherever it turns up. */
function shapeTokens(provider: Provider): void {
  Object.assign(provider.AccessToken.prototype, {
    generateTokenId(this: Shaped): string {
      if (this.grantId === undefined) throw new Error('an access token without a grant')
      this.format = 'opaque'
      return makeAccessToken(this.grantId, shardOfRequest(Provider.ctx?.req)).reveal()
    },
  })
  // So that they are known, and taken out of a log, wherever they turn up.
  const others = [
    [provider.RefreshToken, 'rt'],
    [provider.AuthorizationCode, 'ac'],
    [provider.DeviceCode, 'dc'],
  ] as const
  for (const [model, kind] of others)
    Object.assign(model.prototype, { generateTokenId: () => `fb_${kind}_${randomBytes(32).toString('hex')}` })
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

type Answered = {
  body: unknown
  readonly response: {
    get(name: string): string | string[] | undefined
    set(name: string, value: string[]): void
    remove(name: string): void
  }
}

/** Who is signed in is known to our own sessions alone: the library's would be one that nobody can end. */
function dropSessionCookie({ response }: Answered): void {
  const cookies = [response.get('set-cookie') ?? []].flat().filter((cookie) => cookie !== '')
  const kept = cookies.filter((cookie) => !cookie.startsWith(`${COOKIES.session}=`))
  if (kept.length === cookies.length) return
  response.remove('set-cookie')
  if (kept.length > 0) response.set('set-cookie', kept)
}

/** A link with the code in it would spare the person to look at the device whose code it is. */
function dropFilledInLink(ctx: Answered): void {
  if (typeof ctx.body !== 'object' || ctx.body === null) return
  ctx.body = { ...ctx.body, verification_uri_complete: undefined }
}

/** Scopes of accounts are left out, since some clients ask for all that they see. */
function tellLess(ctx: Answered): void {
  if (typeof ctx.body !== 'object' || ctx.body === null) return
  ctx.body = { ...ctx.body, scopes_supported: TOLD_SCOPES, response_modes_supported: ['query'] }
}
