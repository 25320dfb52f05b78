import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { z } from 'zod'
import { type Metric, median, metric } from '../bench.ts'
import { openTasks } from './open-tasks.ts'
import { AT_ONCE, LEASE_SECONDS, ours } from './ways.ts'

const UPSTREAMS = 2
const YOUNG_PART = 1 / 3
const QUOTA = 20
const TICK_MS = 100
/** One batch of so many is taken by somebody who dies before rescheduling it. */
const DIES_IN = 10
const LONG_LEASE_SECONDS = 3_600
const TICKS_OF_NOTHING = 50

const poll = z.object({
  id: z.string(),
  state: z.string(),
  upstream: z.string(),
  young: z.boolean(),
  /** Its place among those of its upstream and age, by when they were due. */
  place: z.coerce.number(),
  claimedAt: z.coerce.number(),
})
type Poll = z.output<typeof poll>

/** Everything is overdue and each upstream has its quota: who is asked for, and when. Afterwards, whether all are there. */
export async function keepPace(
  workers: readonly pg.Client[],
  { tasks, seconds }: { readonly tasks: number; readonly seconds: number },
  progress: (line: string) => void,
): Promise<Metric[]> {
  const [first] = workers
  if (first === undefined) throw new Error('a pace needs workers')
  await openTasks(first, { tasks, upstreams: UPSTREAMS, youngPart: YOUNG_PART, quota: QUOTA })
  const untilMs = performance.now() + seconds * 1_000
  const polls = (await Promise.all(workers.map((client) => work(client, untilMs)))).flat()
  progress(`${polls.length} questions in ${seconds} s, to ${UPSTREAMS} upstreams with ${QUOTA}/s each`)
  await sleep((LEASE_SECONDS + 0.5) * 1_000)
  const lost = tasks - (await claimEverything(first, tasks))
  return [...metricsOf(polls, seconds, lost), await claimOfNothing(first)]
}

async function work(client: pg.Client, untilMs: number): Promise<Poll[]> {
  const polls: Poll[] = []
  let batches = Math.floor(Math.random() * DIES_IN)
  while (performance.now() < untilMs) {
    const nextMs = performance.now() + TICK_MS
    const { rows } = await client.query(
      `select id, state, upstream_id as upstream, is_young as young, substr(upstream_task, 2) as place,
         extract(epoch from next_poll_at - make_interval(secs => $2)) as "claimedAt"
       from claim_tasks($1, $2)`,
      [AT_ONCE, LEASE_SECONDS],
    )
    const claimed = z.array(poll).parse(rows)
    if (claimed.length > 0) {
      polls.push(...claimed)
      batches += 1
      if (batches % DIES_IN !== 0) await ours.reschedule(client, claimed)
    }
    await sleep(Math.max(0, nextMs - performance.now()))
  }
  return polls
}

/** Once every lease and every wait is over, all are due: how many different ones come, without a quota, with their hold. */
async function claimEverything(client: pg.Client, tasks: number): Promise<number> {
  await client.query('update upstreams set polls_per_second = null')
  const seen = new Set<string>()
  for (let round = 0; round <= tasks; round += 1) {
    const { rows } = await client.query(
      'select claimed.id from claim_tasks($1, $2) claimed join holds using (id) where ended_at is null',
      [AT_ONCE, LONG_LEASE_SECONDS],
    )
    if (rows.length === 0) break
    for (const { id } of z.array(z.object({ id: z.string() })).parse(rows)) seen.add(id)
  }
  return seen.size
}

/** What each tick costs while all are open and none is due, beside a statement that does nothing. */
async function claimOfNothing(client: pg.Client): Promise<Metric> {
  const times = { claim: [] as number[], nothing: [] as number[] }
  for (let at = 0; at < TICKS_OF_NOTHING; at += 1) {
    let startedMs = performance.now()
    await client.query('select 1')
    times.nothing.push(performance.now() - startedMs)
    startedMs = performance.now()
    const claimed = await ours.claim(client)
    times.claim.push(performance.now() - startedMs)
    if (claimed.length > 0) throw new Error('something was due after all')
  }
  return metric('claim_of_nothing', median(times.claim), 'ms', { baseline: median(times.nothing), goal: '<= 5' })
}

function metricsOf(polls: readonly Poll[], seconds: number, lost: number): Metric[] {
  const byUpstream = [...Map.groupBy(polls, ({ upstream }) => upstream).values()]
  if (byUpstream.length !== UPSTREAMS) throw new Error(`only ${byUpstream.length} upstreams were asked`)
  const least = (value: (some: readonly Poll[]) => number) => Math.min(...byUpstream.map(value))
  const most = Math.max(...byUpstream.map(mostInASecond))
  const passedOver = byUpstream.flatMap((some) => [true, false].map((age) => outOfOrder(some, age)))
  return [
    metric('polls_in_any_second', most, 'polls', { baseline: QUOTA, goal: `<= ${QUOTA}` }),
    metric(
      'quota_used',
      least((some) => some.length / seconds / QUOTA),
      'x',
      { goal: '>= 0.8' },
    ),
    metric(
      'young_share',
      least((some) => shareOf(some, true)),
      'x',
      { goal: '>= 0.6' },
    ),
    metric(
      'old_share',
      least((some) => shareOf(some, false)),
      'x',
      { goal: '>= 0.15' },
    ),
    metric('passed_over', Math.max(...passedOver), 'tasks', { goal: '<= 0' }),
    metric('lost', Math.abs(lost), 'tasks', { goal: '<= 0' }),
  ]
}

/** The most that begin within one second, wherever it begins. */
function mostInASecond(polls: readonly Poll[]): number {
  const times = polls.map(({ claimedAt }) => claimedAt).sort((a, b) => a - b)
  let from = 0
  return times.reduce((most, time, at) => {
    while (time - (times[from] ?? time) >= 1) from += 1
    return Math.max(most, at - from + 1)
  }, 0)
}

function shareOf(polls: readonly Poll[], age: boolean): number {
  return polls.filter(({ young }) => young === age).length / polls.length
}

/** How many were asked for though one that was due before them was not yet. None was asked for twice in the time. */
function outOfOrder(polls: readonly Poll[], age: boolean): number {
  const ofAge = polls.filter(({ young }) => young === age).sort((a, b) => a.claimedAt - b.claimedAt)
  const batches = [...Map.groupBy(ofAge, ({ claimedAt }) => claimedAt).values()]
  let before = 0
  return batches.reduce((count, batch) => {
    before += batch.length
    return count + batch.filter(({ place }) => place > before).length
  }, 0)
}
