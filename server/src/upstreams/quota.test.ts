import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../../harness/figures.ts'
import { startPostgres } from '../../../harness/postgres.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { migrate } from '../storage/migrate.ts'
import { createPools } from '../storage/pools.ts'
import { inTransaction } from '../storage/transaction.ts'
import { silentLog } from '../telemetry/log.ts'
import { createQuota, type Limited, type QuotaTaken } from './quota.ts'

const PROOF = 'upstream-quota'

const { url } = await freshDatabase()
const ids = createIds({ clock: systemClock })
const upstreamOf = (requestsPerMinute: number | null): Limited => ({ id: ids.next(), requestsPerMinute })

/** The quota as a process has it, over connections of its own, and how often it asked PostgreSQL. */
function startProcess({ databaseUrl = url, windowSeconds = 60 } = {}) {
  const pools = createPools({ url: new Secret(databaseUrl), log: silentLog })
  after(() => pools.close())
  let asked = 0
  const query: typeof pools.rest.query = pools.rest.query.bind(pools.rest)
  pools.rest.query = ((...args: Parameters<typeof query>) => {
    asked += 1
    return query(...args)
  }) as typeof query
  return { ...createQuota({ pool: pools.rest, clock: systemClock, windowSeconds }), pools, asked: () => asked }
}

type Process = ReturnType<typeof startProcess>

const startThree = (windowSeconds = 60) => [1, 2, 3].map(() => startProcess({ windowSeconds }))
const isTaken = (taken: QuotaTaken) => taken === 'taken'

async function takeAtOnce({ take }: Pick<Process, 'take'>, upstream: Limited, times: number): Promise<number> {
  const all = await Promise.all(Array.from({ length: times }, () => take(upstream)))
  return all.filter(isTaken).length
}

/** One after the other, until it is refused. */
async function takeToTheEnd({ take }: Pick<Process, 'take'>, upstream: Limited): Promise<number> {
  for (let count = 0; ; count += 1) if (!isTaken(await take(upstream))) return count
}

describe('the quota of an upstream', () => {
  for (const limit of [1, 7, 60, 600, 5_000])
    it(`LIMIT-3 of ${limit} a minute is never exceeded by three processes together, and all of it can be used`, async () => {
      const upstream = upstreamOf(limit)
      const processes = startThree()
      const taken = await Promise.all(processes.map((one) => takeAtOnce(one, upstream, limit)))
      const sum = taken.reduce((total, count) => total + count, 0)
      assert.ok(sum <= limit, `${sum} of ${limit}`)
      // What is left stands ready in one of the processes.
      const rest = await Promise.all(processes.map((one) => takeToTheEnd(one, upstream)))
      assert.equal(
        rest.reduce((total, count) => total + count, sum),
        limit,
      )
      for (const one of processes) assert.ok(!isTaken(await one.take(upstream)))
    })

  for (const limit of [10, 60, 600, 5_000])
    it(`LIMIT-3 of ${limit} can be used to nine tenths by one process, whatever two others have used before they fell silent`, async () => {
      for (const share of [0.01, 0.1, 0.3]) {
        const upstream = upstreamOf(limit)
        const [busy, ...others] = startThree()
        assert.ok(busy !== undefined)
        const silent = Math.max(1, Math.floor(limit * share))
        let sum = 0
        for (const other of others)
          for (let i = 0; i < silent; i += 1) sum += isTaken(await other.take(upstream)) ? 1 : 0
        sum += await takeToTheEnd(busy, upstream)
        assert.ok(sum >= limit * 0.9 && sum <= limit, `${sum} of ${limit}, of which two others took ${silent} each`)
      }
    })

  it('LIMIT-3 is counted by one process after the other, also where all of them wait for the same row', async () => {
    const upstream = upstreamOf(100)
    const processes = startThree()
    const [first] = processes
    assert.ok(first !== undefined)
    assert.equal(await first.take(upstream), 'taken')
    const taking = await inTransaction(first.pools.rest, async (query) => {
      await query('select from upstream_quotas where upstream_id = $1 for update', [upstream.id])
      const waiting = processes.map((one) => takeAtOnce(one, upstream, 60))
      const blocked = `select from pg_stat_activity
        where datname = current_database() and query like '%lease_quota%' and wait_event_type = 'Lock' and pid <> pg_backend_pid()`
      await until(
        async () => (await first.pools.rest.query(blocked)).rowCount === 3,
        PATIENCE_MS,
        'three waiting processes',
      )
      return waiting
    })
    const taken = await Promise.all(taking)
    const sum = taken.reduce((total, count) => total + count, 1)
    // The one that had a lease before may have taken one more than it needs.
    assert.ok(sum === 100 || sum === 99, `${sum}`)
  })

  /** Long enough for a busy machine to use up a quota in it. */
  const WINDOW_SECONDS = 8

  it('LIMIT-3 counts in windows: what a process has left is void with its window, and the next one has the whole quota', async () => {
    const upstream = upstreamOf(100)
    const [first, second] = startThree(WINDOW_SECONDS)
    assert.ok(first !== undefined && second !== undefined)
    // One after the other, so that it takes more than it needs.
    for (let i = 0; i < 8; i += 1) assert.equal(await first.take(upstream), 'taken')
    const { rows } = await first.pools.rest.query('select leased from upstream_quotas where upstream_id = $1', [
      upstream.id,
    ])
    assert.ok(rows[0].leased > 8, 'nothing was left to be void')
    await delay(WINDOW_SECONDS * 1_000 + 50)
    assert.equal(await takeAtOnce(second, upstream, 101), 100)
    assert.ok(!isTaken(await first.take(upstream)))
    await delay(WINDOW_SECONDS * 1_000 + 50)
    assert.equal(await takeAtOnce(first, upstream, 101), 100)
  })

  it('LIMIT-3 is never exceeded while windows come and go under load', async () => {
    const upstream = upstreamOf(50)
    const processes = startThree(0.3)
    const [{ pools }] = processes as [Process]
    await pools.rest.query('create table windows_seen (started_at timestamptz primary key)')
    await pools.rest.query(
      `create function see_window() returns trigger language plpgsql as $$
       begin insert into windows_seen values (new.started_at) on conflict do nothing; return null; end $$`,
    )
    await pools.rest.query(
      'create trigger see after insert or update on upstream_quotas for each row execute function see_window()',
    )
    let [isOver, taken] = [false, 0]
    const ask = async ({ take }: Process) => {
      while (!isOver) {
        if (isTaken(await take(upstream))) taken += 1
        else await delay(1)
      }
    }
    const asking = processes.flatMap((one) => Array.from({ length: 20 }, () => ask(one)))
    const seen = async (): Promise<number> =>
      (await pools.rest.query('select count(*)::integer as count from windows_seen')).rows[0].count
    await delay(2_000)
    await until(async () => (await seen()) >= 5, PATIENCE_MS, 'five windows')
    isOver = true
    await Promise.all(asking)
    await pools.rest.query('drop trigger see on upstream_quotas')
    // Each window is seen when it begins; the one of the first row as well.
    const windows = await seen()
    assert.ok(taken > 0 && taken <= windows * 50, `${taken} in ${windows} windows`)
    const unused = 1 - taken / ((windows - 1) * 50)
    judge(PROOF, 'what stays unused of a quota in windows of 300 ms', { unit: 'share', atMost: 0.5 }, [unused])
  })

  it('says when the window ends, and refuses from memory until then', async () => {
    const upstream = upstreamOf(3)
    const one = startProcess()
    const startedAtMs = performance.now()
    assert.equal(await takeAtOnce(one, upstream, 3), 3)
    const refused = await one.take(upstream)
    const passedSeconds = (performance.now() - startedAtMs) / 1_000
    assert.ok(typeof refused === 'object' && refused.retryAfterSeconds <= 60)
    assert.ok(refused.retryAfterSeconds >= 59 - passedSeconds, `${refused.retryAfterSeconds} s`)
    const before = one.asked()
    for (let i = 0; i < 100; i += 1) assert.ok(!isTaken(await one.take(upstream)))
    assert.equal(one.asked(), before)
  })

  it('asks PostgreSQL once for all who wait, and seldom for who asks often', async () => {
    const one = startProcess()
    const upstream = upstreamOf(6_000)
    assert.equal(await takeAtOnce(one, upstream, 500), 500)
    assert.equal(one.asked(), 1)
    for (let i = 0; i < 1_000; i += 1) assert.equal(await one.take(upstream), 'taken')
    assert.ok(one.asked() < 30, String(one.asked()))
  })

  it('is judged anew as soon as it is raised or lowered', async () => {
    const one = startProcess()
    const upstream = upstreamOf(2)
    assert.equal(await takeAtOnce(one, upstream, 5), 2)
    assert.equal(await takeAtOnce(one, { ...upstream, requestsPerMinute: 4 }, 5), 2)
    assert.ok(!isTaken(await one.take({ ...upstream, requestsPerMinute: 1 })))
  })

  it('that nobody has set limits nothing, and asks nobody', async () => {
    const one = startProcess()
    assert.equal(await takeAtOnce(one, upstreamOf(null), 1_000), 1_000)
    assert.equal(one.asked(), 0)
  })

  it('begins anew where a clock was set back', async () => {
    const one = startProcess()
    const upstream = upstreamOf(2)
    assert.equal(await takeAtOnce(one, upstream, 3), 2)
    await one.pools.rest.query(
      "update upstream_quotas set started_at = now() + interval '1 hour' where upstream_id = $1",
      [upstream.id],
    )
    assert.equal(await takeAtOnce(startProcess(), upstream, 3), 2)
  })

  it('is forgotten with its upstream', async () => {
    const { pools, take } = startProcess()
    const upstream = upstreamOf(5)
    await pools.rest.query(
      "insert into upstreams (id, slot, mode, base_url, kind) values ($1, 'gone', 'test', 'http://127.0.0.1:1', 'native')",
      [upstream.id],
    )
    await take(upstream)
    await pools.rest.query('delete from upstreams where id = $1', [upstream.id])
    const { rows } = await pools.rest.query('select from upstream_quotas where upstream_id = $1', [upstream.id])
    assert.equal(rows.length, 0)
  })
})

describe('without PostgreSQL', () => {
  it('a quota is 503 for all who wait for a lease, what was leased is used up, and it works again with it', async () => {
    const postgres = await startPostgres()
    after(postgres.remove)
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const one = startProcess({ databaseUrl: postgres.url() })
    const leased = upstreamOf(1_000)
    for (let i = 0; i < 5; i += 1) assert.equal(await one.take(leased), 'taken')
    await postgres.kill()
    const fresh = upstreamOf(1_000)
    const told = await Promise.allSettled([one.take(fresh), one.take(fresh)])
    for (const { status, ...rest } of told) {
      assert.equal(status, 'rejected')
      const reason = 'reason' in rest ? rest.reason : undefined
      assert.ok(reason instanceof Fault && reason.code === 'billing_dependency_timeout')
    }
    // 1, 1 + 1, 1 + 3: two of the last lease are left.
    assert.equal(await one.take(leased), 'taken')
    assert.equal(await one.take(leased), 'taken')
    await assert.rejects(async () => one.take(leased), Fault)
    assert.equal(await one.take(upstreamOf(null)), 'taken')
    await postgres.start()
    assert.equal(await one.take(fresh), 'taken')
  })
})
