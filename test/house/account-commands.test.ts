import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { expirePromotions } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { startInstallation } from '../acceptance/installation.ts'
import { makeCustomer } from '../identity/customers.ts'
import { startShell } from './command-shell.ts'
import { bareEnvironment, runFarebox } from './run-farebox.ts'

/** What operators do for and about customers, over a service that runs. */

const { url: databaseUrl } = await freshDatabase()
const installation = await startInstallation(databaseUrl)
after(() => installation.stop())
const { pool, url } = installation
const given = { FAREBOX_DATABASE_URL: databaseUrl, FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal() }
const { farebox, said } = startShell({ ...bareEnvironment(), ...given })

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const NOBODY = '01a1dd7c-3f6a-7000-93b4-661a883f55ec'

async function refused(...line: readonly string[]): Promise<string> {
  const { code, output } = await farebox(...line)
  assert.equal(code, 1, output)
  return output
}

type Sent = { readonly headers?: Readonly<Record<string, string>>; readonly model?: string }

/** A call that costs 1 or 2 thousandths of a millionth for each word. */
async function chat(secret: string, { headers = {}, model = 'sandbox/text' }: Sent = {}) {
  const told = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  return { status: told.status, headers: told.headers, json: JSON.parse(await told.text()) }
}

/** A customer with test money, which the sandbox's upstreams take. */
async function tester(amount = '1') {
  const customer = await makeCustomer(pool, { key: { mode: 'test' } })
  const added = await said('credit', customer.workspaceId, amount, '--test')
  const [, entryId = ''] = /as entry (\S+)\.\n$/.exec(added) ?? []
  return { ...customer, entryId, testAccountId: customer.workspace.testAccountId }
}

async function deedsOf(action: string, subject?: string): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    'select before, after from audit where action = $1 and ($2::text is null or subject = $2)',
    [action, subject ?? null],
  )
  return rows
}

describe('farebox accounts', () => {
  it('list shows who there is, with tier, keys and money, by a part of the name, and page by page', async () => {
    const made = await said('accounts', 'create', '--name', 'Zebra \u001b[31m Ltd')
    const [account = ''] = new RegExp(ID).exec(made) ?? []
    await said('credit', account, '12.5')
    await said('credit', account, '3', '--test')
    await said('keys', 'create', account)
    assert.equal(
      await said('accounts', 'list', '--name', 'zebra'),
      `${account}  Zebra ?[31m Ltd  starter  1 key  12.500000000 USD  8.000000000 test\n`,
    )
    assert.match(await said('accounts', 'list'), new RegExp(`^${account}  `))
    assert.doesNotMatch(await said('accounts', 'list', '--after', account), new RegExp(account))
    assert.match(await said('accounts', 'list', '--name', '%'), /^No accounts found/)
  })

  it('show has its money, tier, plan, own prices and keys with what they spent and what is left of their budgets', async () => {
    const { workspaceId, testAccountId, accountId, keyId, secret } = await tester()
    await said('keys', 'budget', keyId, '0.5/month')
    await said('prices', 'account', workspaceId, 'rerank', '0.00000004')
    await said('models', 'account', workspaceId, 'sandbox/text', '0.5x', '--test')
    await said('plans', 'set', 'partner', '0.75x')
    await said('accounts', 'plan', workspaceId, 'partner')
    await until(async () => (await chat(secret)).headers.get('x-farebox-price-version') === 'account', PATIENCE_MS)
    const { rows } = await pool.query('select charged from accounts where id = $1', [testAccountId])
    const nine = (nanos: bigint) => `0.${String(nanos).padStart(9, '0')}`
    const [spent, left] = [nine(rows[0].charged), nine(500_000_000n - rows[0].charged)]
    const free = nine(1_000_000_000n - rows[0].charged)
    const lines = (await said('accounts', 'show', workspaceId)).split('\n')
    assert.match(lines[0] ?? '', new RegExp(`^Account ${workspaceId}, A customer, since \\S+Z$`))
    assert.deepEqual(lines.slice(1), [
      'Tier free, plan partner: each key has 60 requests per minute, 60000 tokens per minute, 5 concurrent calls',
      `Live money ${accountId}: 0.000000000 USD available, 0.000000000 charged so far`,
      `Test money ${testAccountId}: ${free} USD available, ${spent} charged so far`,
      'Own price: rerank 0.00000004 USD',
      'Own price of test money: sandbox/text 0.5x the price of the model',
      'Keys:',
      `  ${keyId}  test  first  active  ${spent} USD this month  budget 0.500000000 USD per month, ${left} left`,
      '',
    ])
    assert.match(
      await said('keys', 'show', keyId),
      new RegExp(`\nSpent: ${spent} USD this month, ${spent} in total; ${left} USD of the budget left\n`),
    )
    assert.match(await said('plans', 'list'), /^partner {2}0\.75x {2}1 customer\nstandard {2}1x {2}\d+ customers?\n$/)
    assert.match(await refused('accounts', 'show', NOBODY), new RegExp(`there is no account ${NOBODY}`))
    assert.match(
      await refused('accounts', 'plan', workspaceId, 'nothing'),
      /there is no plan "nothing"\. Plans: partner, standard\. To add one: farebox plans set/,
    )
  })
})

describe("a customer's own price of a model", () => {
  it("is so many times the model's in every class, is quoted, charged and told as the account's, and can be taken back", async () => {
    const { workspaceId, secret } = await tester()
    const cost = async () => {
      const { status, headers } = await chat(secret)
      assert.equal(status, 200)
      return [headers.get('x-farebox-cost-usd'), headers.get('x-farebox-price-version')]
    }
    const [full, version] = await cost()
    await said('models', 'account', workspaceId, 'sandbox/text', '0.5x', '--test')
    await until(async () => (await cost())[1] === 'account', PATIENCE_MS)
    const quoted = (await chat(secret, { headers: { 'x-farebox-cost-mode': 'quote' } })).json
    assert.equal(quoted.price_version, 'account')
    assert.deepEqual(quoted.prices.slice(0, 2), [
      { unit: 'input token', usd: '0.00000025' },
      { unit: 'output token', usd: '0.000001' },
    ])
    assert.equal(Number((await cost())[0]) * 2, Number(full))
    assert.equal(
      await said('models', 'account', workspaceId, 'sandbox/text', 'none', '--test'),
      `Account ${workspaceId} pays the standard price for sandbox/text.\n`,
    )
    await until(async () => (await cost())[1] === version, PATIENCE_MS)
    assert.deepEqual(await cost(), [full, version])
    for (const [times, says] of [
      ['0.5', /"0\.5" is not a multiplier of the price: use 0x to 10x, such as 0\.8x/],
      ['11x', /use 0x to 10x/],
      ['-1x', /unknown option|is not a multiplier/],
    ] as const)
      assert.match(await refused('models', 'account', workspaceId, 'sandbox/text', '--', times), says)
    assert.match(
      await refused('models', 'account', workspaceId, 'sandbox/nothing', '0.5x'),
      /sandbox\/nothing has no price/,
    )
  })
})

describe('farebox credit', () => {
  it('is taken by a workspace that is being closed, and refused by one that is closed; one from before is told again', async () => {
    const { workspaceId, workspace } = await makeCustomer(pool, { key: { mode: 'test' } })
    const close = (state: string) =>
      pool.query(
        `insert into closures (id, workspace_id, closes_at, state, ended_at) values (gen_random_uuid(), $1, clock_timestamp() + interval '30 days', $2, $3)
         on conflict (workspace_id) where state <> 'canceled' do update set state = excluded.state, ended_at = excluded.ended_at`,
        [workspaceId, state, state === 'asked' ? null : new Date()],
      )
    const creditOf = async () =>
      (
        await pool.query(
          'select credited, (select count(*)::integer from entries where account_id = accounts.id) as entries from accounts where id = $1',
          [workspace.liveAccountId],
        )
      ).rows[0]
    await close('asked')
    const id = '01a1dd7c-3f6a-7000-93b4-661a883f5500'
    const taken = await said('credit', workspaceId, '5', '--id', id)
    assert.match(
      taken,
      /^The workspace will be closed at \d{4}-\d\d-\d\dT[\d:.]+Z: until an owner cancels that, .*\nAdded 5\.000000000 USD of credit/,
    )
    await close('closed')
    for (const kind of [[], ['--kind', 'promotion']])
      assert.match(await refused('credit', workspaceId, '5', ...kind), /this workspace is closed for good/)
    for (const line of [
      ['accounts', 'tier', workspaceId, 'growth'],
      ['budgets', 'set', workspaceId, '5/day', '--end-user', 'zoe'],
      ['prices', 'account', workspaceId, 'tag_detail', '4', '--test'],
      ['models', 'account', workspaceId, 'sandbox/text', '0.5x', '--test'],
    ])
      assert.match(await refused(...line), /closed for good/)
    assert.match(await said('credit', workspaceId, '5', '--id', id), /already exists, so nothing was added/)
    assert.deepEqual(await creditOf(), { credited: 5_000_000_000n, entries: 1 })
    assert.equal((await deedsOf('account.credited', id)).length, 1)
    // What was paid can be taken away: a chargeback does not ask.
    assert.match(await said('credit', '--reverse', id), /^Reversed the payment/)
    assert.deepEqual(await creditOf(), { credited: 0n, entries: 2 })
  })

  it('is refused once the grace period is over and nobody can cancel the closure, unless the account owes', async () => {
    const { workspaceId, secret, entryId, testAccountId } = await tester()
    await chat(secret)
    await pool.query(
      "insert into closures (id, workspace_id, closes_at, next_at) values (gen_random_uuid(), $1, clock_timestamp() - interval '1 second', 'infinity')",
      [workspaceId],
    )
    const entries = async () =>
      (await pool.query('select from entries where account_id = $1', [testAccountId])).rowCount
    for (const kind of [[], ['--kind', 'promotion']])
      assert.match(
        await refused('credit', workspaceId, '5', '--test', ...kind),
        /the grace period of this workspace ended at \S+Z: it cannot be canceled .* no credit can be added/,
      )
    assert.equal(await entries(), 1)
    // What was spent of a payment that is taken back is owed.
    await said('credit', '--reverse', entryId)
    assert.match(
      await said('credit', workspaceId, '1', '--test'),
      /the credit pays what it owes, and the rest cannot be spent\.\nAdded 1\.000000000 USD of test credit/,
    )
    assert.match(await refused('credit', workspaceId, '1', '--test'), /the account owes nothing/)
    assert.equal(await entries(), 3)
    assert.deepEqual(await verifyLedger(pool, [testAccountId]), [])
  })
})

describe('farebox credit --reverse', () => {
  it('takes a mistaken payment back once, and what was spent already is debt that suspends the account', async () => {
    const { secret, entryId, testAccountId } = await tester()
    const spent = Number((await chat(secret)).headers.get('x-farebox-cost-usd'))
    const told = await said('credit', '--reverse', entryId)
    assert.equal(
      told,
      `Reversed the payment ${entryId}: 1.000000000 USD taken from account ${testAccountId}.\n` +
        `${spent.toFixed(9)} USD of it is already spent or held. The account owes this amount, and is suspended until it is paid.\n`,
    )
    assert.equal(
      await said('credit', '--reverse', entryId),
      `The payment ${entryId} is already reversed, so nothing was changed.\n`,
    )
    const { rows } = await pool.query('select * from entries where corrects = $1', [entryId])
    assert.equal(rows.length, 1)
    assert.deepEqual(await deedsOf('payment.reversed', rows[0].id), [
      { before: null, after: { usd: '1.000000000', corrects: entryId } },
    ])
    const refusal = await chat(secret)
    assert.deepEqual([refusal.status, refusal.json.error.code], [402, 'account_suspended'])
    assert.deepEqual(await verifyLedger(pool, [testAccountId]), [])
  })

  it('takes one back once, whoever of several asks first', async () => {
    const { entryId } = await tester()
    const told = await Promise.all([1, 2, 3].map(() => runFarebox(['credit', '--reverse', entryId], given)))
    assert.deepEqual(
      told.map(({ code }) => code),
      [0, 0, 0],
    )
    assert.equal(told.filter(({ output }) => output.startsWith('Reversed ')).length, 1, JSON.stringify(told))
    const { rows } = await pool.query('select id from entries where corrects = $1', [entryId])
    assert.equal(rows.length, 1)
    assert.equal((await deedsOf('payment.reversed', rows[0].id)).length, 1)
  })

  it('ends a promotion, of which what was spent stays spent', async () => {
    const { workspaceId, workspace } = await makeCustomer(pool)
    const added = await said('credit', workspaceId, '2', '--kind', 'promotion')
    const [, entryId = ''] = /as entry (\S+)\.\n$/.exec(added) ?? []
    assert.match(
      await said('credit', '--reverse', entryId),
      new RegExp(`^Reversed the promotion ${entryId}: 2\\.000000000 USD taken`),
    )
    await expirePromotions(pool)
    const { rows } = await pool.query('select credited, promo, debt from accounts where id = $1', [
      workspace.liveAccountId,
    ])
    assert.deepEqual(rows, [{ credited: 0n, promo: 0n, debt: 0n }])
    assert.deepEqual(await deedsOf('promotion.ended', entryId), [{ before: null, after: { usd: '2.000000000' } }])
    assert.match(await said('credit', '--reverse', entryId), /is already reversed, so nothing was changed/)
    assert.deepEqual(await verifyLedger(pool, [workspace.liveAccountId]), [])
  })

  it('says what is wrong with no credit, something else beside it, and nothing at all', async () => {
    const { workspaceId } = await makeCustomer(pool)
    assert.match(await refused('credit', '--reverse', NOBODY), new RegExp(`there is no credit ${NOBODY}`))
    assert.match(
      await refused('credit', workspaceId, '5', '--reverse', NOBODY),
      /give no other argument and no other option/,
    )
    assert.match(await refused('credit', '--test', '--reverse', NOBODY), /give no other argument and no other option/)
    assert.match(await refused('credit', workspaceId), /name the account and the amount/)
  })
})

describe('farebox keys revoke --secret -', () => {
  const revoke = (secret: string) => runFarebox(['keys', 'revoke', '--secret', '-'], given, `${secret}\n`)
  const isTaken = async (secret: string) => (await chat(secret)).status !== 401

  it('ends a key by a secret that somebody found, read from standard input and printed nowhere', async () => {
    const { keyId, secret } = await tester()
    const { code, output } = await revoke(secret)
    assert.deepEqual([code, output], [0, `Key ${keyId} is revoked: it can no longer start paid calls.\n`])
    await until(async () => !(await isTaken(secret)), PATIENCE_MS)
    assert.deepEqual(await deedsOf('key.revoked', keyId), [
      { before: { isRevoked: false }, after: { isRevoked: true } },
    ])
    const again = await revoke(secret)
    assert.equal(again.code, 1)
    assert.match(again.output, /is already invalid/)
    assert.ok(!again.output.includes(secret.slice(-40)))
  })

  it('ends the secret before the last rotation alone', async () => {
    const { keyId, secret } = await tester()
    const [fresh = ''] = /fb_test_\w+/.exec(await said('keys', 'rotate', keyId)) ?? []
    const { code, output } = await revoke(secret)
    assert.deepEqual([code, /Its current secret still works/.test(output)], [0, true], output)
    const { rows } = await pool.query('select previous_hash from api_keys where id = $1', [keyId])
    assert.deepEqual(rows, [{ previous_hash: null }])
    await until(async () => !(await isTaken(secret)), PATIENCE_MS)
    assert.ok(await isTaken(fresh))
    assert.deepEqual(await deedsOf('key.secret_revoked', keyId), [
      { before: { hasPreviousSecret: true }, after: { hasPreviousSecret: false } },
    ])
  })

  it('takes no secret as an argument, and nothing that is none', async () => {
    const { secret } = await tester()
    const { code, output } = await runFarebox(['keys', 'revoke', '--secret', secret], given)
    assert.equal(code, 1)
    assert.match(output, /give --secret - and pass the secret on standard input/)
    assert.ok(!output.includes(secret.slice(-40)))
    assert.match((await revoke('nonsense')).output, /This is not a secret of an API key of this installation/)
    assert.match((await revoke('x'.repeat(2_000))).output, /more than 1024 bytes/)
    assert.ok(await isTaken(secret))
    assert.match(await refused('keys', 'revoke'), /name the key, or give --secret -/)
  })
})

describe('farebox ledger explain', () => {
  it('takes any id of an account: its own, its money, a key, a call, an entry and a quote', async () => {
    const { workspaceId, keyId, secret, entryId, testAccountId } = await tester()
    const quoteId: string = (await chat(secret, { headers: { 'x-farebox-cost-mode': 'quote' } })).json.quote_id
    const explain = (id: string) => said('ledger', 'explain', id)
    assert.match(
      await explain(quoteId),
      /^Quote for chat_completions of account .*: at most 0\.\d{9} USD, valid until .*\.\nNo call has used it\.\n$/,
    )
    const called = await chat(secret, { headers: { 'x-farebox-quote-id': quoteId } })
    const callId = called.headers.get('x-request-id') ?? ''
    assert.match(
      await explain(quoteId),
      new RegExp(`\nCall ${callId} has used it:\nCall ${callId} \\(chat_completions, sandbox/text\\) was charged`),
    )
    assert.match(await explain(callId), /was charged 0\.\d{9} USD\. It ended at .*\nCustomer: A customer, /)
    assert.match(await explain(workspaceId), new RegExp(`^Account ${workspaceId}, A customer`))
    assert.match(await explain(testAccountId), /is active\.\nIt was credited 1\.000000000 USD/)
    assert.match(
      await explain(keyId),
      new RegExp(`^Key ${keyId}, test, first\n(?:.*\n)*Account ${testAccountId} \\(test\\) is active\\.`),
    )
    assert.match(await explain(entryId), /^Entry .*, payment at /)
    assert.match(await refused('ledger', 'explain', NOBODY), /there is no account, key, call, task, entry or quote/)
    const leaked = await refused('ledger', 'explain', secret)
    assert.match(leaked, /this is the secret of a key/)
    assert.ok(!leaked.includes(secret.slice(-40)))
  })

  it('tells of a task what it is', async () => {
    const { secret } = await tester('5')
    const told = await fetch(`${url}/apis/v1/services/aigc/video-generation/video-synthesis`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-farebox-async': 'enable' },
      body: JSON.stringify({
        model: 'sandbox/video',
        input: { prompt: 'a fox' },
        parameters: { resolution: '720P', duration: 5 },
      }),
    })
    const body = JSON.parse(await told.text())
    assert.equal(told.status, 200, JSON.stringify(body))
    assert.match(
      await said('ledger', 'explain', body.output.task_id),
      /is running since .*, by the workers\.\n(?:.*\n)*Task: of sandbox\/video, [A-Z]+, created at /,
    )
  })
})
