import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { resolveOverdue } from '../../server/src/calls/orphans.ts'
import { type Nanos, nanos } from '../../server/src/kernel/money.ts'
import { rational } from '../../server/src/kernel/rational.ts'
import { creditAccount, creditAccountBy } from '../../server/src/ledger/credit.ts'
import { reverseCharge, reversePayment, winDispute } from '../../server/src/ledger/reverse.ts'
import { type By, listAudit } from '../../server/src/storage/audit.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { saveCustomerPlan, setCustomerPlan } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids, makeCustomer } from '../identity/customers.ts'
import { callOf, openSession, outcomesOf, postOf } from './session.ts'
import { connect } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const WORKER: By = { actor: 'worker one', origin: { via: 'worker' } }
const most = nanos(1_000_000_000n)

const deedsOf = async (subject: string) =>
  (await listAudit(pool, { subject }, { most: 100 })).map(({ id: _, at: __, origin: ___, ...deed }) => deed)

async function payment() {
  const { workspaceId, accountId, keyId } = await makeCustomer(pool)
  const paymentId = ids.next()
  await creditAccount(pool, { entryId: paymentId, accountId, kind: 'payment', amount: most })
  return { workspaceId, party: { accountId, credentialId: keyId }, paymentId }
}

describe('money that somebody moves', () => {
  const verbs: Readonly<
    Record<
      string,
      () => Promise<readonly [workspaceId: string, subject: string, corrects: string, () => Promise<Nanos>]>
    >
  > = {
    async 'payment.reversed'() {
      const { workspaceId, paymentId } = await payment()
      const id = ids.next()
      const reversal = { reversalId: id, paymentId, kind: 'payment_reversal', most } as const
      return [workspaceId, id, paymentId, () => reversePayment(pool, reversal, ACTOR)]
    },
    async 'payment.disputed'() {
      const { workspaceId, paymentId } = await payment()
      const id = ids.next()
      const reversal = { reversalId: id, paymentId, kind: 'dispute', most } as const
      return [workspaceId, id, paymentId, () => reversePayment(pool, reversal, ACTOR)]
    },
    async 'dispute.won'() {
      const { workspaceId, paymentId } = await payment()
      const [disputeId, id] = [ids.next(), ids.next()]
      await reversePayment(pool, { reversalId: disputeId, paymentId, kind: 'dispute', most })
      return [workspaceId, id, disputeId, () => winDispute(pool, id, disputeId, ACTOR)]
    },
    async 'charge.reversed'() {
      const { workspaceId, party } = await payment()
      const call = callOf(party, { hold: most })
      await session.begin(call)
      await session.end(postOf(call, most))
      const id = ids.next()
      return [workspaceId, id, call.id, () => reverseCharge(pool, id, call.id, most, ACTOR)]
    },
  }
  for (const [action, prepare] of Object.entries(verbs))
    it(`leaves one row with its entry, however often and by however many it is said: ${action}`, async () => {
      const [workspaceId, subject, corrects, verb] = await prepare()
      const amounts = [...(await Promise.all([verb(), verb(), verb()])), await verb()]
      assert.deepEqual(amounts, [most, most, most, most])
      const after = { usd: '1.000000000', corrects }
      assert.deepEqual(await deedsOf(subject), [
        { actor: ACTOR.actor, action, workspaceId, subject, before: null, after },
      ])
    })

  it('is not moved where it can not be written down', async () => {
    const { paymentId, party } = await payment()
    const credited = async () =>
      (await pool.query('select credited from accounts where id = $1', [party.accountId])).rows[0]?.credited
    const before = await credited()
    await pool.query("alter table audit add constraint nothing_moves check (action !~ 'reversed|credited') not valid")
    const reversal = { reversalId: ids.next(), paymentId, kind: 'payment_reversal', most } as const
    await assert.rejects(reversePayment(pool, reversal, ACTOR), /nothing_moves/)
    const credit = { entryId: ids.next(), accountId: party.accountId, kind: 'payment', amount: most } as const
    await assert.rejects(creditAccountBy(pool, ACTOR, credit), /nothing_moves/)
    await pool.query('alter table audit drop constraint nothing_moves')
    assert.equal(await credited(), before)
  })
})

describe('calls that a worker voids at our loss', () => {
  it('leave one row for each account and never one for each call, with the calls and their sum', async () => {
    const parties = await Promise.all([payment(), payment()])
    const calls = parties.map(({ party }) => [1, 2, 3].map(() => callOf(party, { hold: 1_000_000n })))
    for (const call of calls.flat()) assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
    await pool.query("update holds set unsettled_at = clock_timestamp() - interval '25 hours'")
    assert.equal(await resolveOverdue({ pool, log: silentLog, by: WORKER }, 24 * 3_600), 6)
    assert.equal(await resolveOverdue({ pool, log: silentLog, by: WORKER }, 24 * 3_600), 0)
    for (const [n, { workspaceId, party }] of parties.entries()) {
      const [deed, ...others] = await deedsOf(party.accountId)
      assert.deepEqual(others, [])
      const { calls: voided, ...after } = deed?.after ?? {}
      assert.deepEqual(
        { ...deed, after },
        {
          ...{ actor: WORKER.actor, action: 'calls.voided', workspaceId, subject: party.accountId },
          before: { state: 'unsettled' },
          after: { state: 'voided', overrun: '0.003000000' },
        },
      )
      assert.deepEqual([voided].flat().toSorted(), calls[n]?.map(({ id }) => id).toSorted())
    }
  })

  it('stay as they are where that can not be written down', async () => {
    const { party } = await payment()
    const call = callOf(party, { hold: 1_000_000n })
    await session.begin(call)
    await pool.query("update holds set unsettled_at = clock_timestamp() - interval '25 hours' where id = $1", [call.id])
    await pool.query("alter table audit add constraint nothing_voided check (action <> 'calls.voided') not valid")
    await assert.rejects(resolveOverdue({ pool, log: silentLog, by: WORKER }, 24 * 3_600), /nothing_voided/)
    await pool.query('alter table audit drop constraint nothing_voided')
    assert.equal((await pool.query('select from holds where id = $1', [call.id])).rowCount, 1)
  })
})

describe('plans', () => {
  it('leave a row when they are made, changed and given', async () => {
    const { workspaceId } = await makeCustomer(pool)
    await saveCustomerPlan({ pool, by: ACTOR }, 'half', rational(1n, 2n))
    await saveCustomerPlan({ pool }, 'half', rational(1n, 3n))
    await setCustomerPlan({ pool, ids }, ACTOR, workspaceId, 'half')
    const set = { action: 'plan.set', workspaceId: null, subject: 'half' }
    assert.deepEqual(await deedsOf('half'), [
      { ...set, actor: 'service farebox', before: { multiplier: '1/2' }, after: { multiplier: '1/3' } },
      { ...set, actor: ACTOR.actor, before: null, after: { multiplier: '1/2' } },
    ])
    const [given] = await deedsOf(workspaceId)
    assert.deepEqual(
      [given?.action, given?.before, given?.after],
      ['workspace.plan_set', { plan: 'standard' }, { plan: 'half' }],
    )
  })
})
