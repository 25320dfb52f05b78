import { type Adapter, type AdapterFactory, type AdapterPayload, errors, Provider } from 'oidc-provider'
import { hashOf } from '../people/tokens.ts'
import type { Clients } from './clients.ts'
import type { GrantBook } from './grant-book.ts'
import { browserOfRequest, networkOfRequest } from './request-notes.ts'
import { type Crowd, type Grace, ONCE, type Payload, type States } from './states.ts'

/**
 * Where the library keeps things. It hands over bearer values as ids and inside payloads: neither is ever stored, only the hash by which
 * a row is found again. Grants and access tokens are identity's; who is signed in is known to our own sessions alone.
 */

export type AdapterFactoryParts = {
  readonly states: States
  readonly clients: Clients
  readonly grants: GrantBook
  readonly issuer: string
}

/**
 * Several programs share one refresh token, and answers get lost: a token that was just taken may be taken again, within bounds. Beyond
 * that somebody else has it too.
 */
export const REFRESH_GRACE: Grace = { seconds: 120, most: 20 }

/** A device that polls several times at once gets its tokens by one of them. Later than that, somebody else has its code. */
const POLL_GRACE: Grace = { seconds: 60, most: 2 }

/** Refresh tokens of one grant that nobody has taken yet. With one more, the oldest falls. */
export const REFRESH_TOKENS_OF_GRANT = 50

/** What strangers ask for before anybody has signed in. */
const OF_STRANGERS = new Set(['Interaction', 'DeviceCode'])
export const CROWD: Crowd = { ofNetwork: 200, all: 20_000 }

const NOTHING = async () => undefined

const NOT_KEPT: Adapter = {
  upsert: NOTHING,
  find: NOTHING,
  findByUid: NOTHING,
  findByUserCode: NOTHING,
  consume: NOTHING,
  destroy: NOTHING,
  revokeByGrantId: NOTHING,
}

export function createAdapter(parts: AdapterFactoryParts): AdapterFactory {
  return (model) => {
    if (model === 'Session') return NOT_KEPT
    if (model === 'Client') return clientAdapter(parts)
    if (model === 'Grant') return grantAdapter(parts)
    if (model === 'AccessToken') return tokenAdapter(parts)
    return stateAdapter(parts, model)
  }
}

function stateAdapter({ states, grants, issuer }: AdapterFactoryParts, model: string): Adapter {
  const grace = model === 'RefreshToken' ? REFRESH_GRACE : ONCE

  return {
    ...NOT_KEPT,
    async upsert(id, payload, seconds) {
      const { grantId, userCode } = payload
      const network = OF_STRANGERS.has(model) ? networkOfRequest(Provider.ctx?.req) : undefined
      const named = { ...withoutSecrets(payload), ...nameFor(model), ...browserFor(model) }
      const kept = { payload: named, seconds: seconds ?? 0, grantId, userCode, network }
      await states.keep(model, id, kept)
      if (network !== undefined) await states.forgetCrowd(model, network, CROWD)
      if (model === 'RefreshToken' && grantId !== undefined)
        await states.forgetOldest(model, grantId, REFRESH_TOKENS_OF_GRANT)
    },
    async find(id) {
      const state = await states.find(model, id, model === 'DeviceCode' ? POLL_GRACE : grace)
      if (state === null) return undefined
      const { payload, consumedAt, isInGrace } = state
      if (model === 'DeviceCode' && isInGrace && isItsClient(payload)) throw new errors.SlowDown()
      const found = withSecrets(payload, model, id, issuer)
      if (consumedAt === null || isInGrace) return found
      // Somebody brings what was taken long ago: either they or whoever took it should not have it.
      if (model === 'RefreshToken' && isItsClient(payload)) await grants.endReused(String(payload.grantId))
      return { ...found, consumed: Math.floor(consumedAt.getTime() / 1_000) }
    },
    async consume(id) {
      const { payload } = (await states.find(model, id)) ?? {}
      // Before it is taken, so that it is good for another try.
      if (model === 'RefreshToken' && typeof payload?.grantId === 'string') await grants.takeRefresh(payload.grantId)
      if (await states.take(model, id, grace)) return
      // Another poll was first since it was found.
      if (model === 'DeviceCode') throw new errors.SlowDown()
      // Its client brings it too often, or so late that its grace ran out since it was found.
      const end = model === 'RefreshToken' ? grants.endReused : grants.end
      if (typeof payload?.grantId === 'string') await end(payload.grantId)
      throw new errors.InvalidGrant('it was used before')
    },
    async destroy(id) {
      // The token is what the next try would find: with it gone first, a death here would leave the grant.
      const { payload } = (model === 'RefreshToken' ? await states.find(model, id) : null) ?? {}
      if (typeof payload?.grantId === 'string') await grants.end(payload.grantId)
      const wasThere = await states.forget(model, id)
      // Of several that go on with one answer of a person, one gets the code.
      if (model === 'Interaction' && !wasThere) throw new errors.SessionNotFound('the request was answered before')
    },
    revokeByGrantId: (grantId) => grants.end(grantId),
  }
}

/** Only the browser that a client sent here can answer it, and go on with the answer. */
function browserFor(model: string): Payload {
  return model === 'Interaction' ? { begunBy: browserOfRequest(Provider.ctx?.req) } : {}
}

/**
 * What waits for a person has the name that its client had when it asked. The person decides about that name, whatever a document says
 * later, and nobody is asked for a document because a page is opened.
 */
function nameFor(model: string): Payload {
  if (model !== 'Interaction' && model !== 'DeviceCode') return {}
  return { clientName: Provider.ctx?.oidc.client?.clientName ?? NAMELESS }
}

const NAMELESS = 'An app without a name'

/** Whether whoever asks is the client that the value was given to: what others bring proves nothing against it. */
function isItsClient({ clientId }: Payload): boolean {
  const { route, client } = Provider.ctx?.oidc ?? {}
  return route === 'token' && client !== undefined && client.clientId === clientId
}

const SECRET_MEMBERS = ['jti', 'userCode', 'deviceCode', 'returnTo']

function withoutSecrets(payload: AdapterPayload): Payload {
  return Object.fromEntries(Object.entries(payload).filter(([name]) => !SECRET_MEMBERS.includes(name)))
}

/** Whoever finds a value has brought it. */
function withSecrets(payload: Payload, model: string, id: string, issuer: string): AdapterPayload {
  const returnTo = model === 'Interaction' ? { returnTo: `${issuer}${AUTHORIZE_PATH}/${id}` } : {}
  return { ...payload, jti: id, ...returnTo }
}

export const AUTHORIZE_PATH = '/oauth/authorize'

/** Of a client's secret only the hash is kept, and only that is compared. */
export const SECRET_MARK = 'sha256:'

export function markedHash(secret: string): string {
  return SECRET_MARK + hashOf(secret).toString('base64url')
}

function clientAdapter({ clients }: AdapterFactoryParts): Adapter {
  return {
    ...NOT_KEPT,
    async upsert(id, { client_secret: secret, ...metadata }) {
      const kept = secret === undefined ? metadata : { ...metadata, client_secret: markedHash(secret) }
      await clients.add(id, kept, networkOfRequest(Provider.ctx?.req))
    },
    async find(id) {
      return (await clients.find(id)) ?? undefined
    },
  }
}

function grantAdapter({ grants }: AdapterFactoryParts): Adapter {
  return { ...NOT_KEPT, find: grants.find, destroy: (id) => grants.end(id) }
}

function tokenAdapter({ grants }: AdapterFactoryParts): Adapter {
  return {
    ...NOT_KEPT,
    upsert: (token, payload, seconds) => grants.issue(token, payload, seconds ?? 0),
    find: grants.findToken,
    destroy: grants.endToken,
    revokeByGrantId: (grantId) => grants.end(grantId),
  }
}
