import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { recordProof } from '../../harness/proof.ts'
import type { Proxied } from '../../harness/tcp-proxy.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { agree, BALANCE, CHARGED, callOf, createRig, endingOf, HELD, makeParty, type Rig, SLACK_MS } from './cut-rig.ts'
import { openSession, outcomesOf } from './session.ts'
import type { Told } from './told.ts'
import { connect, ids, pg } from './world.ts'

/**
 * What PostgreSQL carries out after its client has given up: a statement that waits for a lock while its connection is
 * cut, or one that a network or a hanging server held back. Whatever it does then must agree with what the caller was
 * told meanwhile.
 */
const PROOF = 'ledger-late-statements'
const DEADLINE_MS = 600
/** Only what has to fail has a deadline that can pass. */
const PATIENT = { beginDeadlineMs: PATIENCE_MS, endDeadlineMs: PATIENCE_MS, moneyQueryTimeoutMs: 300 }
const HASTY_BEGIN = { ...PATIENT, beginDeadlineMs: DEADLINE_MS }
const HASTY_END = { ...PATIENT, endDeadlineMs: DEADLINE_MS }
const MOMENT_MS = 100
/** By how much faults missed their deadlines. */
const delays: number[] = []

const database = await freshDatabase()
const { pools: observers } = connect(database.url)
const pool = observers.rest
after(() => observers.close())

let rig: Rig
const lockers: pg.Client[] = []
afterEach(async () => {
  for (const client of lockers.splice(0)) await client.end()
  await rig.close()
})

/** Another session that has the account's lock until it commits or rolls back. */
async function lockAccount(accountId: Id): Promise<pg.Client> {
  const client = new pg.Client(database.url)
  lockers.push(client)
  await client.connect()
  await client.query('begin')
  await client.query('select from accounts where id = $1 for update', [accountId])
  return client
}

/** Statements of money that wait for a lock, whether or not their clients are still there. */
async function waiting(): Promise<readonly number[]> {
  const { rows } = await pool.query<{ pid: number }>(
    `select pid from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and application_name = 'farebox money'`,
  )
  return rows.map(({ pid }) => pid)
}

const untilWaiting = (statements: number) =>
  until(async () => (await waiting()).length >= statements, PATIENCE_MS, `the wait of ${statements} statements`)
const untilNoneWaits = () => until(async () => (await waiting()).length === 0, PATIENCE_MS, 'the end of all waits')
const untilAnotherWaits = (known: readonly number[]) =>
  until(async () => (await waiting()).some((pid) => !known.includes(pid)), PATIENCE_MS, 'the wait of another statement')
const pause = (durationMs: number) => new Promise((resolve) => setTimeout(resolve, durationMs))

async function useRig(options: typeof PATIENT): Promise<void> {
  rig = await createRig(database.url, options)
  const isAlone = async () => {
    await rig.chill()
    await rig.warm()
    await rig.calls.flush(PATIENCE_MS)
    return rig.pools.money.totalCount === 1
  }
  // What was late while it got warm may have taken a connection more, by which a statement that has to be lost would arrive.
  await until(isAlone, PATIENCE_MS, 'a single connection')
}

const toldOf = ({ id, accountId }: Call, charged: bigint | null = null): Told => ({ id, accountId, charged })

type Loss = readonly [how: string, lose: (rig: Rig) => unknown]
const LOSSES: readonly Loss[] = [
  ['is reset', ({ proxy }) => proxy.cut('reset')],
  ['is ended', ({ proxy }) => proxy.cut('end')],
  [
    'hangs',
    ({ proxy }) => {
      for (const connection of proxy.connections()) connection.stall()
    },
  ],
  [
    'is terminated by an administrator',
    () =>
      pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and application_name = 'farebox money'
         order by query_start desc limit 1`,
      ),
  ],
]

for (const [how, lose] of LOSSES) {
  describe(`a connection that ${how} while its statement waits for a lock`, () => {
    beforeEach(() => useRig(PATIENT))

    it('leaves one hold when the lock comes free in time', async () => {
      const call = callOf(await makeParty(pool, BALANCE), HELD)
      const locker = await lockAccount(call.accountId)
      const begun = rig.begin(call)
      await untilWaiting(1)
      await lose(rig)
      await pause(MOMENT_MS)
      await locker.query('rollback')
      assert.equal((await begun).text, 'begun')
      await untilNoneWaits()
      const { rows } = await pool.query('select held from accounts where id = $1', [call.accountId])
      assert.equal(rows[0].held, HELD)
      assert.equal((await rig.end(endingOf(call))).charged, CHARGED)
      await agree(pool, [toldOf(call, CHARGED)], how)
    })

    it('leaves a refusal and no hold when the money is gone once the lock comes free', async () => {
      const call = callOf(await makeParty(pool, BALANCE), HELD)
      const other = callOf(call, BALANCE)
      const locker = await lockAccount(call.accountId)
      // Waits for as long as it takes, where connections for money give up after a second.
      const winner = await openSession(database.url)
      const first = winner.begin(other)
      await until(() => winner.waits(pool), PATIENCE_MS, 'the wait of the first')
      const begun = rig.begin(call)
      await untilWaiting(1)
      const known = await waiting()
      await lose(rig)
      // Who comes at the moment of the rollback would get in before those who have waited for it.
      await untilAnotherWaits(known)
      await locker.query('rollback')
      assert.deepEqual(await outcomesOf(first), ['begun'])
      await winner.close()
      assert.equal((await begun).text, 'money_spent')
      await untilNoneWaits()
      await rig.direct.end(voidOf(other))
      await agree(pool, [toldOf(call), toldOf(other, 0n)], how)
    })

    it('leaves one charge when the lock comes free in time', async () => {
      const call = callOf(await makeParty(pool, BALANCE), HELD)
      await rig.begin(call)
      const locker = await lockAccount(call.accountId)
      const ended = rig.end(endingOf(call))
      await untilWaiting(1)
      await lose(rig)
      await pause(MOMENT_MS)
      await locker.query('rollback')
      assert.equal((await ended).charged, CHARGED)
      await untilNoneWaits()
      await agree(pool, [toldOf(call, CHARGED)], how)
    })
  })

  describe(`a connection that ${how} while its statement waits for a lock until after the deadline`, () => {
    it('of begin: the caller gets a fault in time, and no hold is left when the lock comes free', async () => {
      await useRig(HASTY_BEGIN)
      const call = callOf(await makeParty(pool, BALANCE), HELD)
      const locker = await lockAccount(call.accountId)
      const begun = rig.begin(call)
      await untilWaiting(1)
      await lose(rig)
      const { text, lateMs } = await begun
      assert.equal(text, 'billing_dependency_timeout')
      delays.push(lateMs)
      await pause(MOMENT_MS)
      await locker.query('rollback')
      await untilNoneWaits()
      await agree(pool, [toldOf(call)], how)
      assert.equal((await rig.direct.begin(call)).outcome, 'ended')
    })

    it('of end: the caller gets a fault in time, and nothing stays charged when the lock comes free', async () => {
      await useRig(HASTY_END)
      const call = callOf(await makeParty(pool, BALANCE), HELD)
      await rig.begin(call)
      const locker = await lockAccount(call.accountId)
      const ended = rig.end(endingOf(call))
      await untilWaiting(1)
      await lose(rig)
      const { text, lateMs } = await ended
      assert.equal(text, 'settlement_timeout')
      delays.push(lateMs)
      await pause(MOMENT_MS)
      await locker.query('rollback')
      await untilNoneWaits()
      await agree(pool, [toldOf(call)], how)
    })
  })
}

describe('a statement that reaches PostgreSQL after its client has given up', () => {
  /** Holds the next statement back; the client gives up on it and uses another connection. */
  const holdBack = () => rig.proxy.arm({ direction: 'toServer', at: { afterBytes: 0 }, effect: 'stall' }).fired
  /** Lets it through, and waits until PostgreSQL has carried it out and noticed that its client has gone. */
  async function deliver(connection: Proxied): Promise<void> {
    connection.resume()
    await connection.closed
  }

  it('of begin, when the call was begun by the same id sent again, holds nothing twice', async () => {
    await useRig(PATIENT)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    const held = holdBack()
    assert.equal((await rig.begin(call)).text, 'begun')
    await deliver(await held)
    const { rows } = await pool.query('select held from accounts where id = $1', [call.accountId])
    assert.equal(rows[0].held, HELD)
    await rig.end(endingOf(call))
    await agree(pool, [toldOf(call, CHARGED)], 'delivered after the begin')
  })

  it('of begin, when the call has ended meanwhile, holds nothing', async () => {
    await useRig(PATIENT)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    const held = holdBack()
    assert.equal((await rig.begin(call)).text, 'begun')
    assert.equal((await rig.end(endingOf(call))).charged, CHARGED)
    await deliver(await held)
    await agree(pool, [toldOf(call, CHARGED)], 'delivered after the end')
  })

  it('of begin, when the caller got a fault meanwhile, meets the tombstone', async () => {
    await useRig(HASTY_BEGIN)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    const held = holdBack()
    rig.proxy.refuse()
    assert.equal((await rig.begin(call)).text, 'billing_dependency_timeout')
    rig.proxy.accept()
    assert.ok(await rig.calls.flush(PATIENCE_MS))
    await deliver(await held)
    await agree(pool, [toldOf(call)], 'delivered after the fault')
    assert.equal((await rig.direct.begin(call)).outcome, 'ended')
  })

  it('of begin, when the call was refused meanwhile, leaves no hold: never both a refusal and a hold', async () => {
    await useRig(PATIENT)
    const call = callOf(await makeParty(pool, HELD - 1n), HELD)
    const held = holdBack()
    assert.equal((await rig.begin(call)).text, 'money_spent')
    await creditAccount(pool, { entryId: ids.next(), accountId: call.accountId, kind: 'payment', amount: nanos(HELD) })
    await deliver(await held)
    await agree(pool, [toldOf(call)], 'delivered after a refusal')
  })

  it('of end, when it was posted by the same id sent again, charges nothing twice (trap: a finalise step retried after an ambiguous failure debits twice)', async () => {
    await useRig(PATIENT)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    await rig.begin(call)
    const held = holdBack()
    assert.equal((await rig.end(endingOf(call))).charged, CHARGED)
    await deliver(await held)
    await agree(pool, [toldOf(call, CHARGED)], 'delivered after the end')
  })

  it('of end, when the caller got a fault meanwhile, charges nothing', async () => {
    await useRig(HASTY_END)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    await rig.begin(call)
    const held = holdBack()
    rig.proxy.refuse()
    assert.equal((await rig.end(endingOf(call))).text, 'settlement_timeout')
    rig.proxy.accept()
    assert.ok(await rig.calls.flush(PATIENCE_MS))
    await deliver(await held)
    await agree(pool, [toldOf(call)], 'delivered after the fault')
  })
})

describe('a flush', () => {
  it('that begins before a begin fails does not end before its void is written', async () => {
    await useRig(HASTY_BEGIN)
    const call = callOf(await makeParty(pool, BALANCE), HELD)
    rig.proxy.refuse()
    rig.proxy.cut('reset')
    const begun = rig.begin(call)
    const flushed = rig.calls.flush(2 * DEADLINE_MS)
    assert.equal((await begun).text, 'billing_dependency_timeout')
    assert.equal(await flushed, false, 'nothing can be written yet')
    rig.proxy.accept()
    assert.ok(await rig.calls.flush(PATIENCE_MS))
    const { rows } = await pool.query('select outcome from charges where id = $1', [call.id])
    assert.deepEqual(rows, [{ outcome: 'voided' }])
  })
})

describe('after a settlement timeout', () => {
  beforeEach(() => useRig(HASTY_END))

  const KEY = {
    scope: 'idempotency',
    key: 'one',
    limit: 1,
    fingerprint: 'same',
    keepSeconds: 86_400,
    endsWithOwner: false,
  }

  /** Ends a call whose answer is lost until after the deadline, before or after PostgreSQL has carried it out. */
  async function failToEnd(carriedOut: boolean): Promise<Call> {
    const call = callOf(await makeParty(pool, BALANCE), HELD, [KEY])
    await rig.begin(call)
    const direction = carriedOut ? 'toClient' : 'toServer'
    const armed = rig.proxy.arm({ direction, at: { afterBytes: 0 }, effect: 'reset' })
    void armed.fired.then(() => rig.proxy.refuse())
    assert.equal((await rig.end(endingOf(call))).text, 'settlement_timeout')
    rig.proxy.accept()
    return call
  }

  for (const carriedOut of [false, true]) {
    const when = carriedOut ? 'had been committed' : 'had not been committed'

    it(`whose charge ${when}, a flush means that nothing is charged any more`, async () => {
      const call = await failToEnd(carriedOut)
      rig.proxy.delay(MOMENT_MS / 2)
      assert.ok(await rig.calls.flush(PATIENCE_MS))
      const { rows } = await pool.query('select charged, held from accounts where id = $1', [call.accountId])
      assert.deepEqual(rows[0], { charged: 0n, held: 0n })
    })

    it(`whose charge ${when}, the idempotency key is free again, because the caller was not charged`, async () => {
      const call = await failToEnd(carriedOut)
      await agree(pool, [toldOf(call)], when)
      assert.equal((await rig.begin(callOf(call, HELD, [KEY]))).text, 'begun')
    })
  }
})

it('after all of these every promise of the ledger holds', async () => {
  assert.deepEqual(await verifyLedger(pool), [])
  const { rows } = await pool.query('select count(*)::integer as calls_ended from charges')
  judge(PROOF, 'a fault after its deadline', { unit: 'ms', atMost: SLACK_MS }, delays)
  recordProof(PROOF, 'late statements', { ...rows[0], ways_to_lose_a_connection: LOSSES.map(([how]) => how) })
})
