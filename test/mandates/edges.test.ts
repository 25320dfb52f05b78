import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { emptyApprovals } from '../../server/src/grants/approvals.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { readBudget } from '../../server/src/ledger/balance.ts'
import { ask, codeOf, errorOf } from '../acceptance/installation.ts'
import { startMcpHouse } from '../agents/mcp-house.ts'
import { AUDIENCE, makeGranted } from '../identity/granted.ts'
import { newPkce, toConsent } from '../oauth/client.ts'
import {
  approvalOf,
  callTool,
  changeTerms,
  decide,
  giveMandate,
  makeGiver,
  OPENS_PAGES,
  type Told,
  trace,
  use,
} from './house.ts'

/** Mandates where two things meet: an amount of nothing and a raise, a change and a call that waits, a call that was made and asked for again. */
const house = await startMcpHouse({ FAREBOX_HTTP_PUBLIC_URL: AUDIENCE })
after(house.stop)
const { pool } = house
const giver = await makeGiver(house)

/** A call of 0.01 USD is above what these mandates allow for one. */
const LIMIT = { amount: '1.00', call: '0.005' }
let next = 0
function fresh(): { readonly ticker: string } {
  next += 1
  return { ticker: `E${next}` }
}
const figures = (token: string, given: object = fresh(), extra = {}): Promise<Told> =>
  use(house, token, 'financial_metrics_snapshot', given, extra)

describe('an amount in total', () => {
  it('counts what was charged before it was set to nothing, also while it was paused', async () => {
    const { token, grantId } = await giveMandate(house, giver, { amount: '0.02', call: '0.02' })
    assert.equal((await figures(token)).structured.cost_usd, '0.010000000')
    await changeTerms(giver, grantId, { amount: '0' })
    const refused = await figures(token)
    assert.equal(refused.code, 'budget_exceeded', JSON.stringify(refused.structured))
    await changeTerms(giver, grantId, { amount: '0.02' })
    assert.equal((await figures(token)).structured.cost_usd, '0.010000000')
    assert.equal((await figures(token)).code, 'budget_exceeded', 'no more in all than the sentence says')

    const page = `/mandates/${grantId}`
    await giver.visitor.fill(page, {}, `${page}/pause`)
    await changeTerms(giver, grantId, { amount: '0' })
    await changeTerms(giver, grantId, { amount: '0.02' })
    await giver.visitor.fill(page, {}, `${page}/resume`)
    assert.match(String((await figures(token)).code), /budget_exceeded|mandate_paused/)
    const { rows } = await pool.query<{ id: Id }>('select allowance_id as id from grants where id = $1', [grantId])
    const { amount, spent } = (await readBudget(pool, rows[0]?.id ?? '')) ?? {}
    assert.deepEqual([amount, spent], [usd('0.02'), usd('0.02')])
  })
})

describe('a client that asks again', () => {
  it('is shown with what it has, also where that is paused', async () => {
    const { grantId, clientId } = await giveMandate(house, giver, { amount: '5.00' })
    await giver.visitor.fill(`/mandates/${grantId}`, {}, `/mandates/${grantId}/pause`)
    const path = await toConsent(giver.visitor, { clientId, pkce: newPkce(), changed: { resource: house.mcpUrl } })
    assert.match((await giver.visitor.get(path)).text, /<b>\$5\.00<\/b> left when it is resumed: it is paused/)
  })
})

describe('a call that is refused for its person to decide', () => {
  it('takes nothing of what a batch may cost, wherever it stands', async () => {
    const { token } = await giveMandate(house, giver, { ...LIMIT, may_social: 'yes' })
    const calls = [
      { operation_id: 'financial_metrics_snapshot', arguments: fresh() },
      { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } },
    ]
    const { structured } = await callTool(house, token, 'batch_use', { calls, max_total_usd: 0.1 })
    const [first, second] = [Object(structured.results)].flat()
    assert.equal(first.error.code, 'approval_required')
    assert.equal(second.cost_usd, '0.001450000', JSON.stringify(structured))
  })

  it('is made by what its mandate has become while it waited', async () => {
    const { token, grantId } = await giveMandate(house, giver, { ...LIMIT, may_social: 'yes' })
    const given = fresh()
    const { result } = await figures(token, given, { meta: OPENS_PAGES })
    const state = String(result.requestState)
    const before = await trace(house, giver)
    const params = { requestState: state, inputResponses: { approval: { action: 'accept' } } }
    const waiting = figures(token, given, { meta: OPENS_PAGES, params })
    await changeTerms(giver, grantId, { may_finance: '' })
    // Every process knows of the change by now, for whom it is asked anew.
    let told = await figures(token, fresh())
    for (let look = 0; look < 600 && told.code !== 'forbidden'; look += 1) told = await figures(token, fresh())
    await decide(giver, `/approvals/${state}`, 'once')
    assert.equal((await waiting).code, 'forbidden')
    assert.deepEqual(await trace(house, giver), before)
    approvalOf(house, await figures((await giveMandate(house, giver, LIMIT)).token, given))
  })
})

describe('an approval', () => {
  it('is for one execution, whatever comes of it: a provider that fails is not asked again', async () => {
    const { token } = await giveMandate(house, giver, LIMIT)
    const given = fresh()
    const { id, path } = approvalOf(house, await figures(token, given))
    await decide(giver, path, 'once')
    await house.site.sandbox.fault('financial', ['status=500'])
    const before = await trace(house, giver)
    const failed = await figures(token, given)
    assert.deepEqual([failed.structured.status, failed.structured.cost_usd], [500, '0.000000000'])
    const { spent, upstream } = await trace(house, giver)
    assert.deepEqual([spent, upstream], [before.spent, before.upstream + 1], 'asked once, and nothing charged')
    const again = approvalOf(house, await figures(token, given))
    assert.notEqual(again.id, id)
    assert.equal((await trace(house, giver)).upstream, upstream)
    assert.match((await giver.visitor.get(again.path)).text, /The same call was made at/)
    assert.match((await giver.visitor.get(path)).text, /The call was made/)
  })

  it('is given back by a call that never began', async () => {
    const { token, grantId } = await giveMandate(house, giver, { ...LIMIT, amount: '0.005' })
    const given = fresh()
    await decide(giver, approvalOf(house, await figures(token, given)).path, 'once')
    assert.equal((await figures(token, given)).code, 'budget_exceeded')
    await changeTerms(giver, grantId, { amount: '1.00' })
    assert.equal((await figures(token, given)).structured.cost_usd, '0.010000000')
  })

  it('keeps what the person reads sealed, and only until they have decided or its time is over', async () => {
    const { token, grantId } = await giveMandate(house, giver, LIMIT)
    const given = { ticker: `SECRET${next}` }
    const { path } = approvalOf(house, await figures(token, given))
    const kept = async () => {
      const { rows } = await pool.query<{ shown: Buffer | null }>(
        'select shown from approvals where grant_id = $1 order by asked_at',
        [grantId],
      )
      return rows.map(({ shown }) => shown)
    }
    const [sealed] = await kept()
    assert.ok(sealed instanceof Buffer)
    assert.ok(!sealed.includes(given.ticker))
    assert.match(await decide(giver, path, 'refuse'), new RegExp(given.ticker))
    approvalOf(house, await figures(token))
    await pool.query("update approvals set expires_at = clock_timestamp() - interval '1 second' where grant_id = $1", [
      grantId,
    ])
    await emptyApprovals(pool)
    assert.deepEqual(await kept(), [null, null])
  })

  it('is not asked for where the call was made already: by its idempotency key, or by its quote', async () => {
    const { rows } = await pool.query<{ personId: Id }>('select id as "personId" from people where email = $1', [
      giver.email,
    ])
    const { token, id: grantId } = await makeGranted(pool, {
      ...{ workspaceId: giver.workspaceId, personId: rows[0]?.personId ?? '', mode: 'test' },
      asks: { callLimit: usd('0.005'), asksHighCost: true },
    })
    const made = `/apis/v1/financial/financial-metrics/snapshot?ticker=${fresh().ticker}`
    const quote = await ask(house.gatewayUrl, token, made, { headers: { 'x-farebox-cost-mode': 'quote' } })
    const quoteId = String(JSON.parse(quote.text).quote_id)
    const headers = { 'idempotency-key': 'once', 'x-farebox-quote-id': quoteId }
    const { approval_url: url } = errorOf(await ask(house.gatewayUrl, token, made, { headers }))
    await decide(giver, new URL(String(url)).pathname, 'once')
    assert.equal((await ask(house.gatewayUrl, token, made, { headers })).costUsd, '0.010000000')
    const count = async () => (await pool.query('select from approvals where grant_id = $1', [grantId])).rowCount
    assert.equal(await count(), 1)
    assert.equal(codeOf(await ask(house.gatewayUrl, token, made, { headers })), 'idempotency_completed')
    const other = { 'x-farebox-quote-id': quoteId }
    assert.equal(codeOf(await ask(house.gatewayUrl, token, made, { headers: other })), 'quote_used')
    assert.equal(await count(), 1, 'nobody was asked')
  })
})
