import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freePort } from '../../harness/free-port.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { allowanceIdOf } from '../../server/src/budgets/account-budgets.ts'
import type { Budget } from '../../server/src/budgets/budgets.ts'
import { memberSubjects } from '../../server/src/budgets/member-subjects.ts'
import { changeBudget, removeBudget } from '../../server/src/budgets/set-budgets.ts'
import { tagsIn } from '../../server/src/budgets/tags.ts'
import { assignKey, setKeyBudget } from '../../server/src/identity/key-changes.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import { formatUsd, nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { addMember, removeMember } from '../../server/src/people/members.ts'
import {
  ACTOR,
  ask,
  CALLS,
  call,
  codeOf,
  errorOf,
  ids,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from '../acceptance/installation.ts'
import { makeGranted, makeMember } from '../identity/granted.ts'
import { askRaw, callBody, MODERN } from '../mcp/raw-agent.ts'
import { countedOf, endUserIdOf, set, untilKnown } from './setting.ts'

/** Budgets of workspaces, members, keys, tags and end users, as callers meet them. */
const MCP_URL = `http://127.0.0.1:${await freePort()}/mcp`
const BASE_URL = `http://127.0.0.1:${await freePort()}`
const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  env: { FAREBOX_HTTP_MCP_URL: MCP_URL, FAREBOX_HTTP_PUBLIC_URL: BASE_URL },
})
const { url, pool, sandbox, gateways } = installation
after(installation.stop)

/** What a call of tag_detail costs, and holds. */
const PRICE = 1_450_000n
const TWO = 2n * PRICE + 1n
const detail = (secret: string, headers: Readonly<Record<string, string>> = {}) =>
  call(url, secret, 'tag_detail', '', { headers })
const tagged = (tags: string) => ({ 'x-farebox-tags': tags })
const forUser = (endUser: string) => ({ 'x-farebox-end-user': endUser })
const statuses = (all: readonly Told[]) => all.map(({ status }) => status)

/** Our refusal's members, wherever the protocol has a place for them. */
function membersOf(told: Told): Record<string, unknown> {
  const error = errorOf(told)
  const details = Array.isArray(error.details) ? Object(error.details[0]).metadata : error.details
  return { ...error, ...Object(details) }
}

function assertRefusedBy(told: Told, kind: string, subject: string | undefined): void {
  assert.deepEqual([told.status, codeOf(told)], [402, 'budget_exceeded'], told.text)
  const { budget_kind, budget_subject, left_usd } = membersOf(told)
  assert.deepEqual([budget_kind, budget_subject], [kind, subject])
  assert.equal(left_usd, formatUsd(nanos(1n)))
}

describe('a budget', () => {
  it('of a workspace is one ceiling for all its keys, and not for another mode or workspace', async () => {
    const customer = await makeCustomer(pool)
    const other = await makeKey(pool, customer.workspaceId)
    const stranger = await makeCustomer(pool)
    await set(pool, customer, { kind: 'workspace', amount: TWO })
    await untilKnown(url, customer.secret, 1)
    await untilKnown(url, other.secret, 1)
    assert.deepEqual(statuses([await detail(customer.secret), await detail(other.secret)]), [200, 200])
    const asked = (await sandbox.journal()).length
    for (const secret of [customer.secret, other.secret]) {
      const told = await detail(secret)
      assertRefusedBy(told, 'workspace', undefined)
      assert.match(String(errorOf(told).message), /This is the budget of the workspace\. The budget is a total/)
    }
    assert.equal((await sandbox.journal()).length, asked, 'no upstream was asked')
    assert.equal((await detail(stranger.secret)).status, 200)
    assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
  })

  it('of a member is one ceiling for the keys assigned to it and for its grants', async () => {
    const customer = await makeCustomer(pool)
    const { memberId, personId } = await makeMember(pool, customer.workspaceId, 'developer')
    const granted = await makeGranted(pool, {
      ...{ workspaceId: customer.workspaceId, personId, mode: 'test', audiences: [BASE_URL], scopes: ['calls'] },
    })
    const nobodys = await makeKey(pool, customer.workspaceId)
    await assignKey({ pool }, ACTOR, customer.keyId, memberId)
    await set(pool, customer, { kind: 'member', subject: personId, amount: TWO })
    await untilKnown(url, customer.secret, 1)
    assert.deepEqual(statuses([await detail(customer.secret), await detail(granted.token)]), [200, 200])
    assertRefusedBy(await detail(customer.secret), 'member', personId)
    const byToken = await detail(granted.token)
    assert.deepEqual([byToken.status, membersOf(byToken).budget_kind], [402, 'member'])
    assert.equal(membersOf(byToken).mandate_url, undefined, 'its person can do nothing about it there')
    assert.equal(membersOf(byToken).left_usd, undefined, 'a token is told of the account what it may read')
    assert.equal((await detail(nobodys.secret)).status, 200)
    await assert.rejects(assignKey({ pool }, ACTOR, customer.keyId, ids.next()), Fault)
  })

  it('of a member is that of the person: who leaves and comes back has spent what it has spent', async () => {
    const customer = await makeCustomer(pool)
    const { workspaceId } = customer
    const { memberId, personId, email } = await makeMember(pool, workspaceId, 'developer')
    await assignKey({ pool }, ACTOR, customer.keyId, memberId)
    await set(pool, customer, { kind: 'member', subject: personId, amount: PRICE + 1n })
    await untilKnown(url, customer.secret, 1)
    assert.equal((await detail(customer.secret)).status, 200)
    await removeMember({ pool, notices: null }, { by: ACTOR, personId: null }, workspaceId, memberId, 'keep')
    assertRefusedBy(await detail(customer.secret), 'member', personId)
    const again = await addMember({ pool, ids, notices: null }, { by: ACTOR, personId: null }, workspaceId, {
      email,
      role: 'developer',
    })
    assert.notEqual(again, memberId)
    const key = await makeKey(pool, workspaceId, { memberId: again })
    const granted = await makeGranted(pool, {
      ...{ workspaceId, personId, mode: 'test', audiences: [BASE_URL], scopes: ['calls'] },
    })
    assertRefusedBy(await detail(key.secret), 'member', personId)
    assert.equal(membersOf(await detail(granted.token)).budget_kind, 'member')
  })

  it('of a member who has not signed up is that of the address, and of the person once there is one', async () => {
    const customer = await makeCustomer(pool)
    const { workspaceId } = customer
    const email = `new-${ids.next()}@example.com`
    const member = { email, role: 'developer' } as const
    const hand = { by: ACTOR, personId: null }
    const memberId = await addMember({ pool, ids, notices: null }, hand, workspaceId, member)
    await assignKey({ pool }, ACTOR, customer.keyId, memberId)
    const [subject = ''] = memberSubjects(workspaceId, { personId: null, email })
    await set(pool, customer, { kind: 'member', subject, amount: PRICE + 1n })
    await untilKnown(url, customer.secret, 1)
    assert.equal((await detail(customer.secret)).status, 200)
    await removeMember({ pool, notices: null }, hand, workspaceId, memberId, 'keep')
    const personId = ids.next()
    await pool.query("insert into people (id, email, name, verified_at) values ($1, $2, 'New', clock_timestamp())", [
      personId,
      email,
    ])
    await addMember({ pool, ids, notices: null }, hand, workspaceId, member)
    const granted = await makeGranted(pool, {
      ...{ workspaceId, personId, mode: 'test', audiences: [BASE_URL], scopes: ['calls'] },
    })
    assert.equal(membersOf(await detail(granted.token)).budget_kind, 'member')
    assertRefusedBy(await detail(customer.secret), 'member', subject)
  })

  it('of a key that is taken away and given back goes on counting, also after one of another period', async () => {
    const customer = await makeCustomer(pool, { key: { budget: { period: 'month', amount: nanos(PRICE + 1n) } } })
    const give = (budget: Budget | null) => setKeyBudget({ pool, ids }, ACTOR, customer.keyId, budget)
    assert.equal((await detail(customer.secret)).status, 200)
    await give(null)
    await untilKnown(url, customer.secret, 0)
    await give({ period: 'day', amount: nanos(PRICE - 1n) })
    await untilKnown(url, customer.secret, 1)
    assert.equal((await detail(customer.secret)).status, 402)
    await give(null)
    await untilKnown(url, customer.secret, 0)
    await give({ period: 'month', amount: nanos(PRICE + 1n) })
    await untilKnown(url, customer.secret, 1)
    assertRefusedBy(await detail(customer.secret), 'key', undefined)
    const { rows } = await pool.query('select cardinality(former_allowances) as former from api_keys where id = $1', [
      customer.keyId,
    ])
    assert.deepEqual(rows, [{ former: 1 }])
  })

  it('of a tag is one ceiling for all calls with it, by header or fixed by a key, which beats the header', async () => {
    const customer = await makeCustomer(pool)
    const fixed = await makeKey(pool, customer.workspaceId, { tags: tagsIn(['team=search']) })
    await set(pool, customer, { kind: 'tag', subject: 'team=search', amount: TWO })
    await untilKnown(url, customer.secret, 1, tagged('team=search'))
    await untilKnown(url, fixed.secret, 1)
    assert.equal((await detail(customer.secret, tagged('run=1, team=search'))).status, 200)
    assert.equal((await detail(fixed.secret, tagged('team=other'))).status, 200)
    assertRefusedBy(await detail(customer.secret, tagged('team=search')), 'tag', 'team=search')
    assertRefusedBy(await detail(fixed.secret), 'tag', 'team=search')
    assertRefusedBy(await detail(fixed.secret, tagged('team=other')), 'tag', 'team=search')
    assert.equal((await detail(customer.secret, tagged('team=other'))).status, 200)
    assert.equal((await detail(customer.secret)).status, 200)
  })

  it('trap: many small calls of one run pass together what each of them keeps: a budget for each value of a tag', async () => {
    const customer = await makeCustomer(pool)
    await set(pool, customer, { kind: 'tag', subject: 'run=*', amount: TWO })
    await set(pool, customer, { kind: 'tag', subject: 'run=large', amount: TWO + PRICE })
    await untilKnown(url, customer.secret, 1, tagged('run=large'))
    for (const run of ['1', '2']) {
      const told = []
      for (let place = 0; place < 3; place += 1) told.push(await detail(customer.secret, tagged(`run=${run}`)))
      assert.deepEqual(statuses(told), [200, 200, 402])
      assertRefusedBy(told[2] ?? assert.fail(), 'tag', `run=${run}`)
    }
    const large = []
    for (let place = 0; place < 4; place += 1) large.push(await detail(customer.secret, tagged('run=large')))
    assert.deepEqual(statuses(large), [200, 200, 200, 402])
  })

  it('of every end user is a ceiling for each, one by one where somebody has another, and follows when it changes', async () => {
    const customer = await makeCustomer(pool)
    const every = await set(pool, customer, { kind: 'end_user', subject: '*', amount: TWO })
    const alices = await set(pool, customer, { kind: 'end_user', subject: 'alice', amount: PRICE })
    await untilKnown(url, customer.secret, 1, forUser('bob'))
    assert.deepEqual(
      statuses([await detail(customer.secret, forUser('alice')), await detail(customer.secret, forUser('alice'))]),
      [200, 402],
    )
    for (const status of [200, 200, 402])
      assert.equal((await detail(customer.secret, forUser('bob'))).status, status, 'of bob, met first just now')
    assert.equal((await detail(customer.secret)).status, 200, 'nobody is nobody')

    await changeBudget({ pool }, ACTOR, every.id, nanos(TWO + PRICE))
    assert.deepEqual(
      statuses([await detail(customer.secret, forUser('bob')), await detail(customer.secret, forUser('bob'))]),
      [200, 402],
      'raised for who is known already, from the commit on',
    )
    await changeBudget({ pool }, ACTOR, every.id, nanos(PRICE))
    assert.equal((await detail(customer.secret, forUser('carol'))).status, 200)
    assert.equal((await detail(customer.secret, forUser('carol'))).status, 402, 'made with what it is now')

    await removeBudget({ pool }, ACTOR, alices.id)
    assert.equal((await detail(customer.secret, forUser('alice'))).status, 402, 'what she spent still counts')
    assert.equal(await countedOf(pool, alices.id), PRICE)
    await removeBudget({ pool }, ACTOR, every.id)
    await until(async () => (await detail(customer.secret, forUser('bob'))).status === 200, PATIENCE_MS, 'no ceiling')
    await until(async () => (await detail(customer.secret, forUser('dora'))).status === 200, PATIENCE_MS, 'no ceiling')
    assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
  })

  it('trap: a second protocol or an agent bypasses it: every interface names the end user, by its body or by the header', async () => {
    const customer = await makeCustomer(pool, {
      key: {
        budget: { period: 'total', amount: nanos(5_000_000_000n) },
        ...{ scopes: ['models', 'social'], rates: { requestsPerMinute: 1_000 } },
      },
    })
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 0n })
    await untilKnown(url, customer.secret, 2, forUser('x'))
    const claude = JSON.stringify({ device_id: 'd', account_uuid: '', session_id: 's' })
    const bodies: Readonly<Record<string, object>> = {
      chat_completions: { user: 'eve' },
      responses: { safety_identifier: 'eve' },
      messages: { metadata: { user_id: claude } },
      embeddings: { user: 'eve' },
      image_generations: { user: 'eve' },
    }
    for (const [operation, members] of Object.entries(bodies)) {
      const { path, body } = CALLS[operation]?.('') ?? assert.fail(operation)
      const told = await ask(url, customer.secret, path, { body: { ...Object(body), ...members } })
      assert.deepEqual([told.status, codeOf(told)], [402, 'budget_exceeded'], `${operation} ${told.text}`)
      assert.equal(membersOf(told).budget_kind, 'end_user', told.text)
    }
    for (const operation of ['generate_content', 'stream_generate_content', 'rerank', 'tag_detail', 'post_comments']) {
      const told = await call(url, customer.secret, operation, '', { headers: forUser('eve') })
      assert.deepEqual([told.status, codeOf(told)], [402, 'budget_exceeded'], `${operation} ${told.text}`)
    }
    const { agentUrl } = gateways[0] ?? assert.fail()
    const given = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 1 }
    const headers = {
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'use',
      host: new URL(MCP_URL).host,
    }
    const byTool = await askRaw(`${agentUrl}/mcp`, customer.secret, {
      body: callBody('use', given),
      headers: { ...headers, ...forUser('eve') },
    })
    const error = Object(Object(Object(byTool.message.result).structuredContent).error)
    assert.deepEqual([error.code, error.budget_kind], ['budget_exceeded', 'end_user'], byTool.text)
    const task = await call(url, (await makeKeyOf(customer)).secret, 'video_synthesis', '', { headers: forUser('eve') })
    assert.deepEqual([task.status, codeOf(task)], [402, 'budget_exceeded'], task.text)
    assert.equal((await detail(customer.secret)).status, 200)
  })

  const makeKeyOf = ({ workspaceId }: { readonly workspaceId: string }) => makeKey(pool, workspaceId)

  it('is told with all others that apply, with what is left and when it begins anew', async () => {
    const customer = await makeCustomer(pool, { key: { budget: { period: 'day', amount: nanos(9_000_000n) } } })
    await set(pool, customer, { kind: 'workspace', amount: 8_000_000n, period: 'week' })
    await set(pool, customer, { kind: 'tag', subject: 'team=a', amount: 7_000_000n, period: 'month' })
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 6_000_000n })
    await untilKnown(url, customer.secret, 4, { ...tagged('team=a'), ...forUser('zoe') })
    assert.equal((await detail(customer.secret, { ...tagged('team=a'), ...forUser('zoe') })).status, 200)
    const { json } = await ask(url, customer.secret, '/v1/balance', {
      headers: { ...tagged('team=a'), ...forUser('zoe') },
    })
    const told = Array.isArray(json.budgets) ? json.budgets : []
    assert.deepEqual(
      told.map(({ kind, subject, period, left }) => [kind, subject, period, Object(left).usd]),
      [
        ['key', null, 'day', '0.007550000'],
        ['workspace', null, 'week', '0.006550000'],
        ['tag', 'team=a', 'month', '0.005550000'],
        ['end_user', 'zoe', 'total', '0.004550000'],
      ],
    )
    const [day, week, month, total] = told.map(({ resets_at }) => resets_at)
    assert.equal(total, null)
    for (const [at, days] of [
      [day, 1],
      [week, 7],
      [month, 31],
    ] as const) {
      const untilMs = Date.parse(String(at)) - Date.now()
      assert.ok(untilMs > -60_000 && untilMs <= days * 86_400_000, String(at))
      assert.match(String(at), /T00:00:00\.000Z$/)
    }
    assert.equal(new Date(String(week)).getUTCDay(), 1)
    assert.equal(Object(json.budget).period, 'day', "the key's own stands where it stood")
  })

  it('is what a quote goes by: whether the call would begin, and what would refuse it', async () => {
    const customer = await makeCustomer(pool, { money: 3n * PRICE })
    await set(pool, customer, { kind: 'tag', subject: 'team=a', amount: 2n * PRICE - 1n, period: 'day' })
    await untilKnown(url, customer.secret, 1, tagged('team=a'))
    assert.equal((await detail(customer.secret, tagged('team=a'))).status, 200)
    const admission = async (headers: Readonly<Record<string, string>>, operation = 'tag_detail') =>
      Object(
        (await call(url, customer.secret, operation, '', { headers: { ...headers, 'x-farebox-cost-mode': 'quote' } }))
          .json.admission,
      )
    assert.deepEqual(await admission({}), { fits: true })
    const { budget_resets_at, ...refused } = await admission(tagged('team=a'))
    assert.deepEqual(refused, {
      ...{ fits: false, code: 'budget_exceeded', left_usd: formatUsd(nanos(PRICE - 1n)) },
      ...{ budget_kind: 'tag', budget_subject: 'team=a', budget_period: 'day' },
    })
    assert.match(String(budget_resets_at), /T00:00:00\.000Z$/)
    const told = await detail(customer.secret, tagged('team=a'))
    assert.deepEqual([told.status, membersOf(told).left_usd], [402, refused.left_usd], 'as the call itself')
    assert.deepEqual(await admission({}, 'website_traffic_engagement'), {
      ...{ fits: false, code: 'insufficient_balance', left_usd: formatUsd(nanos(2n * PRICE)) },
    })
  })

  it('that is tightest is told of several that are in the way, and what fits into it fits into all', async () => {
    const customer = await makeCustomer(pool)
    const body = { ...Object(CALLS.chat_completions?.('').body), max_tokens: 4_000 }
    const path = '/v1/chat/completions'
    const quote = await ask(url, customer.secret, path, {
      body: { ...body, max_tokens: 500 },
      headers: { 'x-farebox-cost-mode': 'quote' },
    })
    const most = BigInt(Math.round(Number(Object(quote.json.max).usd) * 1e9))
    await set(pool, customer, { kind: 'workspace', amount: 2n * most })
    await set(pool, customer, { kind: 'tag', subject: 'team=a', amount: most })
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: most + most / 2n })
    const headers = { ...tagged('team=a'), ...forUser('zoe'), 'x-farebox-hold': 'full' }
    await untilKnown(url, customer.secret, 3, { ...tagged('team=a'), ...forUser('zoe') })
    const told = await ask(url, customer.secret, path, { body, headers })
    assert.equal(membersOf(told).budget_kind, 'tag', told.text)
    const fitting = Number(membersOf(told).fitting_output_limit)
    assert.ok(fitting >= 498 && fitting <= 500, told.text)
    assert.equal(
      (await ask(url, customer.secret, path, { body: { ...body, max_tokens: fitting + 2 }, headers })).status,
      402,
    )
    const fitted = await ask(url, customer.secret, path, { body, headers: { ...headers, 'x-farebox-fit': 'shrink' } })
    assert.equal(fitted.status, 200, fitted.text)
    assert.equal(Number(fitted.headers.get('x-farebox-fitted-limit')), fitting)
  })

  it('that would make a call count against more than eight is refused when it is set, not at the call', async () => {
    const customer = await makeCustomer(pool)
    for (const period of ['day', 'week', 'month', 'total'] as const)
      await set(pool, customer, { kind: 'workspace', amount: 1_000_000_000n, period })
    for (const name of ['a', 'b', 'c'])
      await set(pool, customer, { kind: 'tag', subject: `${name}=1`, amount: 1_000_000_000n })
    const before = await pool.query('select count(*) from budgets where account_id = $1', [customer.accountId])
    for (const one of [
      { kind: 'tag', subject: 'd=*' },
      { kind: 'end_user', subject: '*' },
      { kind: 'end_user', subject: 'alice' },
      { kind: 'tag', subject: 'a=1', period: 'day' },
    ] as const)
      await assert.rejects(
        set(pool, customer, { amount: 1n, ...one }),
        /could count against (9|10) budgets at once; the limit is 8/,
      )
    await set(pool, customer, { kind: 'tag', subject: 'a=2', amount: 1_000_000_000n })
    await set(pool, customer, { kind: 'tag', subject: 'a=1', amount: 900_000_000n })
    const after = await pool.query('select count(*) - 1 as count from budgets where account_id = $1', [
      customer.accountId,
    ])
    assert.deepEqual(after.rows, before.rows)
    await untilKnown(url, customer.secret, 7, tagged('a=1,b=1,c=1'))
    assert.equal((await detail(customer.secret, tagged('a=1,b=1,c=1'))).status, 200)
  })

  it('that is set again counts what it counted, and one that is lowered holds from the commit on', async () => {
    const customer = await makeCustomer(pool)
    const made = await set(pool, customer, { kind: 'workspace', amount: 10n * PRICE, period: 'month' })
    await untilKnown(url, customer.secret, 1)
    assert.deepEqual(statuses([await detail(customer.secret), await detail(customer.secret)]), [200, 200])
    await set(pool, customer, { kind: 'workspace', amount: PRICE, period: 'month' })
    assert.equal((await detail(customer.secret)).status, 402)
    await removeBudget({ pool }, ACTOR, made.id)
    await untilKnown(url, customer.secret, 0)
    assert.equal((await detail(customer.secret)).status, 200)
    await set(pool, customer, { kind: 'workspace', amount: TWO, period: 'month' })
    await untilKnown(url, customer.secret, 1)
    assert.equal((await detail(customer.secret)).status, 402, 'set anew it goes on counting')
    assert.equal(made.id, allowanceIdOf(customer.accountId, 'workspace', '', 'month'))
    assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
  })
})

describe('what a request says of whose spend it is', () => {
  it('is refused with 400 where its tags are wrong, and nothing is asked or charged', async () => {
    const { secret } = await makeCustomer(pool, { key: { tags: tagsIn(['a=1', 'b=1']) } })
    const asked = (await sandbox.journal()).length
    const nine = Array.from({ length: 9 }, (_, at) => `t${at}=1`).join(',')
    for (const [wrong, words] of [
      ['team', /name=value/],
      ['', /name=value/],
      ['team=', /tag value has 1 to 64/],
      ['Team=a', /tag name has 1 to 32/],
      [`${'x'.repeat(33)}=a`, /tag name/],
      [`team=${'x'.repeat(65)}`, /tag value/],
      ['team=a b', /tag value/],
      ['team=*', /tag value/],
      ['team=a,team=b', /stands twice/],
      [nine, /at most 8 tags/],
      ['c=1,d=1,e=1,f=1,g=1,h=1,i=1', /with those of the key these are 9/],
    ] as const) {
      const told = await detail(secret, tagged(wrong))
      assert.deepEqual([told.status, codeOf(told)], [400, 'invalid_request'], wrong)
      assert.match(String(errorOf(told).message), words)
    }
    const long = 'x'.repeat(513)
    assert.equal((await detail(secret, forUser(long))).status, 400)
    const { path, body } = CALLS.chat_completions?.('') ?? assert.fail()
    const inBody = await ask(url, secret, path, { body: { ...Object(body), user: long } })
    assert.deepEqual([inBody.status, codeOf(inBody)], [400, 'invalid_request'])
    assert.match(String(errorOf(inBody).message), /has 513 characters; the limit is 512/)
    assert.equal((await sandbox.journal()).length, asked)
    assert.equal((await detail(secret, tagged('c=1,d=1,e=1,f=1,g=1,h=1'))).status, 200)
  })

  it('is the same name in a header as in a body and in a command, in any script', async () => {
    const customer = await makeCustomer(pool)
    await set(pool, customer, { kind: 'end_user', subject: 'Zo\u00eb \u6797', amount: 0n })
    const sent = (text: string) => forUser(Buffer.from(text, 'utf8').toString('latin1'))
    await untilKnown(url, customer.secret, 1, sent('Zo\u00eb \u6797'))
    assert.equal((await detail(customer.secret, sent('Zoe\u0308 \u6797'))).status, 402)
    const { path, body } = CALLS.chat_completions?.('') ?? assert.fail()
    const inBody = await ask(url, customer.secret, path, { body: { ...Object(body), user: 'Zo\u00eb \u6797' } })
    assert.equal(inBody.status, 402)
    assert.equal((await detail(customer.secret, forUser('Zo\u00eb'))).status, 200, 'one byte that is no UTF-8')
    const { rows } = await pool.query("select label from end_users where account_id = $1 and label = 'Zo\u00eb'", [
      customer.accountId,
    ])
    assert.equal(rows.length, 1)
  })

  it('is one person from session to session, and the header beats the body', async () => {
    const customer = await makeCustomer(pool)
    const idsOf = (session: string) => JSON.stringify({ device_id: 'laptop', account_uuid: '', session_id: session })
    await set(pool, customer, { kind: 'end_user', subject: idsOf('any'), amount: 0n })
    await untilKnown(url, customer.secret, 1, forUser(idsOf('other')))
    const { path, body } = CALLS.messages?.('') ?? assert.fail()
    const message = (session: string, headers = {}) =>
      ask(url, customer.secret, path, { body: { ...Object(body), metadata: { user_id: idsOf(session) } }, headers })
    assert.deepEqual(
      statuses([await message('one'), await message('two'), await message('two', forUser('me'))]),
      [402, 402, 200],
    )
    const { rows } = await pool.query('select id, label from end_users where account_id = $1 order by label', [
      customer.accountId,
    ])
    assert.deepEqual(rows, [
      { id: endUserIdOf(customer.accountId, idsOf('x')), label: 'device laptop' },
      { id: endUserIdOf(customer.accountId, 'me'), label: 'me' },
    ])
  })
})
