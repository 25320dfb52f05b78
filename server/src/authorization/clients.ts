import type pg from 'pg'
import { z } from 'zod'
import { inPortions } from '../storage/in-portions.ts'
import type { Query } from '../storage/transaction.ts'
import { type Payload, roomIn } from './states.ts'

/** Clients that registered themselves: how many are kept, and for how long. */
export type Clients = ReturnType<typeof createClients>

export type ClientBounds = {
  /** Registrations that no person has allowed, of all and of one network: beyond it the oldest of those that have the most are forgotten. */
  readonly unconfirmed: number
  readonly unconfirmedOfNetwork: number
}

const BOUNDS: ClientBounds = { unconfirmed: 10_000, unconfirmedOfNetwork: 50 }
const UNCONFIRMED_DAYS = 1
/** Longer than a refresh token lives. */
const UNUSED_DAYS = 32
const AT_ONCE = 500
const ID = /^[\w~.-]{1,200}$/
/** More than one, so that what several processes add at once is forgotten as fast as it comes. */
const FORGOTTEN_AT_ONCE = 20

/** Deletes the oldest of a network that no person has allowed, where there are more than $1 of them. The index alone says which. */
const FORGET_OF_NETWORK = `delete from oauth_clients where id in (
  select id from oauth_clients where confirmed_at is null and network = $2 and created_at <= (
    select created_at from oauth_clients where confirmed_at is null and network = $2
    order by created_at desc offset $1 limit 1)
  limit ${FORGOTTEN_AT_ONCE} for update skip locked)`

/**
 * The same for all, where there are more than $1: first from networks that have the most, so that who floods us pushes out what is
 * their own and not whoever waits for a person. To rank all of them takes time, so $2 more go with them, and the next ones find room.
 */
const FORGET_OF_ALL = `delete from oauth_clients where id in (
  select id from oauth_clients where id in (
    select id from (
      select id, created_at, row_number() over (partition by network order by created_at desc) as nth
      from oauth_clients where confirmed_at is null) ranked
    order by nth desc, created_at
    limit (select case when count(*) > $1::bigint then least(${FORGOTTEN_AT_ONCE}, count(*) - $1::bigint) + $2::bigint else 0 end
      from oauth_clients where confirmed_at is null))
  and confirmed_at is null for update skip locked)`

const FORGET_UNCONFIRMED = `delete from oauth_clients where id in (
  select id from oauth_clients where confirmed_at is null
    and created_at < clock_timestamp() - interval '${UNCONFIRMED_DAYS} days' limit $1 for update skip locked)`

const IS_UNUSED = `confirmed_at is not null and used_at < clock_timestamp() - interval '${UNUSED_DAYS} days'`

/** Which of some clients have a grant that is active. */
export type HaveGrants = (ids: readonly string[]) => Promise<ReadonlySet<string>>

export function createClients({ pool, bounds = BOUNDS }: { readonly pool: pg.Pool; readonly bounds?: ClientBounds }) {
  async function pruneUnused(most: number, haveGrants: HaveGrants): Promise<number> {
    const { rows } = await pool.query(`select id from oauth_clients where ${IS_UNUSED} order by used_at limit $1`, [
      most,
    ])
    const ids = idRows.parse(rows).map(({ id }) => id)
    const held = await haveGrants(ids)
    // Looked at again in as many days, and not before the others.
    await pool.query('update oauth_clients set used_at = clock_timestamp() where id = any($1)', [[...held]])
    // One that a person allows meanwhile is in use.
    await pool.query(`delete from oauth_clients where id = any($1) and ${IS_UNUSED}`, [ids])
    return ids.length
  }

  return {
    async add(id: string, metadata: Payload, network: Buffer): Promise<void> {
      await pool.query('insert into oauth_clients (id, metadata, network) values ($1, $2, $3)', [
        ...[id, JSON.stringify(metadata), network],
      ])
      await pool.query(FORGET_OF_NETWORK, [bounds.unconfirmedOfNetwork, network])
      await pool.query(FORGET_OF_ALL, [bounds.unconfirmed, roomIn(bounds.unconfirmed)])
    },

    async find(id: string): Promise<Payload | null> {
      // In a header it may be anything, and PostgreSQL takes no zero byte.
      if (!ID.test(id)) return null
      const { rows } = await pool.query('select metadata from oauth_clients where id = $1', [id])
      return rows[0] === undefined ? null : row.parse(rows[0]).metadata
    },

    /** A person has allowed it, in the transaction of the grant. False where it was forgotten meanwhile. */
    async confirm(query: Query, id: string): Promise<boolean> {
      const { rowCount } = await query(
        `update oauth_clients set confirmed_at = coalesce(confirmed_at, clock_timestamp()), used_at = clock_timestamp()
         where id = $1`,
        [id],
      )
      return rowCount === 1
    },

    /** It has got a token. Written once a day. */
    async used(id: string): Promise<void> {
      await pool.query(
        `update oauth_clients set used_at = clock_timestamp()
         where id = $1 and used_at < clock_timestamp() - interval '1 day'`,
        [id],
      )
    },

    /** How many were looked at: those without use are forgotten, unless a grant of theirs is active. */
    async prune(haveGrants: HaveGrants): Promise<number> {
      const unconfirmed = await inPortions(AT_ONCE, async (most) => {
        return (await pool.query(FORGET_UNCONFIRMED, [most])).rowCount ?? 0
      })
      return unconfirmed + (await inPortions(AT_ONCE, (most) => pruneUnused(most, haveGrants)))
    },
  }
}

const row = z.object({ metadata: z.record(z.string(), z.unknown()) })
const idRows = z.array(z.object({ id: z.string() }))
