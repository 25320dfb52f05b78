import { type AdapterPayload, errors, Provider } from 'oidc-provider'
import type pg from 'pg'
import { findAccessToken, issueAccessToken } from '../grants/access-tokens.ts'
import { endGrantOnce, findGrant } from '../grants/grants.ts'
import { hashOf, parseCredential } from '../identity/key-format.ts'
import { isOAuthScope } from '../identity/resources.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import type { Attempts } from '../people/attempts.ts'
import type { By } from '../storage/audit.ts'
import type { Query } from '../storage/transaction.ts'
import { takeRefresh } from './limits.ts'
import { rememberShard, visitorOfRequest } from './request-notes.ts'
import type { Resources } from './resources.ts'
import { isScopeOf, OWN_SCOPES } from './scopes.ts'
import type { States } from './states.ts'

/**
 * Grants and their tokens as the library knows them. Identity has them, and what identity says is so: a grant that has ended is unknown
 * here, whatever codes and refresh tokens are left of it.
 */
export type GrantBook = ReturnType<typeof createGrantBook>

type Parts = {
  readonly pool: pg.Pool
  readonly states: States
  readonly resources: Resources
  readonly attempts: Pick<Attempts, 'take'>
  /** Tells the person whose grant it was that somebody else had its token, where that commits. */
  readonly tellReuse: (query: Query, grantId: Id, address: string) => Promise<void>
}

export function createGrantBook({ pool, states, resources, attempts, tellReuse }: Parts) {
  /** First the grant: what is left of it is worth nothing from then on, also where we die before it is gone. */
  async function end(grantId: string, also?: (query: Query) => Promise<void>): Promise<void> {
    if (!isId(grantId)) return
    await endGrantOnce(pool, byGrant(grantId), grantId, also)
    await states.forgetGrant(grantId)
  }

  return {
    async find(id: string): Promise<AdapterPayload | undefined> {
      const grant = isId(id) ? await findGrant(pool, id) : null
      if (grant === null || !grant.isActive) return undefined
      rememberShard(Provider.ctx?.req, grant.shard)
      const { personId, clientId, audiences, oauthScopes, createdAt, expiresAt } = grant
      const scopesFor = (audience: string) => {
        const name = resources.named(audience)?.name
        return name === undefined ? [] : oauthScopes.filter((scope) => isScopeOf(name, scope))
      }
      return {
        ...{ jti: id, kind: 'Grant', accountId: personId, clientId },
        ...{ iat: secondsOf(createdAt), exp: secondsOf(expiresAt ?? FAR) },
        resources: Object.fromEntries(audiences.map((audience) => [audience, scopesFor(audience).join(' ')])),
        openid: { scope: OWN_SCOPES.join(' ') },
      }
    },

    async issue(token: string, { grantId, aud, scope }: AdapterPayload, seconds: number): Promise<void> {
      if (grantId === undefined || typeof aud !== 'string') throw new errors.InvalidTarget()
      const scopes = (scope ?? '').split(' ').filter(isOAuthScope)
      const expiresAt = new Date(Date.now() + seconds * 1_000)
      try {
        const issued = { grantId, hash: hashOf(new Secret(token)), audience: aud, scopes, expiresAt }
        await issueAccessToken(pool, byGrant(grantId), issued)
      } catch (error) {
        // It has ended since it was looked at.
        if (error instanceof Fault) throw new errors.InvalidGrant('the grant has ended')
        throw error
      }
    },

    async findToken(token: string): Promise<AdapterPayload | undefined> {
      const hash = hashOfAccessToken(token)
      const found = hash === null ? null : await findAccessToken(pool, hash)
      if (found === null) return undefined
      const { grantId, personId, clientId, audience, scopes, issuedAt, expiresAt } = found
      return {
        ...{ jti: token, kind: 'AccessToken', format: 'opaque', grantId, accountId: personId, clientId },
        ...{ aud: audience, scope: scopes.join(' '), iat: secondsOf(issuedAt), exp: secondsOf(expiresAt) },
      }
    },

    /** Ends the grant with it, all at once: whoever revokes a token means both. */
    async endToken(token: string): Promise<void> {
      const parsed = parseCredential(new Secret(token))
      if (parsed?.kind === 'at') await end(parsed.id)
    },

    /** Refuses one more refresh where there were too many. */
    async takeRefresh(grantId: Id): Promise<void> {
      await takeRefresh(attempts, grantId).catch((error: unknown) => {
        throw error instanceof Fault ? tooMany(error) : error
      })
    },

    end: (grantId: string) => end(grantId),

    /** The refresh token of a grant came again, long after it was taken. */
    endReused: (grantId: Id) =>
      end(grantId, (query) => tellReuse(query, grantId, visitorOfRequest(Provider.ctx?.req).address)),
  }
}

/** A limit as the library tells it. */
function tooMany({ message, retryAfterSeconds = 60 }: Fault): Error {
  Provider.ctx?.set('retry-after', String(retryAfterSeconds))
  const error = new errors.CustomOIDCProviderError('temporarily_unavailable', message)
  return Object.assign(error, { status: 429, statusCode: 429 })
}

/** Beyond what anybody keeps a token for. */
const FAR = new Date('2100-01-01T00:00:00Z')

function secondsOf(at: Date): number {
  return Math.floor(at.getTime() / 1_000)
}

function hashOfAccessToken(token: string): Buffer | null {
  const parsed = parseCredential(new Secret(token))
  return parsed?.kind === 'at' ? parsed.hash : null
}

function byGrant(grantId: Id): By {
  const { address, agent } = visitorOfRequest(Provider.ctx?.req)
  const origin = { via: 'http', address, ...(agent !== '' && { userAgent: agent }) }
  return { actor: `member ${grantId}`, origin }
}
