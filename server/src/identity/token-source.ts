import { timingSafeEqual } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Cache, createCache } from '../storage/cache.ts'
import {
  CREDENTIAL_JOINS,
  CREDENTIAL_ROW,
  CREDENTIAL_SELECT,
  type Credential,
  credentialIn,
  type Source,
  type SourceParts,
} from './credential.ts'
import type { Parsed } from './key-format.ts'
import { ASKS_ROW, ASKS_SELECT, asksIn } from './mandate-terms.ts'
import type { Resource } from './resources.ts'

/**
 * Access tokens, by their hashes, and grants, by their ids. They are kept apart: a change of a grant concerns all its tokens, and a
 * new token, of which nobody has to be told, is found by its own hash, whatever is known of its grant.
 */
export function createTokenSource({ pool, time, maxEntries, ...shared }: SourceParts): Source {
  const tokens: Cache<TokenRecord> = createCache({
    ...shared,
    name: 'tokens',
    topic: 'token',
    load: (hash) => loadToken(pool, hash),
    maxEntries,
  })
  const grants: Cache<GrantRecord> = createCache({
    ...shared,
    name: 'grants',
    topic: 'key',
    load: (id) => loadGrant(pool, id),
    maxEntries,
  })
  type Known = { readonly grant: GrantRecord; readonly resource: Resource; readonly credential: Credential }
  const credentials = new WeakMap<TokenRecord, Known>()

  function credentialOf(token: TokenRecord, grant: GrantRecord, resource: Resource): Credential {
    const known = credentials.get(token)
    if (known?.grant === grant && known.resource === resource) return known.credential
    const { isRevoked: _, mandate, ...rest } = grant
    const mayCall = resource.callScope !== null && token.scopes.includes(resource.callScope)
    const mayReadAccount = token.scopes.includes('account.read')
    const credential = { ...rest, isTicket: false, token: { mayCall, mayReadAccount, mandate } }
    credentials.set(token, { grant, resource, credential })
    return credential
  }

  return {
    peek(given, resource) {
      const token = tokens.peek(given.hash.toString('hex'))
      const grant = grants.peek(given.id)
      if (token === undefined || grant === undefined) return undefined
      return matches({ given, token, grant, resource, nowMs: time.nowMs() })
        ? credentialOf(token, grant, resource)
        : undefined
    },
    async lookUp(given, resource) {
      const [token, grant] = await Promise.all([tokens.reload(given.hash.toString('hex')), grants.reload(given.id)])
      const found = { given, token: token ?? NO_TOKEN, grant: grant ?? NO_GRANT, resource, nowMs: time.nowMs() }
      const isRight = matches(found)
      return isRight && token !== undefined && grant !== undefined ? credentialOf(token, grant, resource) : undefined
    },
  }
}

type TokenLock = Pick<TokenRecord, 'hash' | 'grantId' | 'audience' | 'expiresAtMs'>
type GrantLock = Pick<GrantRecord, 'isRevoked' | 'expiresAtMs'>

/** What is compared with where there is nothing to compare with, so that the same work is done. */
const NO_TOKEN: TokenLock = { hash: Buffer.alloc(32), grantId: '', audience: '', expiresAtMs: 0 }
const NO_GRANT: GrantLock = { isRevoked: true, expiresAtMs: null }

type Compared = {
  readonly given: Parsed
  readonly token: TokenLock
  readonly grant: GrantLock
  readonly resource: Resource
  readonly nowMs: number
}

function matches({ given, token, grant, resource, nowMs }: Compared): boolean {
  const isToken = timingSafeEqual(given.hash, token.hash)
  const isOfGrant = token.grantId === given.id
  const isForHere = token.audience === resource.audience
  const isAlive = nowMs < token.expiresAtMs
  const isGranted = !grant.isRevoked && nowMs < (grant.expiresAtMs ?? Number.POSITIVE_INFINITY)
  return isToken && isOfGrant && isForHere && isAlive && isGranted
}

const tokenRow = z
  .object({
    hash: z.instanceof(Buffer),
    grant_id: z.string(),
    audience: z.string(),
    oauth_scopes: z.array(z.string()),
    expires_at: z.date(),
  })
  .transform((row) => ({
    hash: row.hash,
    grantId: row.grant_id,
    audience: row.audience,
    scopes: row.oauth_scopes,
    expiresAtMs: row.expires_at.getTime(),
  }))

type TokenRecord = z.output<typeof tokenRow>

/** Asks for the last token up to this hash, as for keys: one that is unknown takes as long as one that has expired. */
async function loadToken(pool: pg.Pool, hash: string): Promise<TokenRecord | undefined> {
  const { rows } = await pool.query({
    name: 'load_token',
    text: `select hash, grant_id, audience, oauth_scopes, expires_at from access_tokens
      where hash <= decode($1, 'hex') order by hash desc limit 1`,
    values: [hash],
  })
  const token = rows[0] && tokenRow.parse(rows[0])
  return token?.hash.toString('hex') === hash ? token : undefined
}

const grantRow = z
  .object({ ...CREDENTIAL_ROW, ...ASKS_ROW })
  .transform((row) => ({ ...credentialIn(row), mandate: { ...asksIn(row), isPaused: row.is_paused } }))

type GrantRecord = z.output<typeof grantRow>

async function loadGrant(pool: pg.Pool, id: Id): Promise<GrantRecord | undefined> {
  const { rows } = await pool.query({
    name: 'load_grant',
    text: `select ${CREDENTIAL_SELECT}, ${ASKS_SELECT},
        k.person_id as member_person, (select email from people where people.id = k.person_id) as member_email
      from (select * from grants where id <= $1 order by id desc limit 1) k
      ${CREDENTIAL_JOINS}`,
    values: [id],
  })
  const grant = rows[0] && grantRow.parse(rows[0])
  return grant?.id === id ? grant : undefined
}
