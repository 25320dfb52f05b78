import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { findGrant } from '../../server/src/grants/grants.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { makeGranted, makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { startShell } from './command-shell.ts'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
after(() => pools.close())
const { farebox, said } = startShell({ ...process.env, FAREBOX_DATABASE_URL: url })

describe('farebox grants', () => {
  it('lists those of a customer, with whom they are for and what they may spend', async () => {
    const { workspaceId } = await makeCustomer(pool)
    assert.equal(await said('grants', 'list', workspaceId), 'There are no grants.\n')
    const { personId } = await makeMember(pool, workspaceId)
    const clientName = 'A \u001b[31mred\u001b[0m client'
    const { id, token } = await makeGranted(pool, { workspaceId, personId, clientName })
    const scopes = ['account.read'] as const
    const reads = await makeGranted(pool, { workspaceId, personId, budget: null, scopes })
    const [first = '', second = '', ...rest] = (await said('grants', 'list', workspaceId)).trimEnd().split('\n')
    assert.deepEqual(rest, [])
    const client = '(https://client.example.com/me.json)'
    assert.equal(
      first,
      `${reads.id}  live  A client ${client}  of person ${personId}  account.read  active  no budget, so it cannot pay`,
    )
    assert.equal(
      second,
      `${id}  live  A ?[31mred?[0m client ${client}  of person ${personId}  calls  active  1000.000000000 USD per month`,
    )
    assert.ok(!(first + second).includes(token.slice(-49, -6)))
  })

  it('revokes one', async () => {
    const { workspaceId } = await makeCustomer(pool)
    const { id } = await makeGranted(pool, { workspaceId })
    assert.match(await said('grants', 'revoke', id), /is revoked: its tokens can no longer start paid calls/)
    assert.equal((await findGrant(pool, id))?.isActive, false)
    assert.match(await said('grants', 'list', workspaceId), /revoked 20/)
  })

  it('says what is wrong with what is no grant and no account', async () => {
    const [id, nobody] = [ids.next(), 'nobody']
    assert.deepEqual(await farebox('grants', 'revoke', id), {
      code: 1,
      output: `farebox: there is no grant ${id}\n`,
      stdout: '',
    })
    assert.deepEqual(await farebox('grants', 'list', id), {
      code: 1,
      output: `farebox: there is no account ${id}\n`,
      stdout: '',
    })
    assert.equal((await farebox('grants', 'revoke', nobody)).output, 'farebox: "nobody" is not an id\n')
  })
})
