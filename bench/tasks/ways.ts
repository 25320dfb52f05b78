import type pg from 'pg'
import { z } from 'zod'
import { YOUNG_SECONDS } from '../../server/src/tasks/poller.ts'

/** What the poller takes at once, and for how long it is its own. */
export const AT_ONCE = 128
export const LEASE_SECONDS = 6
const EVERY_SECONDS = { least: 3, most: 5 }

const claimed = z.object({ id: z.string(), state: z.string() })
export type Claimed = z.output<typeof claimed>

/** One way to take tasks that are due, and to say when they are due again. */
export type Way = {
  readonly claim: (client: pg.Client) => Promise<Claimed[]>
  readonly reschedule: (client: pg.Client, tasks: readonly Claimed[]) => Promise<void>
}

/** As the poller does. */
export const ours: Way = {
  async claim(client) {
    const { rows } = await client.query(
      'select id, account_id, upstream_id, slot, mode, upstream_task, state from claim_tasks($1, $2)',
      [AT_ONCE, LEASE_SECONDS],
    )
    return z.array(claimed).parse(rows)
  },
  async reschedule(client, tasks) {
    await client.query('select reschedule_tasks_at($1, $2, $3, $4, $5)', [...columns(tasks), [], YOUNG_SECONDS])
  },
}

/**
 * The plainest statements that take each task once and keep its order, on the same table. They are told which upstream and
 * which age to look for, so that the table's index is theirs too; they know no pace, no shares and no other upstream.
 * They go round the upstreams, and are young as often as told: by chance a short run asks for what is used up.
 */
export function createBare(upstreams: readonly string[], youngPart: number): Way {
  let claims = 0
  return {
    async claim(client) {
      const upstream = upstreams[claims % upstreams.length]
      const turn = Math.floor(claims / upstreams.length)
      const young = Math.floor((turn + 1) * youngPart) > Math.floor(turn * youngPart)
      claims += 1
      const { rows } = await client.query(
        `update tasks set next_poll_at = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
         where id in (
           select id from tasks where upstream_id = $1 and is_young = $2 and next_poll_at <= now()
           order by next_poll_at limit $3 for update skip locked
         )
         returning id, account_id, upstream_id, slot, mode, upstream_task, state`,
        [upstream, young, AT_ONCE],
      )
      return z.array(claimed).parse(rows)
    },
    async reschedule(client, tasks) {
      await client.query(
        `update tasks set state = item.state, next_poll_at = clock_timestamp() + make_interval(secs => item.wait)
         from unnest($1::uuid[], $2::text[], $3::double precision[]) item (id, state, wait)
         where tasks.id = item.id`,
        columns(tasks),
      )
    },
  }
}

function columns(tasks: readonly Claimed[]): [string[], string[], number[]] {
  const wait = () => EVERY_SECONDS.least + Math.random() * (EVERY_SECONDS.most - EVERY_SECONDS.least)
  return [tasks.map(({ id }) => id), tasks.map(({ state }) => state), tasks.map(wait)]
}
