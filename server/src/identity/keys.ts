import { z } from 'zod'
import { type Budget, budgetFacts, makeAllowance } from '../budgets/budgets.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Secret } from '../kernel/secret.ts'
import { type By, difference, record } from '../storage/audit.ts'
import { inTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { requireUnstopped } from '../workspaces/stops.ts'
import { hashOf, makeKey, parseCredential } from './key-format.ts'
import { type Place, placeForKey } from './key-places.ts'
import {
  changed,
  NO_TERMS,
  TERMS_COLUMNS,
  type TermsChange,
  termsFacts,
  termsPlaces,
  termsValues,
} from './key-terms.ts'
import { changeOf, expiryFacts, lockKey, memberWith, tell } from './locked-key.ts'
import { operatorTermsAfter } from './operator-terms.ts'
import { requireTicket } from './tickets.ts'

type Parts = { readonly pool: Transactions; readonly ids: Ids }

export type NewKey = {
  readonly workspaceId: Id
  readonly mode: Mode
  readonly name: string
  readonly expiresAt?: Date
  readonly budget?: Budget
  /** The member whose it is: the member's budget bounds it. */
  readonly memberId?: Id
  /** The grant whose client is told the secret. */
  readonly grantId?: Id
  /** Whether it is given away: then it has a total and an end. */
  readonly isTicket?: boolean
} & TermsChange

/** The secret is told here once and never again. */
export type IssuedKey = { readonly id: Id; readonly secret: Secret }

export async function createKey({ pool, ids }: Parts, by: By, key: NewKey): Promise<IssuedKey> {
  const { workspaceId, mode, name, expiresAt = null, budget = null, memberId = null, grantId = null } = key
  const { isTicket = false } = key
  const terms = changed(NO_TERMS, key)
  if (isTicket) requireTicket({ budget, expiresAt, scopes: terms.scopes })
  const id = ids.next()
  return inTransaction(pool, async (query) => {
    const { shard, accountId } = await lockForNewKey(query, workspaceId, mode)
    const member = await memberWith(query, workspaceId, memberId)
    const secret = makeKey(id, mode, shard)
    await query('insert into credentials (id, account_id) values ($1, $2)', [id, accountId])
    const allowanceId = budget === null ? null : await makeAllowance(query, ids, accountId, budget)
    const after = {
      name,
      mode,
      ...termsFacts(terms),
      ...expiryFacts(expiresAt),
      ...budgetFacts(budget),
      ...(isTicket && { isTicket }),
      ...(memberId !== null && { memberId }),
    }
    await query(
      `insert into api_keys (id, workspace_id, name, hash, expires_at, allowance_id, member_id, member_person, member_email, grant_id, is_ticket, operator_terms, ${TERMS_COLUMNS})
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, ${termsPlaces(13)})`,
      [
        ...[id, workspaceId, name, hashOf(secret), expiresAt, allowanceId],
        ...[memberId, member.personId, member.email, grantId, isTicket],
        ...[operatorTermsAfter(by, [], { before: {}, after }), ...termsValues(terms)],
      ],
    )
    await record(query, by, { action: 'key.created', of: workspaceId, subject: id, before: null, after })
    // Somebody may have been refused with this id a moment ago.
    await tell(query, id)
    return { id, secret }
  })
}

/** Locks the workspace, so that two new keys at once do not both take the last place. */
async function lockForNewKey(query: Query, workspaceId: Id, mode: Mode): Promise<Place> {
  await query('select from workspaces where id = $1 for no key update', [workspaceId])
  // For operators too: it would be revoked with the others, or be there after them.
  await requireUnstopped(query, workspaceId)
  return placeForKey(query, workspaceId, mode)
}

type Rotation = {
  /** The grant whose client is told the secret. */
  readonly grantId?: Id | null
  /** Whether the one before the old one works until its own overlap is over. Without any overlap both end. */
  readonly keepsOlder?: boolean
}

/** Gives the key a new secret. The old one works until the overlap is over; of one before it nothing is left, unless it is to be kept. */
export async function rotateKey(
  { pool }: Parts,
  by: By,
  id: Id,
  overlapSeconds = 24 * 3_600,
  { grantId = null, keepsOlder = false }: Rotation = {},
): Promise<Secret> {
  return inTransaction(pool, async (query) => {
    const { mode, shard, isRevoked } = await lockKey(query, id)
    if (isRevoked) throw new Fault('resource_not_found', { detail: `Key ${id} is revoked. Create a new one.` })
    const secret = makeKey(id, mode, shard)
    await query(
      `update api_keys set previous_hash = hash, previous_until = clock_timestamp() + make_interval(secs => $2), hash = $3, grant_id = $4,
         older_hash = case when $5 and previous_until > clock_timestamp() then previous_hash end,
         older_until = case when $5 and previous_until > clock_timestamp() and previous_hash is not null then previous_until end
       where id = $1`,
      [id, overlapSeconds, hashOf(secret), grantId, keepsOlder && overlapSeconds > 0],
    )
    await record(query, by, { ...changeOf(id, 'rotated'), before: {}, after: { overlapSeconds } })
    await tell(query, id)
    return secret
  })
}

/**
 * From its commit on, no paid call begins with the key, on any process: calls begin under the account's lock, and so is this
 * done. A second later it is unknown everywhere.
 */
export async function revokeKey({ pool }: Parts, by: By, id: Id): Promise<void> {
  await inTransaction(pool, (query) => revokeWithin(query, by, id))
}

/** The same, together with whatever else its transaction does. */
export async function revokeWithin(query: Query, by: By, id: Id): Promise<void> {
  const { isRevoked } = await lockKey(query, id)
  await query('update credentials set active = false where id = $1', [id])
  await query('update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = $1', [id])
  await record(query, by, { ...changeOf(id, 'revoked'), ...difference({ isRevoked }, { isRevoked: true }) })
  await tell(query, id)
}

const secretRow = z.object({ is_current: z.boolean(), is_previous: z.boolean(), is_older: z.boolean() })

/**
 * Ends a secret that somebody found. Where it is the current one, its key ends with it; one before the last rotation, which works until
 * its overlap is over, ends alone.
 */
export async function revokeSecret(
  { pool }: Parts,
  by: By,
  secret: Secret,
): Promise<{ readonly id: Id; readonly ended: 'key' | 'previous' }> {
  const parsed = parseCredential(secret)
  if (parsed === undefined || parsed.kind === 'at')
    throw invalidRequest('This is not a secret of an API key of this installation. Check it.')
  const { id, hash } = parsed
  // Calls of the account wait for its lock, so nobody takes it who does not have the secret.
  await requireSecret(queryOn(pool), id, hash)
  return inTransaction(pool, async (query) => {
    await lockKey(query, id)
    const { rows } = await query(
      `select hash = $2 and revoked_at is null as is_current,
         coalesce(previous_hash = $2 and previous_until > clock_timestamp(), false) and revoked_at is null as is_previous,
         coalesce(older_hash = $2 and older_until > clock_timestamp(), false) and revoked_at is null as is_older
       from api_keys where id = $1`,
      [id, hash],
    )
    const found = secretRow.optional().parse(rows[0])
    if (found?.is_current === true) {
      await revokeWithin(query, by, id)
      return { id, ended: 'key' } as const
    }
    if (found?.is_previous !== true && found?.is_older !== true) throw overAlready(id)
    const which = found.is_previous ? 'previous' : 'older'
    await query(`update api_keys set ${which}_hash = null, ${which}_until = null where id = $1`, [id])
    const facts = difference({ hasPreviousSecret: true }, { hasPreviousSecret: false })
    await record(query, by, { ...changeOf(id, 'secret_revoked'), ...facts })
    await tell(query, id)
    return { id, ended: 'previous' } as const
  })
}

async function requireSecret(query: Query, id: Id, hash: Buffer): Promise<void> {
  const { rows } = await query('select from api_keys where id = $1 and $2 in (hash, previous_hash, older_hash)', [
    id,
    hash,
  ])
  if (rows.length === 0) throw overAlready(id)
}

function overAlready(id: Id): Fault {
  return new Fault('resource_not_found', {
    detail: `This secret of key ${id} is already invalid. Nothing has to be done.`,
  })
}
