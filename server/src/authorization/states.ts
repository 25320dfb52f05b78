import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { hashOf } from '../people/tokens.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Query } from '../storage/transaction.ts'

/**
 * What the authorization server remembers between two requests. Every operation is one statement, so that a process may die before or
 * after it and never within.
 */
export type States = ReturnType<typeof createStates>

export type State = {
  readonly payload: Payload
  readonly createdAt: Date
  /** When it was first taken; null for never. */
  readonly consumedAt: Date | null
  /** Whether it was taken so short a time ago, and so seldom, that it may be taken again. */
  readonly isInGrace: boolean
}

export type Payload = Readonly<Record<string, unknown>>

type Answered = {
  readonly result: Payload
  /** A hash of the session. */
  readonly decidedBy: string
}

type Kept = {
  readonly payload: Payload
  readonly seconds: number
  readonly grantId?: Id | undefined
  readonly userCode?: string | undefined
  /** Of a stranger who asks for it. */
  readonly network?: Buffer | undefined
}

/** How many rows strangers may have: of one network, and of all. */
export type Crowd = { readonly ofNetwork: number; readonly all: number }

/** How many more are forgotten than have to be, where there are too many: a hundredth, so that not everybody who comes ranks them all. */
export function roomIn(most: number): number {
  return Math.floor(most / 100)
}

/** How often and for how long a value may be taken again after the first time. */
export type Grace = { readonly seconds: number; readonly most: number }

/** One time, and never again. */
export const ONCE: Grace = { seconds: 0, most: 1 }

const AT_ONCE = 500

export function createStates({ pool }: { readonly pool: pg.Pool }) {
  const ask: Query = (text, values = []) => pool.query(text, [...values])

  return {
    /** A value that is kept already is changed, but stays taken where it was. */
    async keep(kind: string, value: string, { payload, seconds, grantId, userCode, network }: Kept): Promise<void> {
      await pool.query(
        `insert into oauth_states (kind, hash, payload, grant_id, user_code, expires_at, network)
         values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7)
         on conflict (kind, hash) do update
         set payload = excluded.payload, grant_id = excluded.grant_id, expires_at = excluded.expires_at`,
        [
          ...[kind, hashOf(value), JSON.stringify(payload), grantId ?? null],
          ...[userCode === undefined ? null : hashOf(userCode), seconds, network ?? null],
        ],
      )
    },

    async find(kind: string, value: string, grace: Grace = ONCE): Promise<State | null> {
      const { rows } = await pool.query(
        `select payload, created_at, consumed_at,
           consumed_at > clock_timestamp() - make_interval(secs => $3) and taken < $4 as is_in_grace
         from oauth_states where kind = $1 and hash = $2 and expires_at > clock_timestamp()`,
        [kind, hashOf(value), grace.seconds, grace.most],
      )
      return rows[0] === undefined ? null : found.parse(rows[0])
    },

    /** False where somebody else has taken it before, unless that was within its grace. */
    async take(kind: string, value: string, grace: Grace = ONCE): Promise<boolean> {
      const { rowCount } = await pool.query(
        `update oauth_states set consumed_at = coalesce(consumed_at, clock_timestamp()), taken = taken + 1
         where kind = $1 and hash = $2 and expires_at > clock_timestamp() and (consumed_at is null
           or (consumed_at > clock_timestamp() - make_interval(secs => $3) and taken < $4))`,
        [kind, hashOf(value), grace.seconds, grace.most],
      )
      return rowCount === 1
    },

    /** False where it was not there any more. */
    async forget(kind: string, value: string): Promise<boolean> {
      const text = 'delete from oauth_states where kind = $1 and hash = $2'
      const { rowCount } = await pool.query(text, [kind, hashOf(value)])
      return rowCount === 1
    },

    /** Of those of a grant that nobody has taken, so many stay. What was taken stays too, so that it is known when it comes again. */
    async forgetOldest(kind: string, grantId: Id, most: number): Promise<void> {
      await pool.query(
        `delete from oauth_states where (kind, hash) in (
           select kind, hash from oauth_states where grant_id = $2 and kind = $1 and consumed_at is null
           order by created_at desc, hash offset $3)`,
        [kind, grantId, most],
      )
    },

    /** Beyond these bounds the oldest fall: of the network itself, and of all from the networks that have the most. */
    async forgetCrowd(kind: string, network: Buffer, { ofNetwork, all }: Crowd): Promise<void> {
      await pool.query(
        `delete from oauth_states where (kind, hash) in (
           select kind, hash from oauth_states where kind = $1 and network = $2 order by created_at desc offset $3)`,
        [kind, network, ofNetwork],
      )
      await pool.query(
        `delete from oauth_states where (kind, hash) in (
           select kind, hash from (
             select kind, hash, created_at, row_number() over (partition by network order by created_at desc) as nth
             from oauth_states where kind = $1 and network is not null) ranked
           order by nth desc, created_at
           limit (select case when count(*) > $2::bigint then count(*) - $2::bigint + $3::bigint else 0 end
             from oauth_states where kind = $1 and network is not null))`,
        [kind, all, roomIn(all)],
      )
    },

    async forgetGrant(grantId: Id): Promise<void> {
      await pool.query('delete from oauth_states where grant_id = $1', [grantId])
    },

    /** Writes down what a person has answered to what waits for it, and in which session, once. False where it was answered before. */
    async answer(uid: string, { result, decidedBy }: Answered, query: Query = ask): Promise<boolean> {
      const { rowCount } = await query(
        `update oauth_states set payload = payload || jsonb_build_object('result', $2::jsonb, 'decidedBy', $3::text),
           consumed_at = clock_timestamp(), taken = taken + 1
         where kind = 'Interaction' and hash = $1 and expires_at > clock_timestamp() and consumed_at is null`,
        [hashOf(uid), JSON.stringify(result), decidedBy],
      )
      return rowCount === 1
    },

    /** What a person typed for a device; null for what nobody waits with any more. */
    async findByUserCode(userCode: string): Promise<Pick<State, 'payload' | 'createdAt'> | null> {
      const { rows } = await pool.query(
        `select payload, created_at, consumed_at, false as is_in_grace from oauth_states
         where kind = 'DeviceCode' and user_code = $1 and expires_at > clock_timestamp() and consumed_at is null
           and not payload ?| array['accountId', 'error']`,
        [hashOf(userCode)],
      )
      return rows[0] === undefined ? null : found.parse(rows[0])
    },

    /** Adds what a person has decided to what waits for it, once. False where it was decided before. */
    async decide(userCode: string, decision: Payload, grantId: Id | null, query: Query = ask): Promise<boolean> {
      const { rowCount } = await query(
        `update oauth_states set payload = payload || $2::jsonb, grant_id = $3
         where kind = 'DeviceCode' and user_code = $1 and expires_at > clock_timestamp() and consumed_at is null
           and not payload ?| array['accountId', 'error']`,
        [hashOf(userCode), JSON.stringify(decision), grantId],
      )
      return rowCount === 1
    },

    /** How many that were. What was taken is kept for its whole time, so that it is known when it comes again. */
    prune(): Promise<number> {
      return inPortions(AT_ONCE, async (most) => {
        const { rowCount } = await pool.query(
          `delete from oauth_states where (kind, hash) in (
             select kind, hash from oauth_states where expires_at < clock_timestamp() limit $1 for update skip locked)`,
          [most],
        )
        return rowCount ?? 0
      })
    },
  }
}

const found = z
  .object({
    payload: z.record(z.string(), z.unknown()),
    created_at: z.date(),
    consumed_at: z.date().nullable(),
    is_in_grace: z.boolean().nullable(),
  })
  .transform((row) => ({
    payload: row.payload,
    createdAt: row.created_at,
    consumedAt: row.consumed_at,
    isInGrace: row.is_in_grace === true,
  }))
