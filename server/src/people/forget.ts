import type pg from 'pg'
import { inPortions } from '../storage/in-portions.ts'
import { WRITES_KEPT_HOURS } from './account-writes.ts'

/** What is kept no longer: people who never confirmed, and whatever has run out. */

const AT_ONCE = 500

/** Each deletes at most $1 rows. Links of a sign-up are kept for as long as the person: they can be asked for again. */
const PORTIONS = [
  `delete from people where id in (
     select id from people where verified_at is null and created_at < clock_timestamp() - interval '1 day'
       and not exists (select from mailed_links link where link.person_id = people.id and link.expires_at > clock_timestamp())
     limit $1 for update skip locked) and verified_at is null`,
  `delete from mailed_links where hash in (
     select hash from mailed_links where expires_at < clock_timestamp() - interval '1 day' limit $1 for update skip locked)`,
  `delete from browser_sessions where id in (
     select id from browser_sessions where expires_at < clock_timestamp() - interval '1 day' limit $1 for update skip locked)`,
  `delete from remembered_browsers where hash in (
     select hash from remembered_browsers where expires_at < clock_timestamp() limit $1 for update skip locked)`,
  `delete from invitations where id in (
     select id from invitations where expires_at < clock_timestamp() - interval '30 days' limit $1 for update skip locked)`,
  `delete from exports where id in (
     select id from exports where expires_at < clock_timestamp() - interval '30 days' limit $1 for update skip locked)`,
  `delete from account_writes where (person_id, key) in (
     select person_id, key from account_writes where written_at < clock_timestamp() - interval '${WRITES_KEPT_HOURS} hours'
     limit $1 for update skip locked)`,
  `delete from door_attempts where (kind, key) in (
     select kind, key from door_attempts where ends_at < clock_timestamp() limit $1 for update skip locked)`,
]

/** How many rows that were. */
export async function forgetUnconfirmed(pool: pg.Pool): Promise<number> {
  let all = 0
  for (const statement of PORTIONS)
    all += await inPortions(AT_ONCE, async (most) => (await pool.query(statement, [most])).rowCount ?? 0)
  return all
}
