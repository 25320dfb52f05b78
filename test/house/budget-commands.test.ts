import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { startShell } from './command-shell.ts'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
after(() => pools.close())
const { farebox, said } = startShell({ ...process.env, FAREBOX_DATABASE_URL: url })
const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/
const idIn = (output: string) => ID.exec(output)?.[0] ?? assert.fail(output)

describe('farebox budgets', () => {
  it('sets, lists, changes and removes budgets of every kind', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    const { memberId, email } = await makeMember(pool, workspaceId)
    assert.equal(await said('budgets', 'list', workspaceId), 'There are no budgets.\n')
    const all = idIn(await said('budgets', 'set', workspaceId, '100/month'))
    await said('budgets', 'set', workspaceId, '20/week', '--member', email)
    await said('budgets', 'set', workspaceId, '5/day', '--tag', 'team=search')
    await said('budgets', 'set', workspaceId, '1/total', '--tag', 'run=*')
    await said('budgets', 'set', workspaceId, '0.5/day', '--end-user', '*')
    const alices = idIn(await said('budgets', 'set', workspaceId, '2/day', '--end-user', 'alice'))
    await said('keys', 'budget', keyId, '3/week')
    await said('budgets', 'set', workspaceId, '9/total', '--test')
    const lines = (await said('budgets', 'list', workspaceId)).trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => line.replace(ID, 'id')),
      [
        'id  the workspace  100.000000000 USD per month  100.000000000 left',
        'id  member Some One  20.000000000 USD per week  20.000000000 left',
        'id  each value of tag run  1.000000000 USD in total',
        'id  tag team=search  5.000000000 USD per day  5.000000000 left',
        'id  each end user  0.500000000 USD per day',
        'id  end user "alice"  2.000000000 USD per day  2.000000000 left',
        'id  key first  3.000000000 USD per week  3.000000000 left',
      ],
    )
    assert.match(await said('budgets', 'list', workspaceId, '--test'), /the workspace {2}9\.000000000 USD in total/)
    assert.match(await said('budgets', 'change', all, '80'), /may spend 80\.000000000 USD per month/)
    assert.match(
      await said('budgets', 'remove', alices),
      /The budget of end user "alice", 2\.000000000 USD per day, is removed/,
    )
    assert.doesNotMatch(await said('budgets', 'list', workspaceId), /alice/)
    assert.match(await said('keys', 'assign', keyId, memberId), /is assigned to member/)
    assert.match(await said('keys', 'show', keyId), new RegExp(`Tags: none\nMember: ${memberId}`))
    assert.match(await said('keys', 'change', keyId, '--tag', 'team=search,env=live'), /tagged env=live, team=search/)
  })

  it('says what is wrong', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    const nobody = ids.next()
    const refusal = async (...line: readonly string[]) => {
      const { code, output } = await farebox(...line)
      assert.equal(code, 1, output)
      return output
    }
    assert.match(await refusal('budgets', 'set', workspaceId, '5/year'), /is not a budget: use 20\/month, 10\/week/)
    assert.match(await refusal('budgets', 'set', workspaceId, '5/day', '--tag', 'team'), /name=value/)
    assert.match(
      await refusal('budgets', 'set', workspaceId, '5/day', '--tag', 'a=b', '--end-user', 'c'),
      /of one thing/,
    )
    assert.match(
      await refusal('budgets', 'set', workspaceId, '5/day', '--member', 'x@example.com'),
      /there is no member/,
    )
    assert.match(await refusal('budgets', 'set', nobody, '5/day'), /there is no account/)
    assert.match(await refusal('budgets', 'remove', nobody), /there is no budget/)
    assert.match(await refusal('budgets', 'change', nobody, '5'), /there is no budget/)
    assert.match(await refusal('keys', 'assign', keyId, nobody), /there is no member/)
    assert.match(await refusal('keys', 'change', keyId, '--tag', 'a=1,a=2'), /stands twice/)
  })
})
