import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { startPostgres, temporaryFolder } from '../../harness/postgres.ts'
import { isAlive } from '../../harness/processes.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { createTcpProxy } from '../../harness/tcp-proxy.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createCalls } from '../../server/src/calls/calls.ts'
import { createFastPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, endingOf } from './cut-rig.ts'
import { type Load, startLoad } from './load.ts'
import { disagreements } from './told.ts'
import { connect, ids, makeAccount, makeCredential } from './world.ts'

/** With full counts the product's own deadlines and timeouts; shorter ones otherwise. */
const PROOF = 'ledger-outages'
const DEADLINES = isFullProof
  ? { beginDeadlineMs: 5_000, endDeadlineMs: 10_000, moneyQueryTimeoutMs: 10_000, connectTimeoutMs: 5_000 }
  : { beginDeadlineMs: 1_000, endDeadlineMs: 2_000, moneyQueryTimeoutMs: 1_500, connectTimeoutMs: 1_000 }
const { beginDeadlineMs, endDeadlineMs } = DEADLINES
/** Judged in proofs only. */
const SLACK_MS = 200
const BACK_WITHIN_MS = 20_000
const ACCOUNTS = 10
const CALLERS = 50
const BALANCE = 1_000_000_000_000n
const CALM_MS = count({ full: 2_000, reduced: 400 })

type Outage = Awaited<ReturnType<typeof startOutage>>
const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  const failures: unknown[] = []
  for (const end of ends.splice(0).reverse()) await end().catch((error) => failures.push(error))
  assert.deepEqual(failures, [], 'everything was put away')
})

/** A PostgreSQL of its own under load, through the module as one process has it. */
async function startOutage(options: Parameters<typeof startPostgres>[0] = {}) {
  const postgres = await startPostgres(options)
  ends.push(() => postgres.remove())
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  const { pools, calls } = connect(postgres.url(), DEADLINES)
  ends.push(() => pools.close(200))
  const parties = []
  for (let at = 0; at < ACCOUNTS; at += 1) {
    const accountId = await makeAccount(pools.rest, BALANCE)
    parties.push({ accountId, credentialId: await makeCredential(pools.rest, accountId) })
  }
  const load = startLoad({ calls, parties, callers: CALLERS, beginDeadlineMs, endDeadlineMs })
  ends.push(load.stop)
  await until(() => (load.counts.posted ?? 0) >= 4 * CALLERS, PATIENCE_MS, 'the first charges')
  return { postgres, pools, calls, load }
}

/** Waits until calls are charged again; how long that took. */
function recovery(load: Load): Promise<number> {
  const nowMs = performance.now()
  return until(() => load.lastChargedAtMs() > nowMs, PATIENCE_MS, 'the next charge')
}

function judgeRecovery(title: string, recoveredAfterMs: readonly number[]): void {
  judge(PROOF, `${title}: the next charge after it`, { unit: 'ms', atMost: BACK_WITHIN_MS }, recoveredAfterMs)
}

/** Ends the load and compares what callers were told with what the ledger says. */
async function settle({ pools, calls, load }: Outage, title: string) {
  await delay(CALM_MS)
  await load.stop()
  assert.ok(await calls.flush(PATIENCE_MS), 'everything was written')
  let found: string[] = []
  const agrees = async () => {
    found = await disagreements(pools.rest, load.told)
    return found.length === 0
  }
  const agreedAfterMs = await until(agrees, PATIENCE_MS).catch(() => assert.deepEqual(found, []))
  assert.deepEqual(calls.open(), [])
  judge(PROOF, `${title}: a fault after its deadline`, { unit: 'ms', atMost: SLACK_MS }, [load.latestMs()])
  return {
    calls: load.told.length,
    told: { ...load.counts },
    agreed_after_ms: Math.round(agreedAfterMs ?? 0),
  }
}

const faultsOf = ({ counts }: Load) => ({
  begins: counts.billing_dependency_timeout ?? 0,
  ends: counts.settlement_timeout ?? 0,
})

describe('while calls are made', () => {
  it('a PostgreSQL that hangs: callers get the fault within their deadline, and everything agrees after it', async () => {
    const outage = await startOutage()
    const { postgres, load } = outage
    // Long enough for those that could not end to fail to begin, too.
    const pausedMs = endDeadlineMs + beginDeadlineMs + 1_000
    postgres.pause()
    await delay(pausedMs)
    const haveFailed = () => faultsOf(load).begins >= CALLERS / 2 && faultsOf(load).ends > 0
    await until(haveFailed, PATIENCE_MS, 'the faults of callers')
    postgres.resume()
    const recoveredAfterMs = await recovery(load)
    const figures = await settle(outage, 'paused')
    judgeRecovery('paused', [recoveredAfterMs])
    recordProof(PROOF, 'paused', {
      paused_ms: pausedMs,
      ...DEADLINES,
      ...figures,
    })
  })

  it('a PostgreSQL that is killed and comes back: what was acknowledged is there, and calls go on', async () => {
    const outage = await startOutage()
    const { postgres, load } = outage
    const recovered: number[] = []
    for (let round = 0; round < count({ full: 10, reduced: 2 }); round += 1) {
      await postgres.kill()
      const isLong = round % 2 === 1
      await delay(isLong ? endDeadlineMs + 500 : 100)
      if (isLong) await until(() => faultsOf(load).ends > 0, PATIENCE_MS, 'an outage longer than the deadline')
      await postgres.start()
      recovered.push(await recovery(load))
      await delay(CALM_MS)
    }
    const figures = await settle(outage, 'killed')
    judgeRecovery('killed', recovered)
    recordProof(PROOF, 'killed', { kills: recovered.length, ...DEADLINES, ...figures })
  })

  it('a PostgreSQL whose disk is full: callers get the fault within their deadline, and everything agrees once there is room', async (t) => {
    const folder = mountSmallDisk()
    if (folder === undefined) return t.skip(CAN_NOT_MOUNT)
    const outage = await startOutage({ folder: path.join(folder, 'postgres'), settings: SMALL_LOG })
    const { load } = outage
    const disk = fillDisk(folder)
    await until(() => faultsOf(load).begins >= 2 * CALLERS, PATIENCE_MS, 'the failure of commits')
    // Whether a settlement fails too depends on the pages that still have room, so that it is told and not asserted.
    await delay(endDeadlineMs)
    const { ends: settlementsThatFailed } = faultsOf(load)
    disk.empty()
    const recoveredAfterMs = await recovery(load)
    const figures = await settle(outage, 'disk full')
    judgeRecovery('disk full', [recoveredAfterMs])
    recordProof(PROOF, 'disk full', { ...DEADLINES, settlements_that_failed: settlementsThatFailed, ...figures })
  })

  it('a PostgreSQL that crashes because its log has no room: what was acknowledged is there once it has room and is started again', async (t) => {
    const folder = mountSmallDisk()
    if (folder === undefined) return t.skip(CAN_NOT_MOUNT)
    const outage = await startOutage({ folder: path.join(folder, 'postgres'), settings: SMALL_LOG })
    const { postgres, pools, load } = outage
    const disk = fillDisk(folder)
    const writeLog = () => pools.rest.query("select pg_logical_emit_message(true, 'filler', repeat('x', 1000000))")
    const crashed = () => /PANIC:.*No space left on device/.test(postgres.log())
    const fills = async () => {
      await writeLog().catch(() => {})
      return crashed()
    }
    await until(fills, PATIENCE_MS, 'the crash')
    await until(() => faultsOf(load).begins >= CALLERS, PATIENCE_MS, 'the failure of begins')
    const exited = !isAlive(postgres.pid())
    disk.empty()
    // What a supervisor would do. It may also have come back by itself as soon as there was room.
    if (exited) await postgres.start()
    const recoveredAfterMs = await recovery(load)
    const figures = await settle(outage, 'log full')
    judgeRecovery('log full', [recoveredAfterMs])
    recordProof(PROOF, 'log full', { exited, ...DEADLINES, ...figures })
  })
})

describe('one connection that hangs while PostgreSQL is well, with the timeouts of the product', () => {
  /** The module as the product has it, over a connection on which nothing passes any more. */
  async function startHanging() {
    const postgres = await startPostgres()
    ends.push(() => postgres.remove())
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const proxy = await createTcpProxy({ target: { port: postgres.port } })
    ends.push(() => proxy.close())
    const pools = createPools({ url: new Secret(proxy.url(postgres.url())), log: silentLog })
    ends.push(() => pools.close(200))
    const query = createMoneyQuery(pools.money)
    const path = createFastPath({ clock: systemClock, log: silentLog })
    const calls = createCalls({ query, ownerId: ids.next(), clock: systemClock, log: silentLog, path })
    const direct = connect(postgres.url())
    ends.push(() => direct.pools.close())
    const accountId = await makeAccount(direct.pools.rest, BALANCE)
    const credentialId = await makeCredential(direct.pools.rest, accountId)
    const call = () => callOf({ accountId, credentialId }, 300n)
    const begun = call()
    assert.equal((await calls.begin(begun)).outcome, 'begun')
    for (const connection of proxy.connections()) connection.stall()
    return { calls, begun, next: call() }
  }

  it('a begin goes over another connection before its deadline', async () => {
    const { calls, next } = await startHanging()
    const startedAtMs = performance.now()
    assert.equal((await calls.begin(next)).outcome, 'begun')
    recordProof(PROOF, 'a begin over a hanging connection', { took_ms: Math.round(performance.now() - startedAtMs) })
  })

  it('an end goes over another connection before its deadline', async () => {
    const { calls, begun } = await startHanging()
    const startedAtMs = performance.now()
    assert.equal((await calls.end(endingOf(begun))).outcome, 'posted')
    recordProof(PROOF, 'an end over a hanging connection', { took_ms: Math.round(performance.now() - startedAtMs) })
  })
})

const SMALL_LOG = { max_wal_size: '48MB', min_wal_size: '32MB' }
const CAN_NOT_MOUNT = 'a tmpfs can not be mounted here: that takes root and CAP_SYS_ADMIN'

/** A file system of its own, unmounted when the test is over; undefined where that is not possible. */
function mountSmallDisk(): string | undefined {
  const folder = temporaryFolder('farebox-disk-')
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmSync(folder, { recursive: true })
    return undefined
  }
  ends.push(async () => {
    execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true })
  })
  return folder
}

/** Takes all the room there is, and what comes free while it lasts. */
function fillDisk(folder: string): { readonly empty: () => void } {
  const file = path.join(folder, 'filler')
  const descriptor = openSync(file, 'w')
  const take = () => {
    for (let size = 1024 * 1024; size >= 4_096; ) {
      try {
        writeSync(descriptor, Buffer.alloc(size))
      } catch {
        size /= 4
      }
    }
  }
  take()
  const timer = setInterval(take, 20)
  const empty = () => {
    clearInterval(timer)
    closeSync(descriptor)
    rmSync(file)
  }
  ends.push(async () => clearInterval(timer))
  return { empty }
}
