import assert from 'node:assert/strict'
import { startPostgres } from '../../harness/postgres.ts'
import { isFullProof, seed } from '../../harness/proof.ts'
import { createTcpProxy } from '../../harness/tcp-proxy.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { startPack } from './mortal-pack.ts'
import { PRODUCT_LEASES, SHORT_LEASES } from './mortal-process.ts'
import { makeParty } from './session.ts'
import { connect, type pg } from './world.ts'

/** With full counts the leases of the product; shorter ones otherwise. */
export const LEASES = isFullProof ? PRODUCT_LEASES : SHORT_LEASES
export const LEASE_MS = LEASES.leaseSeconds * 1_000
/** From a death to its mark: the lease, the wait for the next sweep, and room for both to take their time. 15 s at full counts. */
export const FOUND_WITHIN_MS = LEASE_MS + LEASES.sweepEveryMs + 3_000
export const ACCOUNTS = 8
const BALANCE = 10n ** 12n
const HOUR_MS = 3_600_000

/** What a test has to put away when it is over. */
export class Leftovers {
  readonly #ends: (() => Promise<unknown>)[] = []

  add(end: () => Promise<unknown>): void {
    this.#ends.push(end)
  }

  readonly putAway = async (): Promise<void> => {
    const failures: unknown[] = []
    for (const end of this.#ends.splice(0).reverse()) await end().catch((error) => failures.push(error))
    assert.deepEqual(failures, [], 'everything was put away')
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

/** A PostgreSQL of its own, accounts with money, and nobody alive yet. Mortals reach it by way of a proxy. */
export async function startWorld(leftovers: Leftovers) {
  const postgres = await startPostgres()
  leftovers.add(() => postgres.remove())
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  const { pools, calls } = connect(postgres.url())
  leftovers.add(() => pools.close(200))
  const pool = pools.rest
  const parties = await Promise.all(Array.from({ length: ACCOUNTS }, () => makeParty(pool, BALANCE)))
  const proxy = await createTcpProxy({ target: { port: postgres.port } })
  leftovers.add(() => proxy.close())
  const pack = startPack({ url: proxy.url(postgres.url()), parties, leases: LEASES })
  leftovers.add(pack.close)
  return { postgres, proxy, pool, calls, parties, pack }
}

/** The clocks of mortals are wrong: nothing may depend on them. */
export function skewMsOf(place: number): number {
  return [0, HOUR_MS, -HOUR_MS][place % 3] ?? 0
}

/** Only calls whose process was killed before are ever swept, each once, and nobody disowns a call that runs. */
export function assertOnlyTheDeadAreSwept({ pack }: World): void {
  const killedAtMs = new Map(pack.all.map((mortal) => [mortal.ownerId, mortal.killedAtMs()]))
  const swept = pack.swept()
  for (const { id, ownerId, atMs } of swept) {
    const deathMs = killedAtMs.get(ownerId)
    assert.ok(deathMs !== undefined && deathMs < atMs, `call ${id} was swept while its process lived`)
  }
  assert.equal(new Set(swept.map(({ id }) => id)).size, swept.length, 'a call was swept twice')
  for (const mortal of pack.all) assert.deepEqual(mortal.told().lost, [], 'a call was disowned while it ran')
}

export async function sumOfAccounts(pool: pg.Pool, column: 'charged' | 'held'): Promise<bigint> {
  const { rows } = await pool.query<{ sum: bigint }>(`select sum(${column})::bigint as sum from accounts`)
  return rows[0]?.sum ?? -1n
}

/** The same numbers for the same seed (mulberry32). */
export function createRandom(state = seed): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
