import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { codeOf, errorOf, makeCustomer, ask as send } from '../acceptance/installation.ts'
import { ask, makeTeam, startHouse } from './house.ts'

/** Enough for a rerank, and for no second one. */
const GIFT = '0.000008'
const CALL = { query: 'a quick animal', documents: ['a snail', 'a fox', 'a stone'] }

const database = await freshDatabase()
const house = await startHouse(database.url, { processes: 2, env: { FAREBOX_PEOPLE_TEST_CREDIT: GIFT } })
const { pool, siteUrl, gateway, more } = house
after(house.stop)

/** A workspace that somebody makes, with keys that they make, as the console does it. */
async function newWorkspace() {
  const owner = (await makeTeam(pool, ['owner'])).of('owner')
  const made = await ask(siteUrl, owner, '/workspaces', { method: 'POST', body: { name: 'New' } })
  const path = `/workspaces/${made.json.id}`
  const keyOf = async (mode: 'test' | 'live') => {
    const { json } = await ask(siteUrl, owner, `${path}/keys?mode=${mode}`, {
      ...{ method: 'POST', body: { name: 'Mine' } },
    })
    assert.match(String(json.secret), /^fb_/, JSON.stringify(json))
    return String(json.secret)
  }
  const balance = async () =>
    Number(Object(Object((await ask(siteUrl, owner, `${path}/balance?mode=test`)).json).available).usd)
  return { id: String(made.json.id), keyOf, balance }
}

const rerank = (key: string, url = gateway.url, headers = {}) => send(url, key, '/v1/rerank', { body: CALL, headers })

async function creditsOf(workspaceId: string): Promise<number> {
  const { rows } = await pool.query(
    'select count(*)::integer as credits from entries where account_id = (select test_account_id from workspaces where id = $1)',
    [workspaceId],
  )
  return rows[0].credits
}

describe('a new workspace', () => {
  it('has test money, so that a key that somebody makes makes a call', async () => {
    const { keyOf, balance } = await newWorkspace()
    assert.equal(await balance(), Number(GIFT))
    assert.equal((await rerank(await keyOf('test'))).status, 200)
    assert.ok((await balance()) < Number(GIFT))
  })

  it('gets it again once a day, when a test call would be refused for it, and a quote says so before', async () => {
    // One that was made before there was test money.
    const { workspaceId: id, secret: key } = await makeCustomer(pool, { money: 8_000n })
    const quote = async () => {
      const { json } = await rerank(key, gateway.url, { 'x-farebox-cost-mode': 'quote' })
      return Object(json.admission).fits
    }
    let calls = 0
    while ((await creditsOf(id)) === 1 && calls < 40) {
      assert.equal(await quote(), true)
      assert.equal((await rerank(key, more[0]?.url)).status, 200)
      calls += 1
    }
    assert.equal(await creditsOf(id), 2)
    let last = await rerank(key)
    while (last.status === 200) last = await rerank(key)
    assert.equal(codeOf(last), 'insufficient_balance')
    assert.equal(await quote(), false)
    assert.equal(await creditsOf(id), 2, 'and no more that day, from any process')
    assert.equal(codeOf(await rerank(key, more[0]?.url)), 'insufficient_balance')
  })

  it('is told with a live key that there is no live provider, and that a test key may work', async () => {
    const told = await rerank(await (await newWorkspace()).keyOf('live'))
    assert.equal(codeOf(told), 'not_configured')
    assert.match(String(errorOf(told).message), /this installation has none for this operation\. A test key may work/)
  })
})
