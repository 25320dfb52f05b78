import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { after, before, describe, it } from 'node:test'
import { COMMAND_DEADLINE_MS, FAREBOX, type Gateway, startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createKey } from '../../server/src/identity/keys.ts'
import { ACTOR, ask, ids, makeCustomer, PROBE_SERVER } from '../identity/customers.ts'
import { connect } from '../ledger/world.ts'
import { type Ended, startShell } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest

let gateway: Gateway
before(async () => {
  gateway = await startGateway({ databaseUrl: database.url, ...PROBE_SERVER })
})
after(async () => {
  await gateway.stop()
  await pools.close()
})

const env = { ...process.env, FAREBOX_DATABASE_URL: database.url }
const { farebox, said } = startShell(env)

/** Runs a line in a process of its own, as an operator does. */
function program(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [FAREBOX, ...args], { env, timeout: COMMAND_DEADLINE_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr })
    })
  })
}

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const KEY = 'fb_(?:live|test)_[0-9a-f]{35}_[0-9A-Za-z]{49}'
const first = (output: string, pattern: string) => {
  const found = new RegExp(pattern).exec(output)?.[0]
  assert.ok(found !== undefined, output)
  return found
}
const inTime = (isSo: () => Promise<boolean>) => until(isSo, PATIENCE_MS)
const statusOf = async (secret: string, query = {}) => (await ask(gateway.url, secret, query)).status

async function moneyOf(accountId: string): Promise<unknown> {
  const { rows } = await pool.query('select credited, promo, paid from accounts where id = $1', [accountId])
  return rows[0]
}

describe('farebox accounts and keys', () => {
  it('make a customer, a key that works, money that it can spend, and a tier', async () => {
    const made = await said('accounts', 'create', '--name', 'Example Ltd', '--email', 'Owner@Example.com')
    assert.match(
      made,
      new RegExp(
        `^Account (${ID}) created.\nIts money in the ledger: live ${ID}, test ${ID}\nNext: farebox keys create \\1\n$`,
      ),
    )
    const account = first(made, ID)
    const { rows } = await pool.query('select email, role from members where workspace_id = $1', [account])
    assert.deepEqual(rows, [{ email: 'owner@example.com', role: 'owner' }])

    assert.equal(await said('keys', 'list', account), 'There are no keys.\n')
    const key = await said('keys', 'create', account)
    assert.match(
      key,
      new RegExp(`^Key ${ID} created. It is a live key: .+ Its secret, which is shown only once:\n${KEY}\n$`),
    )
    const secret = first(key, KEY)
    assert.equal(await statusOf(secret, { hold: 1_000 }), 402)
    assert.match(
      await said('credit', account, '5', '--kind', 'promotion'),
      new RegExp(`^To retry safely, add: --id (${ID})\nAdded 5.000000000 USD of promotional credit as entry \\1.\n$`),
    )
    const { status, body } = await ask(gateway.url, secret, { hold: 1_000 })
    assert.deepEqual([status, body.tier, body.mode], [200, 'free', 'live'])

    assert.equal(
      await said('accounts', 'tier', account, 'growth'),
      `Account ${account} is on the tier growth. Each key has 3000 requests per minute, 3000000 tokens per minute, 50 concurrent calls.\n`,
    )
    await inTime(async () => (await ask(gateway.url, secret)).body.tier === 'growth')
    const limits = ['--rpm', '70', '--tpm', '70', '--concurrency', '2']
    assert.equal(
      await said('accounts', 'tier', account, 'enterprise', ...limits),
      `Account ${account} is on the tier enterprise. Each key has 70 requests per minute, 60000 tokens per minute, 5 concurrent calls.\n`,
    )
    await inTime(async () => (await ask(gateway.url, secret)).headers.get('x-ratelimit-limit-requests') === '70')
    assert.equal(
      await said('accounts', 'tier', account, 'earned'),
      `Account ${account} is on the tier free, which its payments have earned. Each key has 60 requests per minute, 60000 tokens per minute, 5 concurrent calls.\n`,
    )
    await inTime(async () => (await ask(gateway.url, secret)).body.tier === 'free')
  })

  it('rotate, limit, list and revoke a key', async () => {
    const { workspaceId: account, keyId, secret } = await makeCustomer(pool, { promotion: 1_000_000_000n })
    const rotated = await said('keys', 'rotate', keyId)
    assert.match(
      rotated,
      new RegExp(
        `^Key ${keyId} has a new secret; the old one still works for 24 hours. The new secret, which is shown only once:\n${KEY}\n$`,
      ),
    )
    const second = first(rotated, KEY)
    const oldSecret = /^Old secret: works until (\S+)$/m
    const [, until = ''] = oldSecret.exec(await said('keys', 'show', keyId)) ?? []
    const { rows: rotations } = await pool.query('select previous_until from api_keys where id = $1', [keyId])
    assert.deepEqual(new Date(until), rotations[0].previous_until)
    assert.deepEqual([await statusOf(secret), await statusOf(second)], [200, 200])
    const again = await said('keys', 'rotate', keyId, '--overlap', '0')
    assert.match(again, /; the old one no longer works\. /)
    assert.doesNotMatch(await said('keys', 'show', keyId), oldSecret)
    const third = first(again, KEY)
    assert.equal(await statusOf(third), 200)
    await inTime(async () => (await statusOf(second)) === 401)
    assert.equal(await statusOf(secret), 401)

    assert.equal(
      await said('keys', 'budget', keyId, '0.0000001/day'),
      `Key ${keyId} may spend 0.000000100 USD per day.\n`,
    )
    await inTime(async () => (await statusOf(third, { hold: 101 })) === 402)
    assert.equal(await said('keys', 'budget', keyId, '2/total'), `Key ${keyId} may spend 2.000000000 USD in total.\n`)
    assert.equal(
      await said('keys', 'budget', keyId, 'none'),
      `Key ${keyId} has no budget: only the balance of the account limits it.\n`,
    )
    await inTime(async () => (await statusOf(third, { hold: 101 })) === 200)

    assert.equal(await said('keys', 'revoke', keyId), `Key ${keyId} is revoked: it can no longer start paid calls.\n`)
    assert.equal(await statusOf(third, { hold: 1 }), 401)
    const listed = await said('keys', 'list', account)
    assert.match(listed, new RegExp(`^${keyId}  live  first  revoked \\S+Z  \\d+\\.\\d{9} USD this month\n$`))
    assert.ok(![secret, second, third].some((one) => listed.includes(one.slice(44))))
    const { rows } = await pool.query(
      "select distinct actor ~ '^operator .' as by_operator from audit where subject = $1 and action <> 'key.created'",
      [keyId],
    )
    assert.deepEqual(rows, [{ by_operator: true }])
  })

  it('make a key with scopes, an expiry and a budget, of test money', async () => {
    const { workspaceId: account } = await makeCustomer(pool)
    const options = [
      '--test',
      '--name',
      'a\x1b[31m key',
      '--scopes',
      'rerank, images',
      '--expires',
      '2099-01-31',
      '--budget',
      '5/month',
    ]
    const secret = first(await said('keys', 'create', account, ...options), KEY)
    assert.match(secret, /^fb_test_/)
    assert.equal(await statusOf(secret), 403)
    assert.equal(await statusOf(secret, { operation: 'rerank' }), 200)
    assert.match(
      await said('keys', 'list', account),
      /^\S+ {2}test {2}a\?\[31m key {2}active until 2099-01-31T00:00:00\.000Z {2}0\.000000000 USD this month {2}budget 5\.000000000 USD per month, 5\.000000000 left {2}scopes rerank, images$/m,
    )
    assert.equal(await statusOf(secret, { operation: 'rerank', hold: 1 }), 402)
    assert.match(await said('credit', account, '1', '--test'), /\nAdded 1\.000000000 USD of test credit as entry /)
    await inTime(async () => (await statusOf(secret, { operation: 'rerank', hold: 1 })) === 200)
  })
})

describe('farebox keys change and show', () => {
  it('tell what holds, whose it is, for what and from where', async () => {
    const { workspaceId: account, keyId, secret } = await makeCustomer(pool)
    const shown = async () => (await said('keys', 'show', keyId)).split('\n')
    assert.deepEqual((await shown()).slice(0, 9), [
      `Key ${keyId}, live, first`,
      `Account ${account}, tier free`,
      'State: active',
      'Budget: none',
      'Spent: 0.000000000 USD this month, 0.000000000 in total',
      'Requests per minute: 60 (limit of the tier)',
      'Tokens per minute: 60000 (limit of the tier)',
      'Concurrent calls: 5 (limit of the tier)',
      'Scopes: all',
    ])
    const own = [
      '--rpm',
      '9',
      '--tpm',
      '100000',
      '--concurrency',
      '2',
      '--scopes',
      'rerank, social',
      '--addresses',
      '10.0.0.0/8',
    ]
    assert.equal(
      await said('keys', 'change', keyId, ...own),
      `Key ${keyId} now has: scopes rerank, social; limit 9 requests per minute, 100000 tokens per minute, 2 concurrent calls; addresses 10.0.0.0/8.\n`,
    )
    assert.deepEqual((await shown()).slice(5), [
      'Requests per minute: 9 (limit of the key; the tier allows 60)',
      "Tokens per minute: 60000 (limit of the tier; the key's own limit is 100000)",
      'Concurrent calls: 2 (limit of the key; the tier allows 5)',
      'Scopes: rerank, social',
      'Addresses: 10.0.0.0/8',
      'On disconnect: cancel (default)',
      'Holding: growing (default)',
      'Tags: none',
      'Member: nobody',
      "Set by the operator, so that members can't change it: requests_per_minute, tokens_per_minute, concurrency, scopes, allowed_addresses",
      '',
    ])
    assert.match(
      await said('keys', 'list', account),
      /live {2}first {2}active {2}\d+\.\d{9} USD this month {2}scopes rerank, social {2}limit 9 requests per minute, .* {2}addresses 10\.0\.0\.0\/8\n$/,
    )
    await inTime(async () => (await statusOf(secret)) === 403)
    const told = await ask(gateway.url, secret, { operation: 'rerank' })
    assert.deepEqual([told.status, told.headers.get('x-ratelimit-limit-requests')], [200, '9'])
    const none = ['--rpm', 'none', '--tpm', 'none', '--concurrency', 'none', '--scopes', 'all', '--addresses', 'any']
    assert.equal(
      await said('keys', 'change', keyId, ...none),
      `Key ${keyId} has the limits of its tier, all scopes, and may be used from any address.\n`,
    )
    await inTime(async () => (await statusOf(secret)) === 200)
  })

  it('refuse a scope that is not there, with what is near, and change nothing', async () => {
    const { workspaceId: account, keyId } = await makeCustomer(pool, { key: { scopes: ['rerank'] } })
    const sizes = ['--context-window', '1000', '--output-cap', '10', '--output-most', '100']
    await said('models', 'set', 'maker/large', ...sizes)
    for (const [scopes, says] of [
      [
        'rerank,tag_detial',
        /^farebox: "tag_detial" is not a scope: did you mean tag_detail\? There are the categories models, /,
      ],
      [
        'model:maker/larg',
        /^farebox: "model:maker\/larg" is not a model: did you mean model:maker\/large\? See farebox models list/,
      ],
      ['maker/large', /did you mean model:maker\/large\?/],
      ['model:later/model', /"model:later\/model" is not a model\. See farebox models list/],
    ] as const)
      for (const line of [
        ['keys', 'create', account],
        ['keys', 'change', keyId],
      ]) {
        const { code, output } = await farebox(...line, '--scopes', scopes)
        assert.equal(code, 1)
        assert.match(output, says)
      }
    const { rows } = await pool.query('select id, scopes from api_keys where workspace_id = $1', [account])
    assert.deepEqual(rows, [{ id: keyId, scopes: ['rerank'] }])
    await said('keys', 'change', keyId, '--scopes', 'model:maker/large,model:rerank')
  })
})

describe('farebox credit', () => {
  it('adds a payment once under an id, however often it is sent', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const id = ids.next()
    assert.equal(
      await said('credit', workspaceId, '12.5', '--id', id),
      `Added 12.500000000 USD of credit as entry ${id}.\n`,
    )
    const other = await farebox('credit', workspaceId, '99', '--id', id)
    assert.equal(other.code, 1)
    assert.match(other.output, /is there already, and is something else/)
    const again = await said('credit', workspaceId, '12.5', '--id', id.toUpperCase())
    assert.match(again, new RegExp(`^Entry ${id} already exists, so nothing was added:\n.*12\\.5`))
    assert.deepEqual(await moneyOf(accountId), { credited: 12_500_000_000n, promo: 0n, paid: 12_500_000_000n })
  })

  it('adds a promotion that ends, which earns no tier', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const options = ['--kind', 'promotion', '--expires', '2099-06-30T12:00:00+02:00']
    await said('credit', workspaceId, '0.000000001', ...options)
    assert.deepEqual(await moneyOf(accountId), { credited: 1n, promo: 1n, paid: 0n })
    const { rows } = await pool.query('select expires_at from promotions where account_id = $1', [accountId])
    assert.deepEqual(rows, [{ expires_at: new Date('2099-06-30T10:00:00Z') }])
  })

  const deedsOf = async (workspaceId: string) => {
    const { rows } = await pool.query(
      "select actor, subject, after from audit where workspace_id = $1 and action = 'account.credited' order by at",
      [workspaceId],
    )
    return rows
  }
  const NOTHING = { credited: 0n, promo: 0n, paid: 0n }

  it('says in the audit log who added how much of what, once', async () => {
    const { workspaceId, workspace } = await makeCustomer(pool)
    const [paid, given] = [ids.next(), ids.next()]
    for (let n = 0; n < 2; n += 1) await said('credit', workspaceId, '12.5', '--id', paid)
    await said('credit', workspaceId, '1', '--kind', 'promotion', '--test', '--id', given)
    const actor = `operator ${userInfo().username}`
    assert.deepEqual(await deedsOf(workspaceId), [
      {
        actor,
        subject: paid,
        after: { usd: '12.500000000', kind: 'payment', accountId: workspace.liveAccountId },
      },
      {
        actor,
        subject: given,
        after: { usd: '1.000000000', kind: 'promotion', accountId: workspace.testAccountId, expiresAt: null },
      },
    ])
  })

  it('adds no money that can not be written into the audit log', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const id = ids.next()
    await pool.query("alter table audit add constraint nobody_credits check (action <> 'account.credited') not valid")
    const failed = await farebox('credit', workspaceId, '5', '--id', id)
    await pool.query('alter table audit drop constraint nobody_credits')
    assert.equal(failed.code, 1)
    assert.match(failed.output, /nobody_credits/)
    assert.deepEqual([await moneyOf(accountId), await deedsOf(workspaceId)], [NOTHING, []])

    assert.match(await said('credit', workspaceId, '5', '--id', id), /^Added /)
    assert.equal((await deedsOf(workspaceId)).length, 1)
  })

  it('writes nothing into the audit log of money that could not be added', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    await pool.query("alter table entries add constraint nobody_pays check (kind <> 'payment') not valid")
    const failed = await farebox('credit', workspaceId, '5')
    await pool.query('alter table entries drop constraint nobody_pays')
    assert.equal(failed.code, 1)
    assert.deepEqual([await moneyOf(accountId), await deedsOf(workspaceId)], [NOTHING, []])
  })

  it('leaves neither money nor a record where it is killed between the two', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const id = ids.next()
    await pool.query(`create function wait_for_the_test() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(4711); return new; end $$`)
    await pool.query('create trigger waits before insert on audit for each row execute function wait_for_the_test()')
    const holder = await pool.connect()
    await holder.query('select pg_advisory_lock(4711)')
    const killed = execFile(process.execPath, [FAREBOX, 'credit', workspaceId, '5', '--id', id], { env })
    const waiting = async () => {
      const { rows } = await pool.query<{ pid: number }>(
        "select pid from pg_locks where locktype = 'advisory' and objid = 4711 and not granted",
      )
      return rows[0]?.pid
    }
    await until(async () => (await waiting()) !== undefined, PATIENCE_MS, 'that it has added the money')
    const pid = await waiting()
    killed.kill('SIGKILL')
    await holder.query('select pg_advisory_unlock(4711)')
    holder.release()
    const lives = async () => (await pool.query('select from pg_stat_activity where pid = $1', [pid])).rowCount === 1
    await until(async () => !(await lives()), PATIENCE_MS, 'that PostgreSQL has noticed')
    await pool.query('drop trigger waits on audit')
    assert.deepEqual([await moneyOf(accountId), await deedsOf(workspaceId)], [NOTHING, []])

    assert.match(await said('credit', workspaceId, '5', '--id', id), /^Added /)
    assert.equal((await deedsOf(workspaceId)).length, 1)
  })

  it('refuses what is no amount, and adds nothing', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    for (const [amount, says] of [
      ['0', /more than 0 USD/],
      ['-5', /more than 0 USD/],
      ['five', /not a plain decimal number: "five"/],
      ['1e9', /not a plain decimal number/],
      ['0.0000000001', /at most nine decimal places/],
      ['99999999999', /out of range/],
    ] as const) {
      const { code, output } = await farebox('credit', workspaceId, amount)
      assert.equal(code, 1, amount)
      assert.match(output, says)
    }
    assert.deepEqual(await moneyOf(accountId), { credited: 0n, promo: 0n, paid: 0n })
  })
})

const NOBODY = '01a1dd7c-3f6a-7000-93b4-661a883f55ec'
const LEAKED = `fb_live_${'0'.repeat(35)}_${'S3cret'.repeat(8)}x`

describe('farebox', () => {
  it('ends with 0 where it did what it was told, and with 1 where it says why not', async () => {
    const { workspaceId } = await makeCustomer(pool)
    const [right, wrong] = await Promise.all([
      program('keys', 'create', workspaceId),
      program('keys', 'create', NOBODY),
    ])
    assert.equal(right.code, 0)
    assert.equal(await statusOf(first(right.output, KEY)), 200)
    assert.deepEqual(wrong, { code: 1, output: `farebox: there is no account ${NOBODY}\n` })
  })
})

describe('farebox says what is wrong', () => {
  for (const [what, args, says] of [
    ['no name', ['accounts', 'create', '--name', ' '], '--name must have from 1 to 200 characters'],
    ['what is no address', ['accounts', 'create', '--name', 'x', '--email', 'x'], '"x" is not an e-mail address'],
    [
      'a tier that is none',
      ['accounts', 'tier', NOBODY, 'gold'],
      'there is no tier "gold" to set: use growth, enterprise or earned',
    ],
    [
      'an enterprise without limits',
      ['accounts', 'tier', NOBODY, 'enterprise'],
      '--rpm must be a whole number from 1 to 999,999,999',
    ],
    [
      'too many tokens',
      ['accounts', 'tier', NOBODY, 'enterprise', '--rpm', '1', '--tpm', '1000000000001', '--concurrency', '1'],
      '--tpm must be a whole number from 1 to 1,000,000,000,000',
    ],
    [
      'limits for another tier',
      ['accounts', 'tier', NOBODY, 'growth', '--rpm', '9'],
      '--rpm, --tpm and --concurrency are only for enterprise: growth has fixed limits',
    ],
    ['an account that nobody has', ['accounts', 'tier', NOBODY, 'growth'], `there is no account ${NOBODY}`],
    ['a new key for nobody', ['keys', 'create', NOBODY], `there is no account ${NOBODY}`],
    ['a list for nobody', ['keys', 'list', NOBODY], `there is no account ${NOBODY}`],
    ['money for nobody', ['credit', NOBODY, '1'], `there is no account ${NOBODY}`],
    ['a key that nobody has', ['keys', 'rotate', NOBODY], `there is no key ${NOBODY}`],
    ['nobody to revoke', ['keys', 'revoke', NOBODY], `there is no key ${NOBODY}`],
    ['nobody to limit', ['keys', 'budget', NOBODY, '1/day'], `there is no key ${NOBODY}`],
    ['nobody to change', ['keys', 'change', NOBODY, '--rpm', '1'], `there is no key ${NOBODY}`],
    ['nobody to show', ['keys', 'show', NOBODY], `there is no key ${NOBODY}`],
    ['nothing to change', ['keys', 'change', NOBODY], 'name at least one change: see farebox keys change --help'],
    ['no rate', ['keys', 'change', NOBODY, '--rpm', '0'], '--rpm must be a whole number from 1 to 999,999,999'],
    ['no tokens', ['keys', 'create', NOBODY, '--tpm', '-5'], '--tpm must be a whole number from 1 to 999,999,999'],
    [
      'no calls',
      ['keys', 'create', NOBODY, '--concurrency', '1.5'],
      '--concurrency must be a whole number from 1 to 999,999,999',
    ],
    [
      'no addresses',
      ['keys', 'change', NOBODY, '--addresses', ''],
      '--addresses must name addresses or networks, such as 203.0.113.7,2001:db8::/32',
    ],
    [
      'what is no network',
      ['keys', 'create', NOBODY, '--addresses', '10.0.0.0/8,010.0.0.1'],
      '"010.0.0.1" is not an address or network: use 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32',
    ],
    [
      'a network with bits beyond its length',
      ['keys', 'change', NOBODY, '--addresses', '10.1.2.3/8'],
      '"10.1.2.3/8" has bits beyond its length: use 10.0.0.0/8, or a longer prefix',
    ],
    [
      'too many networks',
      ['keys', 'create', NOBODY, '--addresses', Array.from({ length: 51 }, (_, at) => `10.0.0.${at}`).join(',')],
      'a key can have at most 50 networks, and you named 51',
    ],
    [
      'what is no id',
      ['keys', 'list', 'nonsense'],
      '"nonsense" is not an id of an account: "farebox accounts list" lists the ids',
    ],
    [
      'a secret instead of an id',
      ['keys', 'revoke', LEAKED],
      '"[redacted]" is not an id of a key: "farebox keys list <account>" lists the ids',
    ],
    [
      'what is no overlap',
      ['keys', 'rotate', NOBODY, '--overlap', '-1'],
      '--overlap must be a whole number of seconds from 0 to 31536000',
    ],
    [
      'an overlap of more than a year',
      ['keys', 'rotate', NOBODY, '--overlap', '31536001'],
      '--overlap must be a whole number of seconds from 0 to 31536000',
    ],
    [
      'what is no budget',
      ['keys', 'budget', NOBODY, '5/year'],
      '"5/year" is not a budget: use 20/month, 10/week, 5/day or 100/total',
    ],
    [
      'no scopes',
      ['keys', 'create', NOBODY, '--scopes', 'a,,b'],
      '--scopes must name operations, categories or models, such as rerank,social,model:<name>',
    ],
    [
      'what is no time',
      ['keys', 'create', NOBODY, '--expires', '5'],
      '"5" is not a time: use the form 2027-01-31T00:00:00Z',
    ],
    [
      'the past',
      ['keys', 'create', NOBODY, '--expires', '2001-01-01'],
      '--expires must be in the future: 2001-01-01 is past',
    ],
    [
      'paid money that ends',
      ['credit', NOBODY, '1', '--expires', '2099-01-01'],
      '--expires is only for --kind promotion: paid credit does not expire',
    ],
  ] as const) {
    it(`when it is given ${what}`, async () => {
      assert.deepEqual(await farebox(...args), { code: 1, output: `farebox: ${says}\n`, stdout: '' })
    })
  }

  it('when a tier has no place for another key', async () => {
    const { workspaceId } = await makeCustomer(pool)
    for (let n = 0; n < 9; n += 1) await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'more' })
    const { code, output } = await farebox('keys', 'create', workspaceId)
    assert.equal(code, 1)
    assert.match(
      output,
      /The workspace has 10 live keys; the limit of its tier is 10\. Revoke one, or move to a higher tier\.\n$/,
    )
  })
})
