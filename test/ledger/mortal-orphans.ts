import assert from 'node:assert/strict'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { beginBatch } from '../../server/src/calls/begin-batch.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { sweepOrphans } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { createWatchfulLog } from './mortal-process.ts'
import { connect, ids, type pg } from './world.ts'

/** Longer than any test: whoever has such a lease lives. */
export const LONG_SECONDS = 600

export type OrphanWorld = Awaited<ReturnType<typeof openOrphanWorld>>

/** A database in which every owner is what the test says: living, dead, or young. */
export async function openOrphanWorld() {
  const { url } = await freshDatabase()
  const { pools, calls } = connect(url)
  const pool = pools.rest
  const query = createMoneyQuery(pools.money)

  async function renew(ownerId: Id, seconds: number): Promise<void> {
    await pool.query('select renew_lease($1, $2)', [ownerId, seconds])
  }

  return {
    url,
    pool,
    calls,
    renew,
    /** Begins calls behind the back of a process, as its own. */
    async beginAs(ownerId: Id, ...all: readonly Call[]): Promise<void> {
      for (const { outcome } of await beginBatch(query, ownerId, all)) assert.equal(outcome, 'begun')
    },
    async newOwner(lease: 'lives' | 'is dead'): Promise<Id> {
      const ownerId = ids.next()
      await renew(ownerId, lease === 'lives' ? LONG_SECONDS : 0)
      return ownerId
    },
    async unsettled(): Promise<readonly Id[]> {
      const { rows } = await pool.query<{ id: Id }>('select id from holds where unsettled_at is not null order by id')
      return rows.map(({ id }) => id)
    },
    async agrees(): Promise<void> {
      assert.deepEqual(await verifyLedger(pool), [])
    },
    close: () => pools.close(),
  }
}

/** One that sweeps over a connection of its own, and tells what it swept. */
export function createSweeper(url: string, ownerId: Id) {
  const pools = createPools({ url: new Secret(url), log: silentLog, restConnections: 1 })
  return {
    async sweep(graceSeconds = 0): Promise<readonly Id[]> {
      const swept: Id[] = []
      const log = createWatchfulLog((_, id) => swept.push(id))
      const found = await sweepOrphans({ pool: pools.rest, log, ownerId, graceSeconds })
      assert.equal(found, swept.length)
      return swept
    },
    close: () => pools.close(),
  }
}

/** How often PostgreSQL had to end a statement of this database because of a deadlock. */
export async function deadlocksOf(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ deadlocks: number }>(
    'select deadlocks::integer as deadlocks from pg_stat_database where datname = current_database()',
  )
  return rows[0]?.deadlocks ?? -1
}
