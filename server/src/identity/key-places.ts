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
  keys: z.int(),
  ended: z.int(),
  wait: z.int().nullable(),
})

/**
 * Refuses another key where as many as the tier allows have a place. One that ended keeps it until its window is over and its calls have ended: so an account never
 * has more than the limits of that many keys, however often they are made anew.
 */
export async function placeForKey(query: Query, workspaceId: Id, mode: Mode): Promise<Place> {
  const { rows } = await query(
    `select w.shard, ${TIER_COLUMNS}, live.paid, own.id as account_id, ended.places as ended, ended.free_in_seconds as wait,
       (select count(*)::integer from api_keys k join credentials c on c.id = k.id
        where k.workspace_id = w.id and c.account_id = own.id and k.revoked_at is null) as keys
     from workspaces w join accounts live on live.id = w.live_account_id
     join accounts own on own.id = case $2 when 'live' then w.live_account_id else w.test_account_id end
     cross join places_of_ended_keys(of_workspace => w.id, of_account => own.id, window_seconds => $3, are_grants => false) ended
     where w.id = $1`,
    [workspaceId, mode, WINDOW_SECONDS],
  )
  if (rows[0] === undefined) throw noSuchThing('workspace', workspaceId)
  const row = placesRow.parse(rows[0])
  const { shard, account_id: accountId, keys, ended, wait } = row
  const limit = KEYS_PER_TIER[tierIn(row).tier]
  const has = `The workspace has ${keys} ${mode} keys; the limit of its tier is ${limit}.`
  if (keys >= limit) throw new Fault('quota_exceeded', { detail: `${has} Revoke one, or move to a higher tier.` })
  if (keys + ended >= limit) throw inUse(`${has} ${ended} more`, wait)
  return { shard, accountId }
}

/** The same for another grant that may spend, of which a workspace has so many. */
export async function requireGrantPlace(
  query: Query,
  { workspaceId, accountId, grants, most }: { workspaceId: Id; accountId: Id; grants: number; most: number },
): Promise<void> {
  const { rows } = await query(
    'select places as ended, free_in_seconds as wait from places_of_ended_keys(of_workspace => $1, of_account => $2, window_seconds => $3, are_grants => true)',
    [workspaceId, accountId, WINDOW_SECONDS],
  )
  const { ended, wait } = placesRow.pick({ ended: true, wait: true }).parse(rows[0])
  if (grants + ended >= most)
    throw inUse(`The workspace has ${grants} active grants; the limit is ${most}. ${ended} more`, wait)
}

function inUse(more: string, wait: number | null): Fault {
  const retryAfterSeconds = Math.max(1, wait ?? WINDOW_SECONDS)
  const detail = `${more} were in use less than a minute ago, or have calls that run. Retry in ${retryAfterSeconds} s.`
  return new Fault('rate_limit_exceeded', { detail, retryAfterSeconds })
}
