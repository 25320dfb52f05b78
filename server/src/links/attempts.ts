import { hash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { Sealed } from '../storage/reseal.ts'

/** A link that a key has begun and its user has not decided on yet. */
export type Attempt = {
  readonly credentialId: Id
  readonly upstreamId: Id
  readonly state: string
  readonly verifier: string
  readonly scopes: readonly string[]
  readonly redirectUri: string
}

/** Three hexadecimal digits of the shard, by which the edge finds the cell, and 256 random bits. */
const STATE = /^[0-9a-f]{3}[A-Za-z0-9_-]{43}$/
const RANDOM_BYTES = 32
const boundTo = (credentialId: Id) => `link ${credentialId} verifier`
export const hashOf = (text: string) => hash('sha256', text, 'buffer')
export const randomText = () => randomBytes(RANDOM_BYTES).toString('base64url')

/** Where they are kept. */
export const VERIFIERS: Sealed = {
  what: 'links under way',
  table: 'link_attempts',
  key: 'credential_id',
  column: 'verifier',
  boundTo,
}

type New = Omit<Attempt, 'state' | 'verifier'> & { readonly lifeSeconds: number }

/** Begins a link. Another one that the same key has under way is over with it. */
export async function beginAttempt(
  pool: pg.Pool,
  seal: Seal,
  attempt: New,
): Promise<Attempt & { readonly expiresAt: Date }> {
  const { credentialId, upstreamId, scopes, redirectUri, lifeSeconds } = attempt
  const shard = await shardOf(pool, credentialId)
  const state = shard.toString(16).padStart(3, '0') + randomText()
  const verifier = randomText()
  const { rows } = await pool.query(
    `insert into link_attempts as row (credential_id, upstream_id, state_hash, verifier, scopes, redirect_uri, expires_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7))
     on conflict (credential_id) do update set upstream_id = excluded.upstream_id, state_hash = excluded.state_hash,
       verifier = excluded.verifier, scopes = excluded.scopes, redirect_uri = excluded.redirect_uri,
       expires_at = excluded.expires_at, used_at = null, decided_at = null
     returning expires_at`,
    [
      credentialId,
      upstreamId,
      hashOf(state),
      seal.seal(new Secret(verifier), boundTo(credentialId)),
      scopes,
      redirectUri,
      lifeSeconds,
    ],
  )
  const { expires_at: expiresAt } = z.object({ expires_at: z.date() }).parse(rows[0])
  return { credentialId, upstreamId, scopes, redirectUri, state, verifier, expiresAt }
}

async function shardOf(pool: pg.Pool, credentialId: Id): Promise<number> {
  const { rows } = await pool.query('select shard from workspaces where id = workspace_of(one => $1)', [credentialId])
  return z.object({ shard: z.int() }).parse(rows[0]).shard
}

const row = z.object({
  credential_id: z.string(),
  upstream_id: z.string(),
  verifier: z.instanceof(Buffer),
  scopes: z.array(z.string()),
  redirect_uri: z.string(),
  is_first: z.boolean(),
  is_alive: z.boolean(),
  is_active: z.boolean(),
})

export type TakenAttempt = Attempt | 'unknown' | 'used' | 'expired'

/** Takes the link that a state belongs to: the first who brings it has it, and nobody after that. */
export async function takeAttempt(pool: pg.Pool, seal: Seal, state: string): Promise<TakenAttempt> {
  if (!STATE.test(state)) return 'unknown'
  const { rows } = await pool.query(
    `with found as (select * from link_attempts where state_hash = $1),
     taken as (
       update link_attempts set used_at = clock_timestamp() where state_hash = $1 and used_at is null returning credential_id
     )
     select found.*, exists (select from taken) as is_first, found.expires_at > clock_timestamp() as is_alive,
       coalesce(credentials.active, false) as is_active
     from found left join credentials on credentials.id = found.credential_id`,
    [hashOf(state)],
  )
  const found = row.optional().parse(rows[0])
  if (found === undefined || !found.is_active) return 'unknown'
  if (!found.is_first) return 'used'
  if (!found.is_alive) return 'expired'
  const { credential_id: credentialId, upstream_id: upstreamId, scopes, redirect_uri: redirectUri } = found
  const verifier = seal.open(found.verifier, boundTo(credentialId)).reveal()
  return { credentialId, upstreamId, scopes, redirectUri, state, verifier }
}

/** Takes what a user decides about a link whose state was taken: `used` where that was decided before, `unknown` where the key has begun another. */
export async function decideAttempt(
  pool: pg.Pool,
  credentialId: Id,
  stateHash: Buffer,
): Promise<'decided' | 'used' | 'unknown'> {
  const { rows } = await pool.query(
    `with found as (select from link_attempts where credential_id = $1 and state_hash = $2),
     decided as (
       update link_attempts set decided_at = clock_timestamp()
       where credential_id = $1 and state_hash = $2 and used_at is not null and decided_at is null returning 1
     )
     select exists (select from found) as is_known, exists (select from decided) as is_first`,
    [credentialId, stateHash],
  )
  const { is_known: isKnown, is_first: isFirst } = decidedRow.parse(rows[0])
  return isFirst ? 'decided' : isKnown ? 'used' : 'unknown'
}

const decidedRow = z.object({ is_known: z.boolean(), is_first: z.boolean() })

/** Forgets links that nobody finished. */
export async function forgetAttempts(pool: pg.Pool): Promise<void> {
  await pool.query("delete from link_attempts where expires_at < clock_timestamp() - interval '1 day'")
}
