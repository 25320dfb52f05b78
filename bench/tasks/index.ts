import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { startPostgres } from '../../harness/postgres.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import type { Benchmark, Metric } from '../bench.ts'
import { keepPace } from './pace.ts'
import { race } from './race.ts'

/** How many tasks are open, how many rounds are raced, and for how many seconds the pace is watched. */
type Size = { readonly tasks: number; readonly rounds: number; readonly seconds: number }

const RACERS = 4
const POLLERS = 3

/** Open tasks that are due, with their holds: how fast they are taken, beside the bare statements; and how evenly. */
export const run: Benchmark = (progress) => measureTasks({ tasks: 100_000, rounds: 25, seconds: 60 }, progress)

/** Data on the disk, fsync on; PostgreSQL and who asks it share the machine. */
export async function measureTasks(
  { tasks, rounds, seconds }: Size,
  progress: (line: string) => void,
): Promise<Metric[]> {
  const postgres = await startPostgres({
    folder: mkdtempSync(path.join(tmpdir(), 'farebox-bench-')),
    settings: { max_wal_size: '4GB' },
  })
  const clients = Array.from({ length: RACERS }, () => new pg.Client(postgres.url()))
  try {
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    await Promise.all(clients.map((client) => client.connect()))
    const raced = await race(postgres, clients, { tasks, rounds }, progress)
    const paced = await keepPace(clients.slice(0, POLLERS), { tasks, seconds }, progress)
    return [...raced, ...paced]
  } finally {
    await Promise.all(clients.map((client) => client.end()))
    await postgres.remove()
  }
}
