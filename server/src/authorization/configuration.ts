import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { Fault } from '../kernel/fault.ts'
import { type AdapterFactoryParts, AUTHORIZE_PATH, createAdapter, markedHash } from './adapter.ts'
import { AUTH_METHODS } from './client-metadata.ts'
import type { Documents } from './documents.ts'
import type { Resources } from './resources.ts'
import { OWN_SCOPES, SCOPES_OF } from './scopes.ts'
import { SIGNING_ALGORITHM, type SigningKey } from './signing-keys.ts'

const DAY_SECONDS = 24 * 3_600
export const ACCESS_TOKEN_SECONDS = 3_600
const CODE_SECONDS = 60
const DEVICE_CODE_SECONDS = 600
/** For as long as somebody may take who has to make an account first. */
const INTERACTION_SECONDS = 3_600
/** Without use; and never longer than its grant. */
const REFRESH_SECONDS = 30 * DAY_SECONDS
const CLOCKS_DIFFER_SECONDS = 5
const DOCUMENT_CACHED_SECONDS = { min: 60, max: DAY_SECONDS }

export const PATHS = {
  authorization: AUTHORIZE_PATH,
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  device_authorization: '/oauth/device',
  code_verification: '/device',
  jwks: '/oauth/keys',
} as const
export const CONSENT_PATH = '/consent'

/** The client by which operators ask what a token is. */
export const OPERATOR_CLIENT = 'operator'

export const COOKIES = { session: 'fb_oauth', interaction: 'fb_consent', resume: 'fb_resume' } as const

type Parts = AdapterFactoryParts & {
  readonly resources: Resources
  readonly keys: readonly SigningKey[]
  /** Null where egress is closed: then no client can point to a document. */
  readonly documents: Documents | null
  /** Null where operators may not ask what a token is. */
  readonly operatorSecret: string | null
  readonly renderError: NonNullable<Configuration['renderError']>
}

export function createConfiguration(parts: Parts): Configuration {
  const { issuer, keys, operatorSecret, renderError, documents } = parts
  const isSecure = issuer.startsWith('https:')
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isSecure, signed: false, overwrite: true } as const
  return {
    adapter: createAdapter(parts),
    jwks: { keys: keys.map(({ kid, jwk }) => ({ ...jwk, kid, use: 'sig', alg: SIGNING_ALGORITHM })) },
    clients: operatorSecret === null ? [] : [operator(operatorSecret)],
    routes: { ...PATHS },
    cookies: { names: { ...COOKIES }, short: cookie, long: cookie },
    interactions: { url: (_ctx, { uid }) => `${CONSENT_PATH}/${uid}` },
    responseTypes: ['code'],
    scopes: [...OWN_SCOPES],
    claims: { openid: ['sub'] },
    clientAuthMethods: [...AUTH_METHODS],
    clientDefaults: { id_token_signed_response_alg: SIGNING_ALGORITHM },
    enabledJWA: { idTokenSigningAlgValues: [SIGNING_ALGORITHM] },
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    clockTolerance: CLOCKS_DIFFER_SECONDS,
    ttl: {
      AuthorizationCode: CODE_SECONDS,
      DeviceCode: DEVICE_CODE_SECONDS,
      Interaction: INTERACTION_SECONDS,
      Session: INTERACTION_SECONDS,
      IdToken: ACCESS_TOKEN_SECONDS,
      // A token ends with its grant, and its client is told so.
      AccessToken: (ctx) => secondsWithin(ctx.oidc.entities.Grant?.remainingTTL, ACCESS_TOKEN_SECONDS),
      Grant: REFRESH_SECONDS,
      RefreshToken: (ctx) => secondsWithin(ctx.oidc.entities.Grant?.remainingTTL ?? 1, REFRESH_SECONDS),
    },
    // Public clients have nothing else to show that a token is theirs.
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    // A consent is for the request that it was given to, and never found again for another.
    async loadExistingGrant({ oidc }) {
      const grantId = oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : oidc.provider.Grant.find(grantId)
    },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    clientBasedCORS: () => false,
    renderError,
    ...(documents !== null && { fetch: documents.fetch }),
    features: featuresOf(parts),
  }
}

function featuresOf({ resources, documents, operatorSecret }: Parts): Configuration['features'] {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    registration: { enabled: true, initialAccessToken: false, issueRegistrationAccessToken: false },
    revocation: {
      enabled: true,
      allowedPolicy: (_ctx, client, token) => client.clientId === token.clientId,
    },
    introspection: {
      enabled: operatorSecret !== null,
      allowedPolicy: (_ctx, client) => client.clientId === OPERATOR_CLIENT,
    },
    deviceFlow: { enabled: true, charset: 'base-20', mask: '****-****' },
    ...(documents !== null && {
      clientIdMetadataDocument: {
        enabled: true,
        ack: 'draft-02',
        allowFetch: (_ctx, clientId) => documents.mayFetch(clientId).catch(tooMany),
        allowClient: () => true,
        cacheDuration: DOCUMENT_CACHED_SECONDS,
      },
    }),
    resourceIndicators: {
      enabled: true,
      defaultResource(ctx, _client, several) {
        const found = several?.[0] ?? resources.unnamed?.audience
        if (found === undefined && isNewRequest(ctx)) throw new errors.InvalidTarget('resource is required')
        return found ?? []
      },
      useGrantedResource: () => true,
      getResourceServerInfo(ctx, identifier) {
        const resource = resources.named(identifier)
        if (resource === undefined) throw new errors.InvalidTarget('there is no such resource here')
        if (isNewRequest(ctx)) requireScope(ctx.oidc.params, resources)
        return {
          scope: SCOPES_OF[resource.name].join(' '),
          audience: resource.audience,
          accessTokenTTL: ACCESS_TOKEN_SECONDS,
          accessTokenFormat: 'opaque',
        }
      },
    },
  }
}

const TOO_MANY = 429

/** The library takes what is none of its errors for one of ours. */
function tooMany(error: unknown): never {
  if (!(error instanceof Fault) || error.status !== TOO_MANY) throw error
  const refusal = new errors.CustomOIDCProviderError('temporarily_unavailable', error.message)
  throw Object.assign(refusal, { status: TOO_MANY, statusCode: TOO_MANY })
}

/** Whether a client asks for something that a person is to decide about. */
function isNewRequest({ oidc: { route } }: KoaContextWithOIDC): boolean {
  return route === 'authorization' || route === 'device_authorization'
}

/** A grant is for something: who asks for none of what there is would be allowed nothing, and is told so before a person is asked. */
function requireScope(params: KoaContextWithOIDC['oidc']['params'], resources: Resources): void {
  const { scopes } = resources.asked(params?.resource, params?.scope)
  if (scopes.length === 0) throw new errors.InvalidScope('no scope of the resource is asked for', String(params?.scope))
}

function secondsWithin(remaining: number | undefined, most: number): number {
  return Math.max(1, Math.min(most, remaining ?? most))
}

function operator(secret: string) {
  return {
    client_id: OPERATOR_CLIENT,
    client_secret: markedHash(secret),
    ...{ redirect_uris: [], grant_types: [], response_types: [] },
    token_endpoint_auth_method: 'client_secret_basic' as const,
  }
}
