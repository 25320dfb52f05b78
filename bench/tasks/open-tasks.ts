import type pg from 'pg'

/** How many tasks there are, at how many upstreams, and which part of them is young. */
export type OpenTasks = {
  readonly tasks: number
  readonly upstreams: number
  readonly youngPart: number
  /** How many questions a second each upstream takes; null where nobody counts. */
  readonly quota: number | null
}

const ACCOUNTS = 1_000
const HOLD = 1_000_000

/**
 * Open tasks with their holds, all of them overdue, in place of those that were there. What was due first at its upstream
 * among those of its age is named y1 or o1 there, the next y2 or o2. Young ones lie ahead in time, so that they stay young in the run.
 */
export async function openTasks(client: pg.Client, { tasks, upstreams, youngPart, quota }: OpenTasks): Promise<void> {
  // Not even the audit log, which refers to accounts and lets nobody truncate it.
  await client.query(
    'begin; set local session_replication_role = replica; truncate upstreams, upstream_polls, tasks, holds, accounts cascade; commit',
  )
  await client.query(
    `insert into upstreams (id, slot, mode, base_url, kind, polls_per_second)
     select gen_random_uuid(), 'video.bench', 'live', 'http://127.0.0.1:9', 'native', $2
     from generate_series(1, $1::integer)`,
    [upstreams, quota],
  )
  await client.query(
    `insert into accounts (id, mode, credited, held)
     select gen_random_uuid(), 'live', 2 * each.held, each.held
     from generate_series(1, ${ACCOUNTS}) at cross join lateral (
       select ${HOLD} * (($1::bigint - at) / ${ACCOUNTS} + 1) as held
     ) each
     where at <= $1`,
    [tasks],
  )
  await client.query(
    `insert into tasks (id, account_id, credential_id, model, state, upstream_id, slot, mode, upstream_task,
       created_at, scheduled_at, next_poll_at, is_young)
     select (lpad(to_hex(floor(extract(epoch from now()) * 1000)::bigint + at), 12, '0') || '7' || substr(md5(at::text), 1, 3)
         || '8' || substr(md5(at::text), 4, 15))::uuid,
       payer.id, gen_random_uuid(), 'bench-video', 'RUNNING', asked.id, 'video.bench', 'live', case when young then 'y' else 'o' end || place,
       now() + case when young then interval '1 hour' else interval '-1 hour' end,
       now() - interval '1 hour',
       now() - interval '1 hour' + place * interval '10 milliseconds',
       young
     from (
       select at, upstream, young, row_number() over (partition by upstream, young order by random()) as place
       from generate_series(1, $1::integer) at cross join lateral (
         select at % $2::integer as upstream, at / $2::integer % 12 < 12 * $3::double precision as young
       ) kind
     ) task
     join (select id, row_number() over () - 1 as number from upstreams) asked on asked.number = task.upstream
     join (select id, row_number() over () - 1 as number from accounts) payer
       on payer.number = task.at % least($1, ${ACCOUNTS})
     order by at`,
    [tasks, upstreams, youngPart],
  )
  await client.query(
    `insert into holds (id, account_id, credential_id, operation, amount, terms, allowances, token_groups,
       tokens_estimated, claims, begun_at)
     select id, account_id, credential_id, 'video_synthesis', ${HOLD}, '{}', '{}', '{}', 0, false, created_at from tasks`,
  )
  await client.query('vacuum (analyze)')
}
