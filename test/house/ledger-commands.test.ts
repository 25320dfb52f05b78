import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { makeCustomer } from '../identity/customers.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, postOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { type Ended, startShell } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const { farebox } = startShell({ ...process.env, FAREBOX_DATABASE_URL: database.url })

async function ledger(...args: readonly string[]): Promise<Ended> {
  const { code, output } = await farebox('ledger', ...args)
  return { code, output }
}

async function unsettledCall() {
  const { workspaceId, accountId, keyId } = await makeCustomer(pool, { paid: 5_000_000_000n })
  const party = { accountId, credentialId: keyId }
  const call = callOf(party, { hold: 2_000_000_000n })
  assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
  await pool.query('select mark_unsettled(array[$1::uuid], (select owner_id from holds where id = $1))', [call.id])
  return { workspaceId, party, call }
}

async function deedsOf(callId: string) {
  const { rows } = await pool.query<Record<'actor' | 'action' | 'workspace_id' | 'before' | 'after', unknown>>(
    'select actor, action, workspace_id, before, after from audit where subject = $1',
    [callId],
  )
  return rows
}

describe('farebox ledger', () => {
  it('lists, explains and resolves an unsettled call by what the upstream says', async () => {
    const { workspaceId, party, call } = await unsettledCall()
    assert.match((await ledger('unsettled')).output, new RegExp(`${call.id}.*holds 2\\.000000000 USD`))
    assert.match((await ledger('explain', call.id)).output, /is unsettled since .*farebox ledger resolve/s)
    assert.deepEqual(await ledger('resolve', call.id, '--charge', '2.5'), {
      code: 0,
      output: `Call ${call.id} is posted: 2.000000000 USD charged. 0.500000000 USD exceeded the hold and are our loss.\n`,
    })
    assert.match(
      (await ledger('explain', call.id)).output,
      /was charged 2\.000000000 USD\. It ended at .*overrun 0\.500000000 USD \(our loss\)/s,
    )
    assert.match(
      (await ledger('explain', party.accountId)).output,
      /charged 2\.000000000 USD.*3\.000000000 USD available/s,
    )
    assert.equal((await moneyOf(pool, party)).held, 0n)
    assert.deepEqual(await ledger('verify'), { code: 0, output: 'The ledger is consistent: every invariant holds.\n' })
    assert.deepEqual(await deedsOf(call.id), [
      {
        actor: `operator ${userInfo().username}`,
        action: 'call.resolved',
        workspace_id: workspaceId,
        before: { state: 'unsettled' },
        after: { state: 'posted', usd: '2.000000000', overrun: '0.500000000' },
      },
    ])
  })

  it('ends no call whose end can not be written into the audit log', async () => {
    const { party, call } = await unsettledCall()
    const before = await moneyOf(pool, party)
    await pool.query("alter table audit add constraint nobody_resolves check (action <> 'call.resolved') not valid")
    const failed = await ledger('resolve', call.id, '--charge', '1')
    await pool.query('alter table audit drop constraint nobody_resolves')
    assert.equal(failed.code, 1)
    assert.match(failed.output, /nobody_resolves/)
    assert.deepEqual([await moneyOf(pool, party), await deedsOf(call.id)], [before, []])
    assert.equal((await ledger('resolve', call.id, '--charge', '1')).code, 0)
    assert.equal((await deedsOf(call.id)).length, 1)
  })

  it('voids one that was never executed, once', async () => {
    const { party, call } = await unsettledCall()
    assert.match((await ledger('resolve', call.id, '--void')).output, /is voided: 0\.000000000 USD/)
    assert.equal((await moneyOf(pool, party)).charged, 0n)
    const again = await ledger('resolve', call.id, '--charge', '1')
    assert.equal(again.code, 1)
    assert.match(again.output, /is not unsettled/)
    assert.equal((await deedsOf(call.id)).length, 1, 'what did not happen is not written down')
  })

  it('does not touch a call that somebody runs, or one that has ended', async () => {
    const party = await makeParty(pool, nanos(1_000n))
    const [running, ended] = [callOf(party, { hold: 10n }), callOf(party, { hold: 10n })]
    await session.begin(running, ended)
    await session.end(postOf(ended, 5n))
    for (const { id } of [running, ended]) assert.equal((await ledger('resolve', id, '--void')).code, 1)
    assert.match((await ledger('explain', running.id)).output, /is running since .*, by process/)
    assert.deepEqual(await moneyOf(pool, party), { credited: 1_000n, debt: 0n, charged: 5n, held: 10n, promo: 0n })
  })

  for (const [what, args, says] of [
    ['neither a charge nor a void', ['resolve', '01a1dd7c-3f6a-7000-93b4-661a883f55ec'], /either --charge <usd>/],
    ['what is no id', ['explain', 'nonsense'], /"nonsense" is not an id/],
    [
      'an id that nobody knows',
      ['explain', '01a1dd7c-3f6a-7000-93b4-661a883f55ec'],
      /there is no account, key, call, task, entry or quote 01a1dd7c/,
    ],
    ['less than nothing', ['resolve', '01a1dd7c-3f6a-7000-93b4-661a883f55ec', '--charge', '-1'], /must be 0 or more/],
  ] as const) {
    it(`says what is wrong when it is given ${what}`, async () => {
      const { code, output } = await ledger(...args)
      assert.equal(code, 1)
      assert.match(output, says)
    })
  }
})
