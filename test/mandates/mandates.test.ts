import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { startMcpHouse } from '../agents/mcp-house.ts'
import { authorizePath, createOauthClient, newPkce, registered, toConsent } from '../oauth/client.ts'
import { filledIn, hiddenIn } from '../people/visitor.ts'
import { callTool, changeTerms, giveMandate, makeGiver, trace, use } from './house.ts'

/** A person hands an agent a budget: what it is, what it lets through, and how it is looked after. */
const house = await startMcpHouse()
after(house.stop)
const { pool } = house
const giver = await makeGiver(house)

const FIGURES = { ticker: 'ACME' }
const figures = (token: string) => use(house, token, 'financial_metrics_snapshot', FIGURES)

describe('a mandate', () => {
  it('AUTH-7 is what a paid call by an agent needs: scope, rate and maximum exposure, given by a person; reading is free without', async () => {
    const { token } = await giveMandate(house, giver, { amount: '0' })
    const before = await trace(house, giver)
    for (const tool of ['search', 'list_categories'])
      assert.equal((await callTool(house, token, tool, tool === 'search' ? { query: 'figures' } : {})).code, undefined)
    assert.equal((await use(house, token, 'list_models', {})).code, undefined)
    const refused = await figures(token)
    assert.equal(refused.code, 'budget_required')
    const { rows } = await pool.query(
      'select id from grants where person_id = (select person_id from members where email = $1) order by id desc limit 1',
      [giver.email],
    )
    assert.equal(Object(refused.structured.error).mandate_url, `${house.site.url}/mandates/${rows[0]?.id}`)
    assert.deepEqual(await trace(house, giver), before)
  })

  it('AUTH-7 lets through what it says and nothing else: categories, operations, models, amount, calls a minute', async () => {
    const { token, grantId } = await giveMandate(house, giver, {
      ...{
        amount: '0.02',
        call: '0.02',
        rate: '6',
        may_models: '',
        may_traffic: '',
        only: 'tag_detail, model:sandbox/text',
      },
    })
    const { rows } = await pool.query(
      `select scopes, requests_per_minute as rate, call_limit::text, asks_high_cost, amount::text, period from grants
       join allowances on allowances.id = allowance_id where grants.id = $1`,
      [grantId],
    )
    assert.deepEqual(rows, [
      {
        ...{ scopes: ['finance', 'tag_detail', 'model:sandbox/text'], rate: 6, call_limit: String(usd('0.02')) },
        ...{ asks_high_cost: true, amount: String(usd('0.02')), period: 'total' },
      },
    ])
    const first = await figures(token)
    assert.equal(first.structured.cost_usd, '0.010000000')
    assert.deepEqual(
      first.structured.left,
      { budget_usd: '0.010000000', budget_period: 'total' },
      'nothing of the account',
    )
    assert.equal((await use(house, token, 'tag_detail', { tag_name: 'cats' })).structured.cost_usd, '0.001450000')
    assert.equal((await use(house, token, 'website_traffic_engagement', { domain: 'a.example' })).code, 'forbidden')
    const spent = await figures(token)
    assert.equal(spent.code, 'budget_exceeded')
    assert.equal(Object(spent.structured.error).left_usd, '0.008550000')
    for (let call = 0; call < 6; call += 1) await callTool(house, token, 'list_categories', {})
    assert.equal((await figures(token)).code, 'rate_limit_exceeded')
    assert.deepEqual(await verifyLedger(pool, [giver.accountId]), [])
  })

  it('counts for the sentence that was shown, and for no other: a form that was changed is shown again', async () => {
    const clientId = await registered(createOauthClient(house.site))
    const { visitor } = giver
    const path = await toConsent(visitor, { clientId, pkce: newPkce(), changed: { resource: house.mcpUrl } })
    const grants = async () => (await pool.query('select from grants where client_id = $1', [clientId])).rowCount
    const page = await visitor.get(`${path}?amount=9999&may_social=yes&seen=x`)
    assert.doesNotMatch(page.text, /9999/)
    assert.match(page.text, /may spend up to <b>\$1\.00<\/b> of .* at most <b>\$0\.05<\/b> per call/)
    const shown = filledIn(page.text, path)
    assert.equal(shown.may_social, undefined)
    for (const changed of [
      { amount: '500' },
      { call: '1.00' },
      { rate: '9000' },
      { days: '365' },
      { mode: 'test' },
      { may_social: 'yes' },
      { only: 'tag_detail' },
      { costly: '' },
      { seen: '' },
      { seen: 'A'.repeat(43) },
    ]) {
      const again = await visitor.post(path, { ...shown, ...changed, decision: 'allow' })
      assert.equal(again.status, 200, JSON.stringify(changed))
      assert.match(again.text, /Read the sentence again/)
      assert.equal(await grants(), 0)
    }
    for (const wrong of [
      { call: 'much' },
      { rate: '0' },
      { days: '36500' },
      { only: 'no_such_operation' },
      { only: 'model:nobody/sells' },
      { may_models: '', may_finance: '', may_traffic: '' },
    ]) {
      assert.equal(
        (await visitor.post(path, { ...shown, ...wrong, decision: 'allow' })).status,
        400,
        JSON.stringify(wrong),
      )
      assert.equal(await grants(), 0)
    }
    // What another browser was shown is nothing here.
    const other = await makeGiver(house)
    const theirs = await toConsent(other.visitor, { clientId, pkce: newPkce(), changed: { resource: house.mcpUrl } })
    const { seen = '' } = filledIn((await other.visitor.get(theirs)).text, theirs)
    assert.equal((await visitor.post(path, { ...shown, seen, decision: 'allow' })).status, 200)
    assert.equal(await grants(), 0)
    assert.equal((await visitor.post(path, { ...shown, decision: 'allow' })).status, 303)
    assert.equal(await grants(), 1)
  })
})

describe('a client that was allowed once', () => {
  it('is not allowed again by that: every request is decided anew, and leads where the client registered (confused deputy)', async () => {
    const { clientId } = await giveMandate(house, giver)
    const { visitor } = giver
    const grants = async () => (await pool.query('select from grants where client_id = $1', [clientId])).rowCount
    const changed = { resource: house.mcpUrl, scope: 'agent' }
    // Somebody else begins with its id, and sends the person there: nothing is skipped because the client is known.
    const path = await toConsent(visitor, { clientId, pkce: newPkce(), changed })
    assert.match((await visitor.get(path)).text, /What you are about to allow/)
    for (const redirect_uri of [
      'https://evil.example/callback',
      'http://127.0.0.1.evil.example/callback',
      'http://localhost:9/other',
    ]) {
      const asked = authorizePath({ clientId, pkce: newPkce(), changed: { ...changed, redirect_uri } })
      const { status, location } = await visitor.get(asked)
      assert.equal(status, 400, redirect_uri)
      assert.equal(location, '')
    }
    const silent = await visitor.get(
      authorizePath({ clientId, pkce: newPkce(), changed: { ...changed, prompt: 'none' } }),
    )
    assert.doesNotMatch(silent.location, /[?&]code=/)
    assert.equal(await grants(), 1)
  })
})

describe('the page of a mandate', () => {
  const page = (grantId: string) => `/mandates/${grantId}`

  it('is where a refusal leads: raised there, the same call succeeds; lowered, paused and ended, none begins', async () => {
    const { token, grantId } = await giveMandate(house, giver, { amount: '0.005', call: '0.05' })
    const { visitor } = giver
    const refused = await figures(token)
    assert.equal(refused.code, 'budget_exceeded')
    assert.equal(Object(refused.structured.error).mandate_url, house.site.url + page(grantId))
    await changeTerms(giver, grantId, { amount: '0.035' })
    assert.equal((await figures(token)).structured.cost_usd, '0.010000000')
    const { text } = await visitor.get(page(grantId))
    assert.match(text, /Left of \$0\.035/)
    assert.match(text, /financial_metrics_snapshot/)

    await visitor.fill(page(grantId), {}, `${page(grantId)}/pause`)
    const before = await trace(house, giver)
    // The ledger refuses from this moment on, and within a second every process says why.
    const { rows: allowance } = await pool.query(
      'select amount::text from allowances where id = (select allowance_id from grants where id = $1)',
      [grantId],
    )
    assert.deepEqual(allowance, [{ amount: '0' }])
    assert.match(String((await figures(token)).code), /budget_exceeded|mandate_paused/)
    await until(async () => (await figures(token)).code === 'mandate_paused', PATIENCE_MS, 'the pause is known')
    assert.deepEqual(await trace(house, giver), before)
    assert.match((await visitor.get(page(grantId))).text, /Paused/)
    assert.match((await visitor.get('/grants')).text, /No calls start until you resume it/)
    await changeTerms(giver, grantId, { amount: '0.045' })
    assert.equal((await figures(token)).code, 'mandate_paused')
    await visitor.fill(page(grantId), {}, `${page(grantId)}/resume`)
    await until(async () => (await figures(token)).code === undefined, PATIENCE_MS, 'it goes on')

    await changeTerms(giver, grantId, { amount: '0.01' })
    assert.equal((await figures(token)).code, 'budget_exceeded', 'lowered below what is spent')
    await visitor.fill(page(grantId), {}, `${page(grantId)}/end`)
    assert.match(String((await figures(token)).code), /unauthorized|invalid_credential/)
    const past = await visitor.get(page(grantId))
    assert.match(past.text, /Ended.*It ended on.*financial_metrics_snapshot/s, 'what it spent stays to be seen')
    assert.doesNotMatch(past.text, new RegExp(`action="${page(grantId)}/`), 'and nothing of it can be changed')
    assert.match((await visitor.get('/grants')).text, new RegExp(`id="ended".*href="${page(grantId)}"`, 's'))
    const hidden = hiddenIn((await visitor.get('/sessions')).text, '/sessions/end-all')
    assert.equal((await visitor.post(`${page(grantId)}/resume`, hidden)).status, 404)
    const { rows } = await pool.query(
      "select action, count(*)::integer as count from audit where subject = $1 and action <> 'grant.token_issued' group by 1 order by 1",
      [grantId],
    )
    assert.deepEqual(rows, [
      ...[
        { action: 'grant.made', count: 1 },
        { action: 'grant.mandate_changed', count: 3 },
        { action: 'grant.paused', count: 1 },
      ],
      ...[
        { action: 'grant.resumed', count: 1 },
        { action: 'grant.revoked', count: 1 },
      ],
    ])
    assert.deepEqual(await verifyLedger(pool, [giver.accountId]), [])
  })

  it('is nobody else’s, whoever they are in the workspace', async () => {
    const { grantId } = await giveMandate(house, giver)
    const other = await makeGiver(house)
    await pool.query(
      `insert into members (id, workspace_id, email, role, person_id)
       select gen_random_uuid(), $1, people.email, 'owner', people.id from people where email = $2`,
      [giver.workspaceId, other.email],
    )
    const own = await giveMandate(house, other)
    const { text } = await other.visitor.get(page(own.grantId))
    assert.equal((await other.visitor.get(page(grantId))).status, 404)
    const before = await pool.query('select * from grants where id = $1', [grantId])
    for (const verb of ['terms', 'pause', 'resume', 'end']) {
      const form = filledIn(text, `${page(own.grantId)}/${verb === 'resume' ? 'pause' : verb}`)
      assert.equal((await other.visitor.post(`${page(grantId)}/${verb}`, { ...form, amount: '99' })).status, 404, verb)
      assert.equal(
        (await other.visitor.post(`${page(own.grantId)}/${verb}`, { amount: '99' })).status,
        403,
        'no form of ours',
      )
    }
    assert.deepEqual((await pool.query('select * from grants where id = $1', [grantId])).rows, before.rows)
  })
})

describe('a mandate that is nearly used', () => {
  it('is told by mail at four fifths and at the end, once each, and anew when it was raised', async () => {
    const person = await makeGiver(house)
    const { token, grantId } = await giveMandate(house, person, { amount: '0.05' })
    const mails = async () =>
      (await house.site.sandbox.mail(person.email)).map(({ subject }) => subject).filter((one) => /mandate/.test(one))
    for (let call = 0; call < 3; call += 1) assert.equal((await figures(token)).code, undefined)
    assert.deepEqual(await mails(), [])
    assert.equal((await figures(token)).code, undefined)
    await until(async () => (await mails()).length === 1, PATIENCE_MS, 'the letter at four fifths')
    assert.equal((await figures(token)).code, undefined)
    await until(async () => (await mails()).length === 2, PATIENCE_MS, 'the letter at the end')
    assert.deepEqual((await mails()).toSorted(), [
      'Tram Planner has used 80 % of its mandate',
      'Tram Planner has used up its mandate',
    ])
    const letter = await house.site.mailTo(person.email, 3)
    assert.ok(letter.links.includes(`${house.site.url}/mandates/${grantId}`), letter.text)
    const { rows } = await pool.query('select noticed from grants where id = $1', [grantId])
    assert.deepEqual(rows, [{ noticed: 100 }])
  })

  it('is told when its time is over, although nothing was spent', async () => {
    const person = await makeGiver(house)
    const { grantId } = await giveMandate(house, person, { amount: '0.05' })
    await pool.query("update grants set expires_at = clock_timestamp() - interval '1 second' where id = $1", [grantId])
    await until(
      async () => (await house.site.sandbox.mail(person.email)).some(({ subject }) => /has expired$/.test(subject)),
      PATIENCE_MS,
      'the letter',
    )
  })
})
