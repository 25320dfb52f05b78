import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { COMMAND_DEADLINE_MS, FAREBOX } from '../../harness/gateways.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isSoldByUnit } from '../../server/src/catalogue/operation.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR } from '../identity/customers.ts'
import { connect } from '../ledger/world.ts'
import { type Ended, startShell } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())
const ids = createIds({ clock: systemClock })
const folder = mkdtempSync(path.join(tmpdir(), 'price-commands-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const env = { ...process.env, FAREBOX_DATABASE_URL: database.url, FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal() }
const { farebox, said } = startShell(env)

/** Runs a line in a process of its own, as an operator does. */
function program(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [FAREBOX, ...args], { env, timeout: COMMAND_DEADLINE_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr })
    })
  })
}

async function accountPrices(accountId: string): Promise<readonly unknown[]> {
  const { rows } = await pool.query('select operation, unit_price::text from account_prices where account_id = $1', [
    accountId,
  ])
  return rows
}

const NOBODY = '01a1dd7c-3f6a-7000-93b4-661a883f55ec'

describe('farebox prices', () => {
  it('list every operation with its unit and price: the published one, or the newest that was set', async () => {
    const lines = (await said('prices', 'list')).trimEnd().split('\n')
    assert.equal(lines.length, catalogue.operations.filter(isSoldByUnit).length)
    assert.ok(lines.includes('rerank  0.00000005 USD per token  published'))
    assert.ok(lines.includes('user_stories  0.0029 USD per call  published'))
  })

  it('set a new version each time, with what it costs us', async () => {
    assert.equal(
      await said('prices', 'set', 'tag_detail', '0.002'),
      'Price of tag_detail, version 1: 0.002 USD per call.\n',
    )
    assert.equal(
      await said('prices', 'set', 'tag_detail', '0.0015', '--cost', '0.001'),
      'Price of tag_detail, version 2: 0.0015 USD per call. Margin: 33.3 %.\n',
    )
    assert.match(await said('prices', 'list'), /^tag_detail {2}0\.0015 USD per call {2}version 2 {2}margin 33\.3 %$/m)
    const { rows } = await pool.query(
      "select version, unit_price::text, provider_cost::text from price_versions where operation = 'tag_detail' order by version",
    )
    assert.deepEqual(rows, [
      { version: 1, unit_price: '0.002', provider_cost: null },
      { version: 2, unit_price: '0.0015', provider_cost: '0.001' },
    ])
    const { rows: changes } = await pool.query("select key from change_log where topic = 'price'")
    assert.deepEqual(changes, [{ key: 'tag_detail' }, { key: 'tag_detail' }])
  })

  it('set and account sell nothing below cost, unless they are told to', async () => {
    const { id } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Customer' })
    const versions = async () =>
      (await pool.query("select version from price_versions where operation = 'user_stories'")).rowCount
    const told = await farebox('prices', 'set', 'user_stories', '0.5', '--cost', '5')
    assert.deepEqual(told, {
      code: 1,
      output:
        'farebox: the price of user_stories would be below its cost: 0.5 USD, and it costs us 5 USD (margin -900.0 %). Correct the price or the cost, or add --below-cost\n',
      stdout: '',
    })
    assert.equal(await versions(), 0)
    assert.match(
      await said('prices', 'set', 'user_stories', '0.5', '--cost', '5', '--below-cost'),
      /version 1: .* Margin: -900\.0 %\.\n$/,
    )
    // The cost that is known stays, and so does what it forbids.
    assert.equal((await farebox('prices', 'set', 'user_stories', '4.99')).code, 1)
    await said('prices', 'set', 'user_stories', '5')
    assert.match((await farebox('prices', 'account', id, 'user_stories', '4')).output, /below its cost: 4 USD/)
    await said('prices', 'account', id, 'user_stories', '4', '--below-cost')
    assert.equal(await versions(), 2)
  })

  it('account give a customer its own price for live or test money, and take it back', async () => {
    const { id, liveAccountId, testAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Customer' })
    assert.equal(
      await said('prices', 'account', id, 'rerank', '0.00000001'),
      `Account ${id} pays 0.00000001 USD for rerank.\n`,
    )
    assert.deepEqual(await accountPrices(liveAccountId), [{ operation: 'rerank', unit_price: '0.00000001' }])
    assert.deepEqual(await accountPrices(testAccountId), [])
    await said('prices', 'account', id, 'tag_detail', '0', '--test')
    assert.deepEqual(await accountPrices(testAccountId), [{ operation: 'tag_detail', unit_price: '0' }])
    assert.equal(
      await said('prices', 'account', id, 'rerank', 'none'),
      `Account ${id} pays the standard price for rerank.\n`,
    )
    assert.deepEqual(await accountPrices(liveAccountId), [])
  })

  for (const [what, args, says] of [
    [
      'an operation that nobody sells',
      ['set', 'nothing', '1'],
      /there is no operation "nothing": see farebox prices list/,
    ],
    ['a price that is none', ['set', 'rerank', 'cheap'], /not a plain decimal number: "cheap"/],
    ['an exponent', ['set', 'rerank', '1e3'], /not a plain decimal number/],
    ['no number', ['set', 'rerank', 'NaN'], /not a plain decimal number/],
    ['nothing', ['set', 'rerank', ''], /not a plain decimal number/],
    ['less than nothing', ['set', 'rerank', '--', '-1'], /a price is not negative/],
    ['a cost that is none', ['set', 'rerank', '1', '--cost', 'x'], /not a plain decimal number: "x"/],
    ['an own price of nothing sold', ['account', NOBODY, 'nothing', '1'], /there is no operation "nothing"/],
    [
      'a customer that nobody is',
      ['account', NOBODY, 'rerank', '1'],
      new RegExp(`[Tt]here is no (account|workspace) ${NOBODY}`),
    ],
    ['what is no id', ['account', 'nobody', 'rerank', '1'], /"nobody" is not an id/],
  ] as const)
    it(`say what is wrong with ${what}, and change nothing`, async () => {
      const count = async () => (await pool.query('select count(*)::integer as n from price_versions')).rows[0].n
      const before = await count()
      const { code, output } = await farebox('prices', ...args)
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.match(output, /^farebox: /)
      assert.equal(await count(), before)
    })
})

describe('farebox upstreams', () => {
  const CREDENTIAL = 'S3cret-0f-the-vendor'
  const credentialFile = path.join(folder, 'credential')
  writeFileSync(credentialFile, `${CREDENTIAL}\n`)

  it('add one with its credential from a file, list it, and remove it; the credential is never printed or kept in plain', async () => {
    const none = await said('upstreams', 'list')
    assert.equal(none, 'There are no upstreams: see farebox upstreams add.\n')
    const added = await said(
      ...['upstreams', 'add', 'reseller', 'https://api.vendor.example/base', '--managed'],
      ...['--credential-file', credentialFile, '--segment', 'social_c=clips', 'social_b=pics'],
    )
    const [, id = ''] = /^Upstream ([0-9a-f-]{36}) added to the slot reseller\.\n$/.exec(added) ?? []
    assert.notEqual(id, '', added)
    const plain = await said('upstreams', 'add', 'rerank', 'http://127.0.0.1:9', '--test')
    const listed = await said('upstreams', 'list')
    assert.deepEqual(
      listed.trimEnd().split('\n').toSorted(),
      [
        `${id}  reseller  live  https://api.vendor.example/base  managed`,
        `${plain.slice(9, 45)}  rerank  test  http://127.0.0.1:9  native  no credential`,
      ].toSorted(),
    )
    const { rows } = await pool.query(
      "select u.segments, u.credential is not null as sealed, encode(u.credential, 'escape') as bytes from upstreams u where id = $1",
      [id],
    )
    assert.deepEqual([rows[0].segments, rows[0].sealed], [{ social_c: 'clips', social_b: 'pics' }, true])
    for (const text of [added, listed, rows[0].bytes]) assert.ok(!text.includes(CREDENTIAL))

    assert.equal(await said('upstreams', 'remove', id), `Upstream ${id} is removed.\n`)
    assert.ok(!(await said('upstreams', 'list')).includes(id))
    const again = await farebox('upstreams', 'remove', id)
    assert.deepEqual([again.code, /[Tt]here is no upstream/.test(again.output)], [1, true])
  })

  it('take a credential from a file alone: as an argument it is refused, and not repeated', async () => {
    const before = await said('upstreams', 'list')
    for (const option of ['--credential', '--key', '--token']) {
      const { code, output } = await program(env, 'upstreams', 'add', 'rerank', 'https://a.example', option, CREDENTIAL)
      assert.notEqual(code, 0)
      assert.ok(!output.includes(CREDENTIAL), output)
    }
    const { code, output } = await farebox('upstreams', 'add', 'rerank', `https://user:${CREDENTIAL}@a.example`)
    assert.equal(code, 1)
    assert.match(output, /must not hold a user or a password/)
    assert.ok(!output.includes(CREDENTIAL), output)
    assert.equal(await said('upstreams', 'list'), before)
  })

  it('keep no credential without a master key', async () => {
    const { FAREBOX_SECRETS_MASTER_KEY: _, ...without } = env
    const { code, output } = await program(
      without,
      'upstreams',
      'add',
      'rerank',
      'https://a.example',
      '--credential-file',
      credentialFile,
    )
    assert.equal(code, 1, output)
    assert.match(output, /There is no master key/)
    assert.ok(!output.includes(CREDENTIAL))
  })

  for (const [what, args, says] of [
    ['what is no URL', ['add', 'rerank', 'a.example'], /must be a URL such as/],
    ['plain http to elsewhere', ['add', 'rerank', 'http://a.example'], /must be https/],
    ['a query in the URL', ['add', 'rerank', 'https://a.example/?key=1'], /must not have a query/],
    [
      'a file that is not there',
      ['add', 'rerank', 'https://a.example', '--credential-file', '/nowhere/x'],
      /\/nowhere\/x/,
    ],
    [
      'a segment that is none',
      ['add', 'rerank', 'https://a.example', '--segment', 'x'],
      /"x" is not a segment: use name=word/,
    ],
    [
      'a segment that leads elsewhere',
      ['add', 'rerank', 'https://a.example', '--segment', 'x=../y'],
      /segments\.x: must be one segment of a path\.\n$/,
    ],
    [
      'a name of a segment that is none',
      ['add', 'rerank', 'https://a.example', '--segment', 'X=y'],
      /segments\.X: must have a name of lower-case letters, digits and _\.\n$/,
    ],
    [
      'more polls than there can be',
      ['add', 'rerank', 'https://a.example', '--polls-per-second', '1000001'],
      /pollsPerSecond: must be a whole number from 1 to 1000000\.\n$/,
    ],
    [
      'a URL that is too long',
      ['add', 'rerank', `https://a.example/${'a'.repeat(2_000)}`],
      /baseUrl: must have at most 2,000 characters\.\n$/,
    ],
    ['what is no id', ['remove', 'x'], /"x" is not an id/],
  ] as const)
    it(`say what is wrong with ${what}, and change nothing`, async () => {
      const before = await said('upstreams', 'list')
      const { code, output } = await farebox('upstreams', ...args)
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.equal(await said('upstreams', 'list'), before)
    })
})
