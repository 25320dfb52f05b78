import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { call, codeOf } from '../acceptance/installation.ts'
import { ask, makeTeam, startHouse } from './house.ts'

/** Everybody who has the link of a ticket spends at once, on two processes. */

const CALLS = 50
const FIT = 20
/** Of tag_detail, which costs that whatever comes of it. */
const PRICE_NANOS = 1_450_000n

const database = await freshDatabase()
const house = await startHouse(database.url, { processes: 2 })
after(house.stop)
const team = await makeTeam(house.pool)
const urls = [house.gateway.url, ...house.more.map(({ url }) => url)]

describe('a ticket that many spend at once', () => {
  it(`begins ${FIT} of ${CALLS} calls where its total fits ${FIT}, and refuses the others before they cost anything`, async () => {
    const amount = `0.${String(PRICE_NANOS * BigInt(FIT)).padStart(9, '0')}`
    const { json } = await ask(house.siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/keys?mode=test`, {
      method: 'POST',
      body: {
        ...{ kind: 'ticket', name: 'for a room', expires_at: new Date(Date.now() + 86_400_000).toISOString() },
        budget: { period: 'total', amount_usd: amount },
      },
    })
    const made = await Promise.all(
      Array.from({ length: CALLS }, (_, at) => call(urls[at % urls.length] ?? '', String(json.secret), 'tag_detail')),
    )
    const refused = made.filter(({ status }) => status !== 200)
    assert.equal(made.length - refused.length, FIT)
    assert.deepEqual(new Set(refused.map(codeOf)), new Set(['budget_exceeded']))
    const left = await ask(house.siteUrl, null, '/ticket', { method: 'POST', body: { secret: json.secret } })
    assert.equal(Object(left.json.left).usd, '0.000000000')
    assert.equal(Object(left.json.charged).usd, amount)
    const { rows } = await house.pool.query(
      'select count(*)::integer as calls, sum(amount)::text as amount from charges where credential_id = $1 and amount > 0',
      [json.id],
    )
    assert.deepEqual(rows, [{ calls: FIT, amount: String(PRICE_NANOS * BigInt(FIT)) }])
  })
})
