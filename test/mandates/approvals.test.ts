import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { setAccountPrice } from '../../server/src/pricing/prices.ts'
import { ask, codeOf, errorOf } from '../acceptance/installation.ts'
import { startMcpHouse } from '../agents/mcp-house.ts'
import { AUDIENCE, makeGranted } from '../identity/granted.ts'
import { filledIn } from '../people/visitor.ts'
import {
  approvalOf as approvalIn,
  callTool,
  decide,
  giveMandate,
  makeGiver,
  OPENS_PAGES,
  type Told,
  trace,
  use,
} from './house.ts'

/** Calls that cost more than a person lets a client spend without being asked. */
const house = await startMcpHouse({ FAREBOX_HTTP_PUBLIC_URL: AUDIENCE })
after(house.stop)
const { pool, site } = house
const giver = await makeGiver(house)

/** A call of 0.01 USD, above what the mandates here allow for one. */
const LIMIT = { amount: '1.00', call: '0.005' }
let next = 0
function fresh(): { readonly ticker: string; readonly cik: string } {
  next += 1
  return { ticker: `T${next}`, cik: 'x' }
}
const figures = (token: string, given: object, extra = {}) =>
  use(house, token, 'financial_metrics_snapshot', given, extra)

/** Asked without a call, of which each that waits for its person counts. */
async function priceFor(token: string): Promise<unknown> {
  const asked = { operation_id: 'financial_metrics_snapshot', arguments: fresh() }
  const { structured } = await callTool(house, token, 'get_details', asked)
  return Object(Object(structured.price_of_arguments).max).usd
}

const approvalOf = (told: Told) => approvalIn(house, told)

describe('a call above the limit for one', () => {
  it('waits for its person, is listed for them and shown whole, and is made once when they allow it', async () => {
    const { token, grantId } = await giveMandate(house, giver, LIMIT)
    const given = fresh()
    const before = await trace(house, giver)
    const { path, id } = approvalOf(await figures(token, given))
    assert.equal(approvalOf(await figures(token, given)).id, id, 'the same call is the same question')
    assert.deepEqual(await trace(house, giver), before, 'nothing held, charged or sent')
    for (const page of ['/grants', `/mandates/${grantId}`])
      assert.match((await giver.visitor.get(page)).text, new RegExp(`href="${path}"`))
    const page = await decide(giver, path, 'once')
    assert.match(page, new RegExp(`&quot;ticker&quot;: &quot;${given.ticker}&quot;`))
    assert.match(page, /this call once<\/b>.* for at most <b>\$0\.01<\/b>/)
    // However its members are ordered.
    const made = await figures(token, { cik: 'x', ticker: given.ticker })
    assert.equal(made.structured.cost_usd, '0.010000000', JSON.stringify(made))
    const spent = await trace(house, giver)
    const again = await figures(token, given)
    assert.notEqual(approvalOf(again).id, id, 'used: it has to be asked for anew')
    assert.deepEqual(await trace(house, giver), spent)
    const { rows } = await pool.query('select action from audit where subject = $1 and action like $2', [
      grantId,
      'grant.call%',
    ])
    assert.deepEqual(rows, [{ action: 'grant.call_allowed' }])
  })

  it('is used once by however many at once', async () => {
    const { token } = await giveMandate(house, giver, LIMIT)
    const given = fresh()
    await decide(giver, approvalOf(await figures(token, given)).path, 'once')
    const all = await Promise.all(Array.from({ length: 12 }, () => figures(token, given)))
    assert.equal(all.filter(({ code }) => code === undefined).length, 1)
    assert.equal(all.filter(({ code }) => code === 'approval_required').length, 11)
  })

  it('is refused for other arguments, by another client, after a price rise, refused and expired, and leaves nothing', async () => {
    const [one, other] = [await giveMandate(house, giver, LIMIT), await giveMandate(house, giver, LIMIT)]
    const given = fresh()
    const { path, id } = approvalOf(await figures(one.token, given))
    await decide(giver, path, 'once')
    const before = await trace(house, giver)
    for (const [token, asked] of [
      [one.token, { ...given, cik: 'y' }],
      [one.token, { ...given, page: '2' }],
      [other.token, given],
    ] as const)
      assert.notEqual(approvalOf(await figures(token, asked)).id, id)
    await setAccountPrice(pool, giver.accountId, 'financial_metrics_snapshot', '0.011')
    await until(async () => (await priceFor(one.token)) === '0.011000000', PATIENCE_MS, 'the price')
    assert.notEqual(approvalOf(await figures(one.token, given)).id, id, 'the price has risen')
    await setAccountPrice(pool, giver.accountId, 'financial_metrics_snapshot', '0.01')
    await until(async () => (await priceFor(one.token)) === '0.010000000', PATIENCE_MS, 'the price')

    const unwanted = fresh()
    await decide(giver, approvalOf(await figures(one.token, unwanted)).path, 'refuse')
    assert.equal((await figures(one.token, unwanted)).code, 'approval_refused')

    const old = fresh()
    const expired = approvalOf(await figures(one.token, old))
    await decide(giver, expired.path, 'once')
    await pool.query("update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1", [
      expired.id,
    ])
    assert.notEqual(approvalOf(await figures(one.token, old)).id, expired.id)
    assert.equal((await giver.visitor.get(expired.path)).status, 404)
    assert.deepEqual(await trace(house, giver), before)
  })

  it('is decided by nobody but the person who gave the mandate, on a page of ours', async () => {
    const { token, grantId } = await giveMandate(house, giver, LIMIT)
    const given = fresh()
    const { path, id } = approvalOf(await figures(token, given))
    const stranger = await makeGiver(house)
    await pool.query(
      `insert into members (id, workspace_id, email, role, person_id)
       select gen_random_uuid(), $1, people.email, 'owner', people.id from people where email = $2`,
      [giver.workspaceId, stranger.email],
    )
    const form = filledIn((await giver.visitor.get(path)).text, path)
    assert.equal((await stranger.visitor.get(path)).status, 404)
    const own = await giveMandate(house, stranger, LIMIT)
    const theirs = approvalOf(await figures(own.token, fresh()))
    const theirForm = filledIn((await stranger.visitor.get(theirs.path)).text, theirs.path)
    assert.equal((await stranger.visitor.post(path, { ...theirForm, decision: 'once' })).status, 404)
    assert.equal((await giver.visitor.post(path, { decision: 'once' })).status, 403, 'without the token of a form')
    const evil = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    assert.equal((await giver.visitor.post(path, { ...form, decision: 'once' }, evil)).status, 403)
    const bearer = await fetch(site.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...form, decision: 'once' }),
      redirect: 'manual',
    })
    assert.equal(bearer.status, 403, 'the client itself can’t')
    const { headers } = await giver.visitor.get(path)
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
    const { rows } = await pool.query('select decided_at from approvals where id = $1', [id])
    assert.deepEqual(rows, [{ decided_at: null }])
    await giver.visitor.fill(`/mandates/${grantId}`, {}, `/mandates/${grantId}/end`)
    assert.equal((await giver.visitor.get(path)).status, 404, 'with its mandate it ends')
  })

  it('is refused in a batch with its link, beside calls that need none', async () => {
    const { token } = await giveMandate(house, giver, { ...LIMIT, may_social: 'yes' })
    const calls = [
      { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } },
      { operation_id: 'financial_metrics_snapshot', arguments: fresh() },
    ]
    const batch = () => callTool(house, token, 'batch_use', { calls, max_total_usd: 1 }, { meta: OPENS_PAGES })
    const { structured } = await batch()
    const [first, second] = [Object(structured.results)].flat()
    assert.equal(first.cost_usd, '0.001450000')
    assert.equal(second.error.code, 'approval_required')
    await decide(giver, new URL(second.error.approval_url).pathname, 'once')
    const [, allowed] = [Object((await batch()).structured.results)].flat()
    assert.equal(allowed.cost_usd, '0.010000000')
  })

  it('waits with at most 19 others', async () => {
    const { token } = await giveMandate(house, giver, { ...LIMIT, rate: '1000' })
    for (let call = 0; call < 20; call += 1) approvalOf(await figures(token, fresh()))
    const full = await figures(token, fresh())
    assert.equal(full.code, 'approval_required')
    assert.equal(Object(full.structured.error).approval_url, undefined)
    assert.match(String(Object(full.structured.error).message), /20 calls of this mandate already wait/)
  })

  it('asks for a costly kind whatever the limit is, unless the person does not want that', async () => {
    const research = (token: string) => use(house, token, 'deep_research', { query: `night trams ${next}` })
    const asking = await giveMandate(house, giver, { amount: '1.00', call: '0.50' })
    approvalOf(await research(asking.token))
    const trusting = await giveMandate(house, giver, { amount: '1.00', call: '0.50', costly: '' })
    assert.equal((await research(trusting.token)).structured.cost_usd, '0.100000000')
  })
})

describe('a client that can lead a person to a page', () => {
  it('is asked by the address of the page (2026-07-28), and its own answer decides nothing', async () => {
    const { token } = await giveMandate(house, giver, LIMIT)
    const given = fresh()
    const before = await trace(house, giver)
    const { result } = await figures(token, given, { meta: OPENS_PAGES })
    assert.equal(result.resultType, 'input_required')
    const state = String(result.requestState)
    const { approval } = Object(result.inputRequests)
    assert.equal(approval.method, 'elicitation/create')
    assert.deepEqual([approval.params.mode, approval.params.url], ['url', `${site.url}/approvals/${state}`])
    for (const inputResponses of [{ approval: { action: 'decline' } }, { approval: { action: 'cancel' } }, {}]) {
      const params = { requestState: state, inputResponses }
      approvalOf(await figures(token, given, { meta: OPENS_PAGES, params }))
    }
    // Neither a form that it fills in by itself, nor a state of its own making.
    const forged = { approval: { action: 'accept', content: { approved: true, decision: 'once' } } }
    for (const requestState of ['approved', '{"approved":true}', `${state}x`]) {
      const told = await figures(token, given, { meta: OPENS_PAGES, params: { requestState, inputResponses: forged } })
      assert.equal(told.code, 'invalid_request', requestState)
    }
    assert.deepEqual(await trace(house, giver), before)
    // Who has opened the page may take a moment: the call waits for the decision.
    const params = { requestState: state, inputResponses: { approval: { action: 'accept' } } }
    const waiting = figures(token, given, { meta: OPENS_PAGES, params })
    await decide(giver, `/approvals/${state}`, 'once')
    assert.equal((await waiting).structured.cost_usd, '0.010000000')

    const spent = await trace(house, giver)
    const replayed = await figures(token, given, { meta: OPENS_PAGES, params })
    assert.notEqual(approvalOf(replayed).id, state, 'a state that comes again is worth nothing')
    const elsewhere = await giveMandate(house, giver, LIMIT)
    const stolen = await figures(elsewhere.token, given, { meta: OPENS_PAGES, params })
    assert.notEqual(approvalOf(stolen).id, state)
    const swapped = await figures(token, fresh(), { meta: OPENS_PAGES, params })
    assert.notEqual(approvalOf(swapped).id, state)
    assert.deepEqual(await trace(house, giver), spent)
  })

  it('is asked by its SDK’s own ways: SDK 2 pinned to 2026-07-28 opens the page and gets its answer in one call', async () => {
    const { token } = await giveMandate(house, giver, LIMIT)
    const client = new ClientV2(
      { name: 'opens pages', version: '1.0.0' },
      { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    const opened: string[] = []
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const { url, mode } = Object(params)
      opened.push(`${mode} ${url}`)
      await decide(giver, new URL(url).pathname, 'once')
      return { action: 'accept' }
    })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new TransportV2(new URL(house.mcpUrl), { requestInit }))
    const wanted = { operation_id: 'financial_metrics_snapshot', arguments: fresh(), max_price_usd: 1 }
    const answer = await client.callTool({ name: 'use', arguments: wanted })
    assert.equal(Object(answer.structuredContent).cost_usd, '0.010000000', JSON.stringify(answer))
    assert.equal(opened.length, 1)
    assert.match(String(opened[0]), /^url .*\/approvals\//)
    await client.close()
  })

  it('is told by an error of its version (2025-11-25) where to go, and makes the same call again: SDK 1.32', async () => {
    const { token } = await giveMandate(house, giver, LIMIT)
    const client = new ClientV1(
      { name: 'opens pages', version: '1.0.0' },
      { capabilities: { elicitation: { url: {} } } },
    )
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new TransportV1(new URL(house.mcpUrl), { requestInit }) as never)
    const wanted = { operation_id: 'financial_metrics_snapshot', arguments: fresh(), max_price_usd: 1 }
    const error = await client.callTool({ name: 'use', arguments: wanted }).catch((thrown: unknown) => Object(thrown))
    assert.equal(error.code, -32_042, JSON.stringify(error))
    const [asked] = error.data.elicitations
    assert.equal(asked.mode, 'url')
    await decide(giver, new URL(asked.url).pathname, 'once')
    const answer = await client.callTool({ name: 'use', arguments: wanted })
    assert.equal(Object(answer.structuredContent).cost_usd, '0.010000000', JSON.stringify(answer))
    await client.close()
  })
})

describe('a token for base_url', () => {
  it('is asked for alike: refused with the same address, and the same call then succeeds, once', async () => {
    const { rows } = await pool.query<{ personId: string }>('select id as "personId" from people where email = $1', [
      giver.email,
    ])
    const { token } = await makeGranted(pool, {
      ...{ workspaceId: giver.workspaceId, personId: rows[0]?.personId ?? '', mode: 'test' },
      asks: { callLimit: usd('0.005'), asksHighCost: true },
    })
    const path = `/apis/v1/financial/financial-metrics/snapshot?ticker=${fresh().ticker}`
    const refused = await ask(house.gatewayUrl, token, path)
    assert.equal(refused.status, 402, refused.text)
    assert.equal(codeOf(refused), 'approval_required')
    const { approval_url: url } = errorOf(refused)
    await decide(giver, new URL(String(url)).pathname, 'once')
    assert.equal((await ask(house.gatewayUrl, token, path)).costUsd, '0.010000000')
    assert.equal(codeOf(await ask(house.gatewayUrl, token, path)), 'approval_required')
  })
})
