import type pg from 'pg'
import { z } from 'zod'
import { hashOf } from '../people/tokens.ts'
import type { Query } from '../storage/transaction.ts'
import type { Payload } from './states.ts'

/**
 * The last good document of every client that a person allowed. A host that is down for a while logs nobody out: what it said last still
 * holds, within bounds.
 */
export type KeptDocuments = ReturnType<typeof createKeptDocuments>

/** As long as a refresh token lasts without use. */
const KEPT_DAYS = 30
/** Of those that no person has allowed, which are forgotten the oldest first. */
const UNCONFIRMED = 1_000
const UNCONFIRMED_HOURS = 2
const AT_ONCE = 500

export function createKeptDocuments({ pool }: { readonly pool: pg.Pool }) {
  return {
    async keep(url: string, metadata: Payload): Promise<void> {
      await pool.query(
        `insert into oauth_documents (hash, metadata) values ($1, $2)
         on conflict (hash) do update set metadata = excluded.metadata, fetched_at = clock_timestamp()`,
        [hashOf(url), JSON.stringify(metadata)],
      )
      await pool.query(
        `delete from oauth_documents where hash in (
           select hash from oauth_documents where confirmed_at is null order by fetched_at desc offset $1 limit $2
           for update skip locked)`,
        [UNCONFIRMED, AT_ONCE],
      )
    },

    async find(url: string): Promise<Payload | null> {
      const { rows } = await pool.query(
        `select metadata from oauth_documents
         where hash = $1 and fetched_at > clock_timestamp() - make_interval(days => $2)`,
        [hashOf(url), KEPT_DAYS],
      )
      return rows[0] === undefined ? null : row.parse(rows[0]).metadata
    },

    /** A person has allowed its client, in the transaction of the grant. */
    async confirm(query: Query, url: string): Promise<void> {
      await query(
        'update oauth_documents set confirmed_at = coalesce(confirmed_at, clock_timestamp()) where hash = $1',
        [hashOf(url)],
      )
    },

    /** How many were forgotten. */
    async prune(): Promise<number> {
      const { rowCount } = await pool.query(
        `delete from oauth_documents where hash in (
           select hash from oauth_documents where fetched_at < clock_timestamp() - case when confirmed_at is null
             then make_interval(hours => $1) else make_interval(days => $2) end limit $3 for update skip locked)`,
        [UNCONFIRMED_HOURS, KEPT_DAYS, AT_ONCE],
      )
      return rowCount ?? 0
    },
  }
}

const row = z.object({ metadata: z.record(z.string(), z.unknown()) })
