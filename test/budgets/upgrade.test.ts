import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { removeBudget, setBudget } from '../../server/src/identity/set-budgets.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { ACTOR, ids, makeCustomer } from '../acceptance/installation.ts'
import { connect } from '../ledger/world.ts'

/** A process of the release before knows budgets of keys alone. It says so by renewing its lease as it always did. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const renewAsBefore = (owner: string) => pool.query('select * from renew_lease(owner => $1, seconds => 10)', [owner])
const end = (owner: string) => pool.query('update owners set lease_until = clock_timestamp() where id = $1', [owner])

describe('while a new release is rolled out', () => {
  it('no budget is set that a process of the release before would not hold calls against', async () => {
    const { workspaceId } = await makeCustomer(pool)
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
    await end(before)
    const made = await setBudget({ pool }, ACTOR, { ...wanted, budget })
    await assert.rejects(renewAsBefore(before), /budgets that this release of the program does not know/)
    await assert.rejects(renewAsBefore(ids.next()), /budgets that this release of the program does not know/)
    await removeBudget({ pool }, ACTOR, made.id)
    await renewAsBefore(before)
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
