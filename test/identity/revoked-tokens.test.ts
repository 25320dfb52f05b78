import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createDatabaseTime } from '../../server/src/calls/ownership.ts'
import { revokeAccessToken } from '../../server/src/grants/access-tokens.ts'
import { revokeGrant, setGrantBudget } from '../../server/src/grants/grants.ts'
import { createFailuresByAddress } from '../../server/src/identity/failures-by-address.ts'
import { createIdentify } from '../../server/src/identity/identify.ts'
import { hashOf } from '../../server/src/identity/key-format.ts'
import type { Resource } from '../../server/src/identity/resources.ts'
import { systemClock as clock } from '../../server/src/kernel/clock.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { removeMember } from '../../server/src/people/members.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { callOf, openSession, outcomesOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, anotherAddress, ids, makeCustomer } from './customers.ts'
import { AUDIENCE, expiredToken, type Granted, makeGranted } from './granted.ts'

/** What a process knows of tokens, with a change log that is read when the test says so. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

type Listener = { readonly changed: (key: string) => void; readonly reset: () => void }
const listeners: (Listener & { readonly topic: string })[] = []
const feed = {
  subscribe(topic: string, listener: Listener) {
    listeners.push({ topic, ...listener })
    return () => {}
  },
  lagMs: () => 0,
}
const time = createDatabaseTime(clock)
const failures = createFailuresByAddress({ clock })
const identify = createIdentify({ pool, feed, clock, time, metrics: createMetrics(), failures })
const RESOURCE: Resource = { audience: AUDIENCE, callScope: 'calls' }

let seen = 0n
/** Reads the change log from where it was read last. */
async function readChanges(): Promise<readonly string[]> {
  const { rows } = await pool.query<{ id: bigint; topic: string; key: string }>(
    'select id, topic, key from change_log where id > $1 order by id',
    [seen],
  )
  for (const { id, topic, key } of rows) {
    seen = id
    for (const listener of listeners) if (listener.topic === topic) listener.changed(key)
  }
  return rows.map(({ topic }) => topic)
}

before(() => {
  const nowMs = clock.monotonicMs()
  time.learn(clock.nowMs(), nowMs, nowMs)
})

async function known(): Promise<Granted> {
  const { workspaceId } = await makeCustomer(pool, { paid: 1_000_000n })
  const granted = await makeGranted(pool, { workspaceId })
  await readChanges()
  await who(granted)
  // From memory now: no promise, no look-up.
  assert.ok(!(identify(new Secret(granted.token), anotherAddress(), RESOURCE) instanceof Promise))
  return granted
}

const who = async ({ token }: Pick<Granted, 'token'>) => identify(new Secret(token), anotherAddress(), RESOURCE)
const refused = { code: 'invalid_credential' }

describe('a token that a process knows', () => {
  it('is read anew once the change log names its grant: revoked', async () => {
    const granted = await known()
    await revokeGrant({ pool }, ACTOR, granted.id)
    assert.deepEqual(await readChanges(), ['key'])
    await assert.rejects(who(granted), refused)
  })

  it('is read anew once the change log names it: revoked by itself', async () => {
    const granted = await known()
    await revokeAccessToken(pool, ACTOR, hashOf(new Secret(granted.token)))
    assert.deepEqual(await readChanges(), ['token'])
    await assert.rejects(who(granted), refused)
  })

  it('is read anew once the change log names its grant: another budget', async () => {
    const granted = await known()
    const before = await who(granted)
    await setGrantBudget({ pool, ids }, ACTOR, granted.id, null)
    await readChanges()
    assert.deepEqual([before.allowances.length, (await who(granted)).allowances.length], [1, 0])
  })

  it('begins no call once its grant is revoked, though the process has not heard of it', async () => {
    const session = await openSession(database.url)
    for (const revoke of [
      ({ id }: Granted) => revokeGrant({ pool }, ACTOR, id),
      ({ workspaceId, memberId }: Granted) =>
        removeMember({ pool, notices: null }, { by: ACTOR, personId: null }, workspaceId, memberId, null),
    ]) {
      const granted = await known()
      const caller = await who(granted)
      const { allowances } = caller
      assert.deepEqual(await outcomesOf(session.begin(callOf(caller, { allowances }))), ['begun'])
      await revoke(granted)
      assert.equal(await who(granted), caller, 'it is known from memory')
      assert.deepEqual(await outcomesOf(session.begin(callOf(caller, { allowances }))), ['credential_inactive'])
      await readChanges()
    }
    await session.close()
  })

  it('spends nothing of a budget that was taken away, though the process has not heard of it', async () => {
    const session = await openSession(database.url)
    const granted = await known()
    const caller = await who(granted)
    for (const budget of [{ period: 'day', amount: nanos(5n) } as const, null]) {
      await setGrantBudget({ pool, ids }, ACTOR, granted.id, budget)
      const { allowances } = caller
      assert.deepEqual(await outcomesOf(session.begin(callOf(caller, { allowances }))), ['allowance_spent'])
    }
    await session.close()
  })

  it('is refused once its time is over', async () => {
    const granted = await known()
    const { token } = await expiredToken(pool, granted)
    await assert.rejects(who({ token }), refused)
    // A process that knows it goes by the time of PostgreSQL, and not by what it heard last.
    const nowMs = clock.monotonicMs()
    time.learn(clock.nowMs() + 7_200_000, nowMs, nowMs)
    await assert.rejects(who(granted), refused)
    time.learn(clock.nowMs(), nowMs, nowMs)
  })

  it('is one caller for as long as nothing changes', async () => {
    const granted = await known()
    assert.equal(await who(granted), await who(granted))
  })
})
