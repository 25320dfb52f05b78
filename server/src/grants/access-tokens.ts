import type pg from 'pg'
import { z } from 'zod'
import { audienceOf, isOAuthScope, type OAuthScope } from '../identity/resources.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { type By, record } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { changeOf } from './grants.ts'

/** Access tokens, issued under grants. What is known of one is its hash; the token itself goes to its client and nowhere else. */

export type NewAccessToken = {
  readonly grantId: Id
  /** `hashOf` the token that `makeAccessToken` made for this grant. */
  readonly hash: Buffer
  /** One of the grant's. */
  readonly audience: string
  /** Some of the grant's. */
  readonly scopes: readonly OAuthScope[]
  /** It ends with its grant at the latest. */
  readonly expiresAt: Date
}

/** Live tokens of one grant. With one more, the oldest falls. */
export const TOKENS_OF_GRANT = 20

export function issueAccessToken(pool: pg.Pool, by: By, token: NewAccessToken): Promise<void> {
  return inTransaction(pool, (query) => issueAccessTokenWithin(query, by, token))
}

const grantRow = z.object({
  audiences: z.array(z.string()),
  scopes: z.array(z.string()),
  isActive: z.boolean(),
})

const issuedRows = z.tuple([z.object({ expiresAt: z.date() })])

/** The same, together with whatever else its transaction does. Throws where the grant is revoked or does not allow it. */
export async function issueAccessTokenWithin(query: Query, by: By, token: NewAccessToken): Promise<void> {
  const { grantId, hash, scopes, expiresAt } = token
  const audience = audienceOf(token.audience)
  // Locked, so that a revocation comes before this or takes the token with it.
  const { rows } = await query(
    `select audiences, oauth_scopes as scopes, revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) as "isActive"
     from grants where id = $1 for no key update`,
    [grantId],
  )
  const grant = grantRow.optional().parse(rows[0])
  if (grant?.isActive !== true)
    throw new Fault('resource_not_found', { detail: `There is no active grant ${grantId}.` })
  if (!grant.audiences.includes(audience))
    throw new Fault('forbidden', { detail: `The grant does not include the audience ${audience}.` })
  const foreign = scopes.find((scope) => !grant.scopes.includes(scope))
  if (foreign !== undefined)
    throw new Fault('forbidden', { detail: `The grant does not include the scope ${foreign}.` })
  const issued = await query(
    `insert into access_tokens (hash, grant_id, audience, oauth_scopes, expires_at)
     select $1, id, $3, $4, least($5, expires_at) from grants where id = $2 returning expires_at as "expiresAt"`,
    [hash, grantId, audience, [...new Set(scopes)], expiresAt],
  )
  await dropOldest(query, grantId)
  const [{ expiresAt: endsAt }] = issuedRows.parse(issued.rows)
  const after = { audience, scopes, expiresAt: endsAt.toISOString() }
  await record(query, by, { ...changeOf(grantId, 'token_issued'), before: null, after })
  await tell(query, hash)
}

async function dropOldest(query: Query, grantId: Id): Promise<void> {
  const { rows } = await query(
    `delete from access_tokens where grant_id = $1 and (expires_at <= clock_timestamp() or hash in (
       select hash from access_tokens where grant_id = $1 and expires_at > clock_timestamp()
       order by created_at desc, hash offset $2)) returning hash`,
    [grantId, TOKENS_OF_GRANT],
  )
  for (const { hash } of hashRows.parse(rows)) await tell(query, hash)
}

const hashRows = z.array(z.object({ hash: z.instanceof(Buffer) }))
const grantIdRow = z.object({ grant_id: z.string() })

/**
 * Ends one token: a second later it is unknown everywhere. Where no paid call may begin from this very moment, revoke the grant. False
 * where there is no such token.
 */
export function revokeAccessToken(pool: pg.Pool, by: By, hash: Buffer): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows } = await query('delete from access_tokens where hash = $1 returning grant_id', [hash])
    const found = grantIdRow.optional().parse(rows[0])
    if (found === undefined) return false
    const change = { before: { isRevoked: false }, after: { isRevoked: true } }
    await record(query, by, { ...changeOf(found.grant_id, 'token_revoked'), ...change })
    await tell(query, hash)
    return true
  })
}

/** Every process forgets what it knows of a token. */
async function tell(query: Query, hash: Buffer): Promise<void> {
  await query("select record_change(topic => 'token', key => $1)", [hash.toString('hex')])
}

const foundToken = z.object({
  grantId: z.string(),
  workspaceId: z.string(),
  personId: z.string(),
  clientId: z.string(),
  audience: z.string(),
  scopes: z.array(z.string()).transform((texts) => texts.filter(isOAuthScope)),
  issuedAt: z.date(),
  expiresAt: z.date(),
})

export type FoundAccessToken = Readonly<z.output<typeof foundToken>>

/** A token that is good now, for introspection; null for every other. */
export async function findAccessToken(pool: pg.Pool, hash: Buffer): Promise<FoundAccessToken | null> {
  const { rows } = await pool.query(
    `select t.grant_id as "grantId", g.workspace_id as "workspaceId", g.person_id as "personId", g.client_id as "clientId",
       t.audience, t.oauth_scopes as scopes, t.created_at as "issuedAt", t.expires_at as "expiresAt"
     from access_tokens t join grants g on g.id = t.grant_id join credentials c on c.id = g.id
     where t.hash = $1 and t.expires_at > clock_timestamp() and g.revoked_at is null and c.active
       and (g.expires_at is null or g.expires_at > clock_timestamp())`,
    [hash],
  )
  return foundToken.optional().parse(rows[0]) ?? null
}

const PORTION = 500

/** Deletes tokens that have expired. How many those were. */
export async function pruneAccessTokens(pool: pg.Pool): Promise<number> {
  return inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `delete from access_tokens where hash in (
         select hash from access_tokens where expires_at < clock_timestamp() limit $1 for update skip locked)`,
      [most],
    )
    return rowCount ?? 0
  })
}
