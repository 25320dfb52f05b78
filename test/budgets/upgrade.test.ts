import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { setKeyBudget } from '../../server/src/identity/key-changes.ts'
import { removeBudget, setBudget } from '../../server/src/identity/set-budgets.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ACTOR, type Customer, ids, makeCustomer } from '../acceptance/installation.ts'
import { connect, holdOf } from '../ledger/world.ts'
import { countedOf, set } from './setting.ts'

/** A process of the release before knows budgets of keys alone. It says so by renewing its lease as it always did. */
const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const renewAsBefore = (owner: string) => pool.query('select * from renew_lease(owner => $1, seconds => 10)', [owner])
const end = (owner: string) => pool.query('update owners set lease_until = clock_timestamp() where id = $1', [owner])

/** A call of 10 nanos as processes of the release before begin one. */
async function beginAsBefore({ accountId, keyId }: Customer, allowanceId?: Id): Promise<string> {
  const allowances = allowanceId === undefined ? [] : [allowanceId]
  const { rows } = await pool.query<{ outcome: string }>(
    `select outcome from begin_calls(
       owner_id_in => $1, accounts_in => array[$2]::uuid[], credentials_in => array[$3]::uuid[], window_credentials => '{}', window_groups => '{}',
       window_seconds => '{}', allowances_in => $4::uuid[], set_credentials => '{}', set_scopes => '{}', set_keys => '{}',
       call_days => array[(clock_timestamp() at time zone 'UTC')::date], call_ids => array[$5]::uuid[], call_accounts => '{1}', call_credentials => '{1}',
       call_holds => '{true}', call_amounts => '{10}', call_tokens => '{0}', call_operations => '{before}', call_terms => array['{}'],
       call_allowances => array[$4::uuid[]::text], call_token_groups => array['{}'], ask_windows_to => '{0}', ask_windows => '{}',
       ask_request_limits => '{}', ask_token_limits => '{}', ask_allowances_to => array[cardinality($4::uuid[])],
       ask_allowances => array(select generate_subscripts($4::uuid[], 1)), ask_sets_to => '{0}', ask_sets => '{}', ask_set_limits => '{}',
       ask_fingerprints => '{}', ask_keep_seconds => '{}', ask_ends_with_owner => '{}')`,
    [ids.next(), accountId, keyId, allowances, ids.next()],
  )
  return rows[0]?.outcome ?? ''
}

describe('while a new release is rolled out', () => {
  it('no budget is set that a process of the release before would not hold calls against', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    const wanted = { workspaceId, mode: 'test', kind: 'workspace', subject: '', label: '' } as const
    const budget = { period: 'month', amount: nanos(1n) } as const
    const [before, after] = [ids.next(), ids.next()]
    await renewAsBefore(before)
    await pool.query('select * from renew_lease_knowing(owner => $1, seconds => 10, knows_in => 1)', [after])
    await assert.rejects(
      setBudget({ pool }, ACTOR, { ...wanted, budget }),
      /A process of the release before is still running/,
    )
    assert.equal((await pool.query('select from budgets')).rowCount, 0)
    const weekly = { period: 'week', amount: nanos(1n) } as const
    await assert.rejects(
      setKeyBudget({ pool, ids }, ACTOR, keyId, weekly),
      /A process of the release before is still running/,
    )
    await setKeyBudget({ pool, ids }, ACTOR, keyId, budget)
    await end(before)
    await setKeyBudget({ pool, ids }, ACTOR, keyId, weekly)
    const made = await setBudget({ pool }, ACTOR, { ...wanted, budget })
    await assert.rejects(renewAsBefore(before), /budgets that this release of the program does not know/)
    await assert.rejects(renewAsBefore(ids.next()), /budgets that this release of the program does not know/)
    await removeBudget({ pool }, ACTOR, made.id)
    await renewAsBefore(before)
    await end(before)
  })

  it('calls of both releases together never pass the budget of a key', async () => {
    const customer = await makeCustomer(pool, { key: { budget: { period: 'total', amount: nanos(105n) } } })
    const { rows } = await pool.query<{ id: Id }>('select allowance_id as id from api_keys where id = $1', [
      customer.keyId,
    ])
    const allowanceId = rows[0]?.id ?? ''
    const beginNow = async () => {
      const hold = holdOf(10n, [allowanceId])
      const { accountId, keyId: credentialId } = customer
      const call = {
        id: ids.next(),
        accountId,
        credentialId,
        operation: 'new',
        hold,
        tokens: 0,
        windows: [],
        claims: [],
      }
      return (await calls.begin(call)).outcome
    }
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? beginAsBefore(customer, allowanceId) : beginNow())),
    )
    assert.equal(all.filter((outcome) => outcome === 'begun').length, 10)
    assert.equal(all.filter((outcome) => outcome === 'allowance_spent').length, 30)
    assert.equal(await countedOf(pool, allowanceId), 100n)
    assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
  })

  it('a process of the release before that slept while a budget was set begins nothing for that account any more', async () => {
    const [customer, other] = [await makeCustomer(pool), await makeCustomer(pool)]
    assert.equal(await beginAsBefore(customer), 'begun')
    const made = await set(pool, customer, { kind: 'workspace', amount: 1_000n })
    await assert.rejects(beginAsBefore(customer), /budgets that this release of the program does not know/)
    assert.equal(await beginAsBefore(other), 'begun')
    await removeBudget({ pool }, ACTOR, made.id)
    assert.equal(await beginAsBefore(customer), 'begun')
  })

  it('neither can slip past the other: who starts and who sets at once, one of them is refused', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { workspaceId } = await makeCustomer(pool)
      await pool.query('delete from budgets; update owners set lease_until = clock_timestamp()')
      const owner = ids.next()
      const wanted = { workspaceId, mode: 'test', kind: 'workspace', subject: '', label: '' } as const
      const both = await Promise.allSettled([
        setBudget({ pool }, ACTOR, { ...wanted, budget: { period: 'day', amount: nanos(1n) } }),
        renewAsBefore(owner),
      ])
      assert.ok(
        both.some(({ status }) => status === 'rejected'),
        'both went on',
      )
    }
  })
})
