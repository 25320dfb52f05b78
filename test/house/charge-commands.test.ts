import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { readStatement } from '../../server/src/ledger/statement.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { connectPeople, SITE, workspaceOf } from '../identity/people/world.ts'
import { callOf, openSession, postOf } from '../ledger/session.ts'
import { ids, makeCredential } from '../ledger/world.ts'
import { startShell } from './command-shell.ts'

const { url } = await freshDatabase()
const masterKey = makeMasterKey()
const world = connectPeople(url, { masterKey })
const { pool, people, join, letters } = world
const session = await openSession(url)
after(() => Promise.all([session.close(), world.close()]))
const env = { ...process.env, FAREBOX_DATABASE_URL: url, FAREBOX_HTTP_TRUSTED_PROXIES: 'none' }
const { farebox, said } = startShell({
  ...{ ...env, FAREBOX_HTTP_SITE_URL: SITE, FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal() },
})
const silent = startShell(env)

let people_made = 0
/** A workspace with an owner, and a call of it that was charged 1 USD, a part of which promotional credit paid. */
async function makeCharged() {
  people_made += 1
  const email = `owner${people_made}@example.com`
  const workspaceId = await workspaceOf(people, await join(email))
  const { rows } = await pool.query('select live_account_id as id from workspaces where id = $1', [workspaceId])
  const accountId: string = rows[0].id
  await said('credit', workspaceId, '4.60')
  await said('credit', workspaceId, '0.40', '--kind', 'promotion')
  const party = { accountId, credentialId: await makeCredential(pool, accountId) }
  const call = callOf(party, { hold: 2_000_000_000n })
  await session.begin(call)
  await session.end(postOf(call, 1_000_000_000n))
  return { email, workspaceId, accountId, party, call: call.id }
}

const balanceOf = async (accountId: string) =>
  (await pool.query('select credited - charged as free, promo from accounts where id = $1', [accountId])).rows[0]

describe('farebox charges refund', () => {
  it('gives a part back and then the rest, in the hour of the refund, and tells the owner each time', async () => {
    const { email, workspaceId, accountId, party, call } = await makeCharged()
    const before = await balanceOf(accountId)
    const refund = (...more: string[]) => said('charges', 'refund', call, '--reason', 'It was cut off.', ...more)
    assert.match(
      await refund('--amount', '0.25'),
      /Refunded 0\.250000000 USD of call .*\n0\.750000000 USD of the charge/,
    )
    assert.match(await refund(), /Refunded 0\.750000000 USD .*\n0\.000000000 USD of the charge are left/)
    const { free, promo } = await balanceOf(accountId)
    const { rows } = await pool.query('select promo from charges where id = $1', [call])
    assert.deepEqual([free - before.free, promo - before.promo], [1_000_000_000n, rows[0].promo])
    const told = (await letters(email)).flatMap((letter) => (letter.what === 'charge_refunded' ? [letter.amount] : []))
    assert.deepEqual(told, ['0.250000000', '0.750000000'])
    while ((await addUpUsage(pool)) > 0);
    const now = Math.floor(Date.now() / 3_600_000) * 3_600
    const window = { startSeconds: now - 86_400, endSeconds: now + 86_400 }
    const { groups = [] } = await readUsage(pool, { scope: party, ...window, groupBy: 'operation' })
    assert.deepEqual(
      groups.map(({ totals }) => [totals.requests, totals.charged]),
      [[1n, 0n]],
    )
    const explained = await said('ledger', 'explain', call)
    assert.match(explained, /charge reversal at .*charged -0\.750000000 USD/)
    const audited = await said('audit', '--workspace', workspaceId)
    assert.match(audited, /charge\.refunded .*It was cut off\./)
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('stands in the statement by itself, and the lines add up to the balance', async () => {
    const { workspaceId, accountId, call } = await makeCharged()
    const added = await said('credit', workspaceId, '3', '--reference', `Transfer ${call}`, '--note', 'By hand.')
    const [, credited = ''] = /as entry (\S+)\.\n$/.exec(added) ?? []
    const statement = async () => {
      const day = new Date(new Date().toISOString().slice(0, 10))
      const [from, to] = [new Date(day.getTime() - 86_400_000), new Date(day.getTime() + 2 * 86_400_000)]
      const { opening, closing, lines } = await readStatement(pool, { accountId, from, to, most: 100 })
      assert.equal(
        lines.reduce((sum: bigint, { amount }) => sum + amount, opening),
        closing,
      )
      const { rows } = await pool.query('select credited + debt - charged as balance from accounts where id = $1', [
        accountId,
      ])
      assert.equal(closing, rows[0].balance)
      return lines
    }
    const usage = async () => (await statement()).filter(({ kind }) => kind === 'usage').map(({ amount }) => amount)
    const before = await usage()
    const { refund_id: id } = JSON.parse(
      await said('charges', 'refund', call, '--amount', '0.25', '--reason', 'Late.', '--json'),
    )
    await said('charges', 'refund', call, '--goodwill', '--reason', 'A gift.')
    assert.deepEqual(await usage(), before)
    while ((await addUpUsage(pool)) > 0);
    assert.deepEqual(await usage(), before)
    const lines = await statement()
    const one = lines.find((line) => line.id === id)
    assert.deepEqual([one?.kind, one?.amount, one?.request_id], ['charge_reversal', 250_000_000n, call])
    assert.equal(lines.find(({ kind }) => kind === 'forgiveness')?.amount, 750_000_000n)
    assert.equal(lines.find((line) => line.id === credited)?.reference, `Transfer ${call}`)
    const twice = await farebox('credit', workspaceId, '3', '--reference', `Transfer ${call}`)
    assert.deepEqual(
      [twice.code, twice.output.includes(`stands at entry ${credited} already`)],
      [1, true],
      twice.output,
    )
    assert.match(await said('audit', '--subject', credited), /"note":"By hand\."/)
    // What was given by mistake is taken back, and the right credit carries the reference.
    await said('credit', '--reverse', credited)
    assert.match(await said('credit', workspaceId, '4', '--reference', `Transfer ${call}`), /as entry /)
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('is made once for the same command, and once for an id', async () => {
    const { accountId, call } = await makeCharged()
    const { free } = await balanceOf(accountId)
    const part = ['charges', 'refund', call, '--amount', '0.1', '--reason', 'Late.']
    await said(...part)
    assert.match(await said(...part), /was already made: 0\.100000000 USD\. Nothing was changed\./)
    const id = ids.next()
    await said(...part, '--id', id)
    assert.match(await said('charges', 'refund', call, '--reason', 'Another.', '--id', id), /was already made/)
    assert.equal((await balanceOf(accountId)).free - free, 200_000_000n)
  })

  it('never gives more than was charged, whatever is asked for', async () => {
    const { accountId, call } = await makeCharged()
    const { free } = await balanceOf(accountId)
    assert.match(
      await said('charges', 'refund', call, '--amount', '7', '--reason', 'All.'),
      /Refunded 1\.000000000 USD/,
    )
    const again = await farebox('charges', 'refund', call, '--reason', 'Once more.')
    assert.deepEqual([again.code, /has been given back already/.test(again.output)], [1, true])
    assert.equal((await balanceOf(accountId)).free - free, 1_000_000_000n)
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('of goodwill is a loss of the operator, and the result is JSON for a program', async () => {
    const { accountId, call } = await makeCharged()
    const result = JSON.parse(await said('charges', 'refund', call, '--goodwill', '--reason', 'A gift.', '--json'))
    assert.deepEqual(
      [result.kind, result.amount_usd, result.left_usd, result.account_id, result.is_new, result.told],
      ['forgiveness', '1.000000000', '0.000000000', accountId, true, 1],
    )
    const { rows } = await pool.query('select kind, charged, overrun from entries where id = $1', [result.refund_id])
    assert.deepEqual(rows, [{ kind: 'forgiveness', charged: -1_000_000_000n, overrun: 1_000_000_000n }])
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('says what is wrong, and what nobody was told', async () => {
    const { call } = await makeCharged()
    for (const [line, wrong] of [
      [['charges', 'refund', 'x', '--reason', 'r'], /"x" is not an id of a call/],
      [['charges', 'refund', call, '--reason', ' '], /--reason must have from 1 to 300 characters/],
      [['charges', 'refund', call, '--reason', 'r', '--amount', '0'], /--amount must be more than 0 USD/],
      [['charges', 'refund', ids.next(), '--reason', 'r'], /nothing was charged for a call/],
    ] as const) {
      const { code, output } = await farebox(...line)
      assert.deepEqual([code, wrong.test(output)], [1, true], output)
    }
    assert.match(await silent.said('charges', 'refund', call, '--reason', 'r'), /Nobody was told/)
  })
})
