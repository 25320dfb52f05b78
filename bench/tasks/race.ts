import type pg from 'pg'
import type { Postgres } from '../../harness/postgres.ts'
import { type Metric, median, metric } from '../bench.ts'
import { treeCpuMicroseconds } from '../cpu.ts'
import { openTasks } from './open-tasks.ts'
import { AT_ONCE, createBare, ours, type Way } from './ways.ts'

const UPSTREAMS = 4
/** As many of them as we prefer, so that neither way runs out of one age before the other. */
const YOUNG_PART = 0.75
/** So much of what is due at first goes through each way: nothing has to become due again for the race to go on. */
const PART_OF_EACH = 0.3

type Turn = { readonly tasks: number; readonly seconds: number; readonly cpuUs: number }
type Round = { readonly ours: Turn; readonly bare: Turn }

/** Claims and reschedules in batches, by several workers at once: through our functions and by hand, turn by turn. */
export async function race(
  postgres: Postgres,
  workers: readonly pg.Client[],
  { tasks, rounds: count }: { readonly tasks: number; readonly rounds: number },
  progress: (line: string) => void,
): Promise<Metric[]> {
  const [first] = workers
  if (first === undefined) throw new Error('a race needs workers')
  await openTasks(first, { tasks, upstreams: UPSTREAMS, youngPart: YOUNG_PART, quota: null })
  const { rows } = await first.query<{ id: string }>('select id from upstreams')
  const bare = createBare(
    rows.map(({ id }) => id),
    YOUNG_PART,
  )
  const batches = Math.max(workers.length, Math.floor((tasks * PART_OF_EACH) / AT_ONCE / (count + 1)))
  const turn = (way: Way) => takeTurn(postgres, workers, way, batches)

  await turn(ours)
  await turn(bare)
  const rounds: Round[] = []
  for (let at = 0; at < count; at += 1) {
    // Who goes first changes, as the one who goes second finds what the first left behind.
    if (at % 2 === 0) rounds.push({ ours: await turn(ours), bare: await turn(bare) })
    else {
      const first = await turn(bare)
      rounds.push({ ours: await turn(ours), bare: first })
    }
    progress(`round ${at + 1} of ${count}: ${summary(rounds.at(-1))}`)
  }
  return metricsOf(rounds)
}

async function takeTurn(postgres: Postgres, workers: readonly pg.Client[], way: Way, batches: number): Promise<Turn> {
  const cpuUs = treeCpuMicroseconds(postgres.pid())
  const startedMs = performance.now()
  let left = batches
  let tasks = 0
  const worker = async (client: pg.Client) => {
    while (left > 0) {
      left -= 1
      const claimed = await way.claim(client)
      await way.reschedule(client, claimed)
      tasks += claimed.length
    }
  }
  await Promise.all(workers.map(worker))
  if (tasks < 0.5 * batches * AT_ONCE) throw new Error(`too little was due: ${tasks} in ${batches} batches`)
  return {
    tasks,
    seconds: (performance.now() - startedMs) / 1_000,
    cpuUs: treeCpuMicroseconds(postgres.pid()) - cpuUs,
  }
}

function metricsOf(rounds: readonly Round[]): Metric[] {
  const middle = (way: keyof Round) => median(rounds.map((round) => rate(round[way])))
  const ratio = median(rounds.map((round) => rate(round.ours) / rate(round.bare)))
  return [
    metric('claims', middle('ours'), 'tasks/s'),
    metric('claim_ratio_bare', ratio, 'x', { baseline: middle('bare'), goal: '>= 0.8' }),
    metric('pg_us_per_task', cpuPerTask(rounds, 'ours'), 'us', { baseline: cpuPerTask(rounds, 'bare') }),
  ]
}

function rate({ tasks, seconds }: Turn): number {
  return tasks / seconds
}

/** Over all rounds together: the kernel counts in ticks that are long beside a turn. */
function cpuPerTask(rounds: readonly Round[], way: keyof Round): number {
  const sum = (value: (turn: Turn) => number) => rounds.reduce((total, round) => total + value(round[way]), 0)
  return sum(({ cpuUs }) => cpuUs) / sum(({ tasks }) => tasks)
}

function summary(round: Round | undefined): string {
  if (round === undefined) return ''
  return `ours ${Math.round(rate(round.ours))}, bare ${Math.round(rate(round.bare))} tasks/s`
}
