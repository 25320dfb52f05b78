import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'

/** The statements of delivery: which lanes wait, who takes what up, and what became of it. */

const lanes = z.array(z.object({ lane: z.string(), kind: z.string() }))
export type Lane = z.output<typeof lanes>[number]

const taken = z.array(
  z.object({
    id: z.string(),
    kind: z.string(),
    destination: z.string(),
    lane: z.string(),
    payload: z.string().nullable(),
    sealed: z.instanceof(Buffer).nullable(),
    attempts: z.number(),
    created_at: z.date(),
  }),
)
export type Taken = z.output<typeof taken>[number]

/** The lanes that have something, in their order, behind one; each is found by one look into the index, however long it is. */
export async function lanesBehind(pool: pg.Pool, behind: string, most: number): Promise<readonly Lane[]> {
  const { rows } = await pool.query(
    `with recursive lanes as (
       (select lane, kind from outbox where due_at is not null and lane > $1 order by lane limit 1)
       union all
       select next.lane, next.kind from lanes cross join lateral (
         select outbox.lane, outbox.kind from outbox
         where outbox.due_at is not null and outbox.lane > lanes.lane order by outbox.lane limit 1
       ) next
     )
     select lane, kind from lanes limit $2`,
    [behind, most],
  )
  return lanes.parse(rows)
}

/** What may be taken up of a lane, and how long nobody else will. */
export type Room = { readonly lane: string; readonly most: number; readonly leaseSeconds: number }

/**
 * Takes up what is due, so that nobody else does while the lease lasts; nobody waits for who is just doing so. It is found by indexes
 * alone, however many others wait: the time is the statement's, since no index is asked for one that moves, and rows are named by a list,
 * since a join may read them all.
 */
export async function takeUp(pool: pg.Pool, rooms: readonly Room[], most: number): Promise<readonly Taken[]> {
  const { rows } = await pool.query(
    `update outbox set attempts = attempts + 1,
       due_at = clock_timestamp() + make_interval(secs => ($3::double precision[])[array_position($1::text[], outbox.lane)])
     where id = any (array(
       select due.id from unnest($1::text[], $2::integer[]) room (lane, most)
       cross join lateral (
         select outbox.id from outbox where outbox.lane = room.lane and outbox.due_at <= statement_timestamp()
         order by outbox.due_at limit room.most for update skip locked
       ) due
       limit $4
     ))
     returning id, kind, destination, lane, payload, sealed, attempts, created_at`,
    [
      rooms.map(({ lane }) => lane),
      rooms.map((room) => room.most),
      rooms.map(({ leaseSeconds }) => leaseSeconds),
      most,
    ],
  )
  return taken.parse(rows)
}

/** It was delivered, even if another has taken it up meanwhile. What it said is kept no longer. */
export async function markDelivered(pool: pg.Pool, id: Id): Promise<void> {
  await pool.query(
    `update outbox set delivered_at = clock_timestamp(), due_at = null, died_at = null, payload = null, sealed = null, failure = null
     where id = $1 and delivered_at is null`,
    [id],
  )
}

type Failed = { readonly id: Id; readonly attempts: number; readonly failure: string }

/** It is tried again after a while, unless another has taken it up meanwhile. */
export async function postpone(pool: pg.Pool, { id, attempts, failure }: Failed, waitMs: number): Promise<void> {
  await pool.query(
    `update outbox set due_at = clock_timestamp() + make_interval(secs => $4), failure = $3
     where id = $1 and attempts = $2 and due_at is not null`,
    [id, attempts, failure, waitMs / 1_000],
  )
}

/** It is given up, unless another has taken it up meanwhile. */
export async function bury(pool: pg.Pool, { id, attempts, failure }: Failed): Promise<void> {
  await pool.query(
    `update outbox set died_at = clock_timestamp(), due_at = null, failure = $3
     where id = $1 and attempts = $2 and due_at is not null`,
    [id, attempts, failure],
  )
}
