import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { endedCpuSeconds } from '../../harness/cpu-seconds.ts'
import { gatewayEnvironment, startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { buildCommit, buildThis, THIS_VERSION, type Version } from '../../harness/versions.ts'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import { treeCpuMicroseconds } from '../cpu.ts'
import { FOR_EVERY_VERSION } from '../load/installation.ts'

const ROUNDS = { full: 9, reduced: 1 }
/** What is started, and the most CPU seconds that it should take until it is ready, or has ended. */
const STARTS = {
  gateway: { goal: '<= 0.6', roles: 'gateway' },
  all_roles: { goal: '<= 0.9', roles: 'gateway,agent,site,admin,worker' },
  accounts_list: { goal: '<= 0.45', roles: undefined },
} as const
type Start = keyof typeof STARTS
const NAMES = Object.keys(STARTS) as Start[]

/** What a start costs the processor, as built; beside another version, in turn, each on a PostgreSQL of its own. */
export const run: Benchmark = async (
  progress,
  { reduced, rounds = reduced ? ROUNDS.reduced : ROUNDS.full, against },
) => {
  progress('building')
  const ours = reduced ? THIS_VERSION : buildThis()
  const other = against && buildCommit(against.commit)
  try {
    const sides = [await prepare(ours), ...(other === undefined ? [] : [await prepare(other)])]
    try {
      const rows: Record<Start, number[]>[] = sides.map(() => ({ gateway: [], all_roles: [], accounts_list: [] }))
      for (let round = 1; round <= rounds; round += 1) {
        for (const [side, { cpuOf }] of sides.entries())
          for (const name of NAMES) rows[side]?.[name].push(await cpuOf(name))
        progress(`round ${round} of ${rounds}`)
      }
      const [own, old] = rows
      return NAMES.map((name): Metric => {
        const baseline = old && { baseline: median(old[name]) }
        return metric(name, median(own?.[name] ?? []), 'CPU s', { ...baseline, goal: STARTS[name].goal })
      })
    } finally {
      for (const { stop } of sides) await stop()
    }
  } finally {
    other?.remove()
  }
}

async function prepare({ program }: Version) {
  const postgres = await startPostgres()
  const env = {
    ...gatewayEnvironment(postgres.url()),
    FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal(),
    ...FOR_EVERY_VERSION,
  }
  const farebox = (...words: string[]) =>
    execFileSync(process.execPath, [program, ...words], { env: { ...process.env, ...env }, stdio: 'pipe' })
  farebox('migrate')

  async function cpuOf(name: Start): Promise<number> {
    const { roles } = STARTS[name]
    if (roles === undefined) {
      const before = endedCpuSeconds()
      farebox('accounts', 'list')
      return endedCpuSeconds() - before
    }
    const started = await startGateway({
      databaseUrl: postgres.url(),
      env: { ...env, FAREBOX_ROLES: roles },
      program: path.relative(ROOT, program),
    })
    const seconds = treeCpuMicroseconds(started.pid) / 1_000_000
    await started.stop()
    return seconds
  }
  return { cpuOf, stop: postgres.remove }
}
