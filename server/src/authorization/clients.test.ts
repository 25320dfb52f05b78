import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { connect } from '../../../test/ledger/world.ts'
import { hashOf } from '../people/tokens.ts'
import type { Query } from '../storage/transaction.ts'
import { createClients } from './clients.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
after(() => pools.close())
const pool = pools.rest
const ask: Query = (text, values = []) => pool.query(text, [...values])

async function kept(): Promise<readonly string[]> {
  const { rows } = await pool.query('select id from oauth_clients order by created_at')
  return rows.map(({ id }) => String(id))
}

describe('registrations that no person has allowed', () => {
  it('are bounded for a network and for all, the oldest go first, and what a person allowed stays', async () => {
    const clients = createClients({ pool, bounds: { unconfirmed: 40, unconfirmedOfNetwork: 5 } })
    await clients.add('allowed', {}, hashOf('a'))
    assert.equal(await clients.confirm(ask, 'allowed'), true)
    for (let n = 0; n < 20; n += 1) await clients.add(`a${n}`, {}, hashOf('a'))
    assert.deepEqual(await kept(), ['allowed', 'a15', 'a16', 'a17', 'a18', 'a19'])
    for (let n = 0; n < 100; n += 1) await clients.add(`b${n}`, {}, hashOf(`b${n}`))
    const left = await kept()
    assert.equal(left.length, 41)
    assert.equal(left[0], 'allowed')
    assert.equal(left.at(-1), 'b99')
    assert.equal(await clients.confirm(ask, 'a19'), false, 'it was forgotten')
  })

  it('are pushed out by a flood from elsewhere only after what is the flood’s own', async () => {
    await pool.query('delete from oauth_clients')
    const clients = createClients({ pool, bounds: { unconfirmed: 20, unconfirmedOfNetwork: 5 } })
    await clients.add('waits', {}, hashOf('somebody'))
    for (let n = 0; n < 200; n += 1) await clients.add(`f${n}`, {}, hashOf(`f${n % 10}`))
    const left = await kept()
    assert.equal(left.length, 20)
    assert.equal(left[0], 'waits')
    assert.equal(left.at(-1), 'f199')
  })

  it('make room for a hundredth more where there are too many, so that not everybody who comes has to look for it', async () => {
    await pool.query('delete from oauth_clients')
    const clients = createClients({ pool, bounds: { unconfirmed: 200, unconfirmedOfNetwork: 5 } })
    const sizes: number[] = []
    for (let n = 0; n < 206; n += 1) {
      await clients.add(`r${n}`, {}, hashOf(`r${n}`))
      sizes.push((await kept()).length)
    }
    assert.deepEqual(sizes.slice(-7), [200, 198, 199, 200, 198, 199, 200])
    assert.equal((await kept()).at(-1), 'r205')
  })

  it('stay bounded however many come at once', async () => {
    const clients = createClients({ pool, bounds: { unconfirmed: 40, unconfirmedOfNetwork: 5 } })
    await Promise.all(Array.from({ length: 400 }, (_, n) => clients.add(`c${n}`, {}, hashOf(`c${n % 100}`))))
    await clients.add('last', {}, hashOf('last'))
    assert.ok((await kept()).length <= 41 + 20, `${(await kept()).length} are kept`)
    assert.ok((await kept()).includes('last'))
  })
})
