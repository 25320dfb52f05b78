import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { CROWD, createAdapter, REFRESH_GRACE, REFRESH_TOKENS_OF_GRANT } from '../../server/src/authorization/adapter.ts'
import { makeGrant } from '../../server/src/grants/grants.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { hashOf } from '../../server/src/people/tokens.ts'
import { ACTOR, ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { MCP, SITE, serverHere } from './server-here.ts'

/** What the library keeps, where several of its requests meet between two statements. */
const { url } = await freshDatabase()
const { pools } = connect(url)
after(() => pools.close())
const pool = pools.rest
const server = serverHere({ pool, seal: createSeal({ current: makeMasterKey() }) })
const adapterOf = createAdapter({ ...server, issuer: SITE })
const { workspaceId } = await makeCustomer(pool)

async function givenGrant(): Promise<string> {
  const { personId } = await makeMember(pool, workspaceId)
  const grant = { workspaceId, mode: 'live', personId, clientId: 'a-client', clientName: 'A client' } as const
  const { id } = await makeGrant({ pool, ids }, ACTOR, { ...grant, audiences: [MCP], scopes: ['agent'] })
  return id
}

async function endOf(grantId: string) {
  const { rows } = await pool.query(
    `select revoked_at is not null as "isRevoked", (select count(*)::integer from outbox) as letters
     from grants where id = $1`,
    [grantId],
  )
  return rows[0]
}

describe('a refresh token', () => {
  it('that is out of its grace only when it is taken ends the grant, and the person is told', async () => {
    const grantId = await givenGrant()
    const tokens = adapterOf('RefreshToken')
    await tokens.upsert('a-token', { grantId, clientId: 'a-client' }, 60)
    for (let taken = 0; taken < REFRESH_GRACE.most; taken += 1) await tokens.consume('a-token')
    assert.deepEqual(await endOf(grantId), { isRevoked: false, letters: 0 })
    await assert.rejects(async () => tokens.consume('a-token'), { error: 'invalid_grant' })
    assert.deepEqual(await endOf(grantId), { isRevoked: true, letters: 1 })
  })
  it('falls where its grant has too many that nobody took; what was taken stays known', async () => {
    const grantId = await givenGrant()
    const tokens = adapterOf('RefreshToken')
    const names = Array.from({ length: REFRESH_TOKENS_OF_GRANT + 2 }, (_, at) => `token-${at}`)
    const [first = '', second = '', third = ''] = names
    for (const name of names) {
      await tokens.upsert(name, { grantId, clientId: 'a-client' }, 60)
      if (name === first) await tokens.consume(first)
    }
    assert.notEqual(await tokens.find(first), undefined)
    assert.equal(await tokens.find(second), undefined)
    assert.notEqual(await tokens.find(third), undefined)
  })
})

describe('what a person has answered', () => {
  it('is gone on with once, by whoever comes first', async () => {
    const interactions = adapterOf('Interaction')
    await interactions.upsert('a-request', { result: {} }, 60)
    const ends = await Promise.allSettled([1, 2, 3].map(async () => interactions.destroy('a-request')))
    assert.deepEqual(ends.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected'])
  })
})

describe('requests of strangers', () => {
  it('are bounded for a network, and for all of them, where the most crowded pay', async () => {
    const { states } = server
    const crowd = { ofNetwork: 3, all: 5 }
    const ask = async (name: string, network: string) => {
      const stranger = hashOf(network)
      await states.keep('Asked', name, { payload: {}, seconds: 60, network: stranger })
      await states.forgetCrowd('Asked', stranger, crowd)
    }
    const kept = async (names: readonly string[]) => {
      const found = await Promise.all(names.map(async (name) => ((await states.find('Asked', name)) ? name : [])))
      return found.flat()
    }
    await ask('waits', 'somebody')
    const flood = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3', 'b4']
    for (const name of flood) await ask(name, name.slice(0, 1))
    assert.deepEqual(await kept(['waits', ...flood]), ['waits', 'a3', 'a4', 'b3', 'b4'])
    const interactions = adapterOf('Interaction')
    const names = Array.from({ length: CROWD.ofNetwork + 1 }, (_, at) => `request-${at}`)
    for (const name of names) await interactions.upsert(name, {}, 60)
    assert.equal(await interactions.find(names[0] ?? ''), undefined)
    assert.notEqual(await interactions.find(names[1] ?? ''), undefined)
  })
})
