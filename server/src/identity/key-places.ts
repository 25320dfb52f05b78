import { z } from 'zod'
import { KEYS_PER_TIER } from '../catalogue/tiers.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Query } from '../storage/transaction.ts'
import { TIER_COLUMNS, tierIn, tierRow } from '../workspaces/tier.ts'
import { noSuchThing } from './locked-key.ts'

/** Windows of a key, by which its limits are counted. */
const WINDOW_SECONDS = 60

/** Where a new key goes, in a workspace that is locked. */
export type Place = { readonly shard: number; readonly accountId: Id }

const placesRow = tierRow.extend({
  shard: z.int(),
  account_id: z.string(),
  mode: z.enum(['live', 'test']),
  keys: z.int(),
  grants: z.int(),
  ended: z.int(),
  wait: z.int().nullable(),
})

/** Keys that are not revoked, and grants that may spend, of an account: each has limits of its own. */
const PLACES = `
  select w.shard, ${TIER_COLUMNS}, live.paid, own.id as account_id, own.mode,
    ended_keys.places + ended_grants.places as ended, least(ended_keys.free_in_seconds, ended_grants.free_in_seconds) as wait,
    (select count(*)::integer from api_keys k join credentials c on c.id = k.id
     where k.workspace_id = w.id and c.account_id = own.id and k.revoked_at is null) as keys,
    (select count(*)::integer from grants g join credentials c on c.id = g.id
     where g.workspace_id = w.id and c.account_id = own.id and g.allowance_id is not null and g.revoked_at is null
       and (g.expires_at is null or g.expires_at > clock_timestamp())) as grants
  from accounts own join workspaces w on own.id in (w.live_account_id, w.test_account_id)
  join accounts live on live.id = w.live_account_id
  cross join places_of_ended_keys(of_workspace => w.id, of_account => own.id, window_seconds => $2, are_grants => false) ended_keys
  cross join places_of_ended_keys(of_workspace => w.id, of_account => own.id, window_seconds => $2, are_grants => true) ended_grants
  where own.id = $1`

/**
 * Refuses another key, or another grant that may spend, where as many as the tier allows have a place. One that ended keeps it until its window is over and its calls have
 * ended: so an account never has more than the limits of that many keys, however often they are made anew. Their account is locked, so that of two the first has the last place.
 */
async function placeIn(query: Query, accountId: Id): Promise<Place> {
  await query('select from accounts where id = $1 for no key update', [accountId])
  const { rows } = await query(PLACES, [accountId, WINDOW_SECONDS])
  const row = placesRow.parse(rows[0])
  const { shard, mode, keys, grants, ended, wait } = row
  const limit = KEYS_PER_TIER[tierIn(row).tier]
  const beside = grants === 0 ? '' : ` and ${grants} grants that may spend`
  const has = `The workspace has ${keys} ${mode} keys${beside}; the limit of its tier is ${limit}.`
  if (keys + grants >= limit)
    throw new Fault('quota_exceeded', { detail: `${has} Revoke one, or move to a higher tier.` })
  if (keys + grants + ended >= limit) throw inUse(`${has} ${ended} more`, wait)
  return { shard, accountId }
}

/** In a workspace that is locked. */
export async function placeForKey(query: Query, workspaceId: Id, mode: Mode): Promise<Place> {
  const { rows } = await query(
    "select case $2 when 'live' then live_account_id else test_account_id end as id from workspaces where id = $1",
    [workspaceId, mode],
  )
  if (rows[0] === undefined) throw noSuchThing('workspace', workspaceId)
  return placeIn(query, accountRow.parse(rows[0]).id)
}

const accountRow = z.object({ id: z.string() })

/** For a grant that may spend from now on. */
export async function requireGrantPlace(query: Query, accountId: Id): Promise<void> {
  await placeIn(query, accountId)
}

function inUse(more: string, wait: number | null): Fault {
  const retryAfterSeconds = Math.max(1, wait ?? WINDOW_SECONDS)
  const detail = `${more} were in use less than a minute ago, or have calls that run. Retry in ${retryAfterSeconds} s.`
  return new Fault('rate_limit_exceeded', { detail, retryAfterSeconds })
}
