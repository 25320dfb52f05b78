import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { listBudgetsToNotice, NOTICE_SOURCES } from '../../server/src/budgets/notices.ts'
import { changeBudget } from '../../server/src/budgets/set-budgets.ts'
import { listToNotice } from '../../server/src/grants/mandates.ts'
import { setKeyBudget } from '../../server/src/identity/key-changes.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { createBalanceNotices } from '../../server/src/notices/balance.ts'
import { createBudgetNotices, levelToTell } from '../../server/src/notices/budgets.ts'
import { createSendMail, type Mail, mail } from '../../server/src/storage/mail.ts'
import { readPayload } from '../../server/src/storage/outbox.ts'
import { ACTOR, type Customer, ids, makeCustomer } from '../acceptance/installation.ts'
import { makeGranted, makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { set } from './setting.ts'
import { spend } from './spend.ts'

/** Who looks after a workspace is told of its money: once, however many workers look at once. */
const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())
const seal = createSeal({ current: makeMasterKey() })
const sendMail = createSendMail({ ids, seal })
const siteUrl = 'https://farebox.example'
const told = { pool, sendMail, siteUrl }
const WORKERS = 6
const together = (worker: () => () => Promise<void>) => Promise.all(Array.from({ length: WORKERS }, () => worker()()))
const notice = () => together(() => createBudgetNotices(told))
const LOW = usd('1')
const noticeBalances = () => together(() => createBalanceNotices({ ...told, low: LOW }))

/** Letters to an address, in the order in which they were written. */
async function lettersTo(email: string): Promise<readonly Mail[]> {
  const { rows } = await pool.query<{ id: string; payload: string | null; sealed: Buffer | null }>(
    "select id, payload, sealed from outbox where kind = 'mail' order by id",
  )
  return rows.map((row) => mail.parse(readPayload(row, seal))).filter(({ to }) => to === email)
}

const percentsTo = async (email: string) =>
  (await lettersTo(email)).map((letter) => (letter.what === 'budget_used' ? letter.percent : letter.what))

async function makeStaffed(customer?: Customer) {
  const made = customer ?? (await makeCustomer(pool, { money: 1_000_000_000_000n }))
  const [owner, admin, developer] = [
    await makeMember(pool, made.workspaceId, 'owner'),
    await makeMember(pool, made.workspaceId, 'admin'),
    await makeMember(pool, made.workspaceId, 'developer'),
  ]
  return { ...made, owner: owner.email, admin: admin.email, developer: developer.email }
}

describe('what may have to be told', () => {
  it('is listed once each, in portions of any size', async () => {
    for (const at of [1n, 2n, 3n]) {
      const customer = await makeCustomer(pool, {
        money: 1_000n,
        key: { budget: { period: 'month', amount: nanos(at) } },
      })
      await set(pool, customer, { kind: 'tag', subject: `team=${at}`, amount: at, period: 'week' })
      await makeGranted(pool, { workspaceId: customer.workspaceId, budget: { amount: nanos(at), period: 'total' } })
    }
    const lists = [
      ...NOTICE_SOURCES.map(
        (source) => (after: Id | null, limit: number) => listBudgetsToNotice(pool, source, after, limit),
      ),
      (after: Id | null, limit: number) => listToNotice(pool, after, limit),
    ]
    for (const list of lists) {
      const all = (await list(null, 1_000)).map(({ after }) => after)
      assert.ok(all.length >= 3)
      for (const limit of [1, 2]) {
        const walked: Id[] = []
        for (
          let found = await list(null, limit);
          found.length > 0 && walked.length <= all.length;
          found = await list(walked.at(-1) ?? null, limit)
        )
          walked.push(...found.map(({ after }) => after))
        assert.deepEqual(walked, all)
      }
    }
  })
})

describe('a budget that is used', () => {
  it('is told to owners and admins at a half, at four fifths and at its end: once each, and to nobody else', async () => {
    const customer = await makeStaffed()
    const { id } = await set(pool, customer, { kind: 'tag', subject: 'team=a', amount: 1_000n, period: 'week' })
    const steps: readonly (readonly [amount: bigint, percents: readonly number[]])[] = [
      [499n, []],
      [1n, [50]],
      [299n, [50]],
      [1n, [50, 80]],
      [190n, [50, 80]],
      [1n, [50, 80, 100]],
      [9n, [50, 80, 100]],
    ]
    for (const [amount, percents] of steps) {
      await spend(calls, customer, amount, [id])
      await notice()
      for (const email of [customer.owner, customer.admin]) assert.deepEqual(await percentsTo(email), percents)
    }
    assert.deepEqual(await lettersTo(customer.developer), [])
    const [first] = await lettersTo(customer.owner)
    assert.deepEqual(
      first?.what === 'budget_used' && [first.budget, first.period, first.isTest, first.charged, first.left],
      [...['tag team=a', 'week', true, '0.000000500', '0.000000500']],
    )
  })

  it('is told once for several levels that were passed at once, anew after a raise, and in the next period', async () => {
    const customer = await makeStaffed()
    const { id } = await set(pool, customer, { kind: 'workspace', amount: 1_000n, period: 'day' })
    await spend(calls, customer, 900n, [id])
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [80])
    await changeBudget({ pool }, ACTOR, id, nanos(1_500n))
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [80, 50])
    await changeBudget({ pool }, ACTOR, id, nanos(900n))
    await notice()
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [80, 50, 100])
    await pool.query("update budget_notices set starts_at = starts_at - interval '1 day' where allowance_id = $1", [id])
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [80, 50, 100, 100], 'as on the next day')
  })

  it('is told of the period before too: what was passed after the last look of it', async () => {
    const customer = await makeStaffed()
    const { id } = await set(pool, customer, { kind: 'workspace', amount: 1_000n, period: 'day' })
    await spend(calls, customer, 600n, [id])
    await notice()
    await spend(calls, customer, 300n, [id])
    const aDayPasses = async () => {
      for (const table of ['kept_periods', 'budget_notices'])
        await pool.query(`update ${table} set starts_at = starts_at - interval '1 day' where allowance_id = $1`, [id])
    }
    await aDayPasses()
    await spend(calls, customer, 500n, [id])
    await notice()
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [50, 80, 50], 'of yesterday, then of today')
    const [, late] = await lettersTo(customer.owner)
    assert.ok(late?.what === 'budget_used' && late.resetsAt !== null && new Date(late.resetsAt) <= new Date())
  })

  it('of a key is told as well; of those that everybody has, nobody is told one by one', async () => {
    const customer = await makeStaffed(
      await makeCustomer(pool, { money: 1_000_000_000n, key: { budget: { period: 'month', amount: nanos(100n) } } }),
    )
    const { rows } = await pool.query<{ id: string }>('select allowance_id as id from api_keys where id = $1', [
      customer.keyId,
    ])
    await spend(calls, customer, 60n, [rows[0]?.id ?? ''])
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 0n })
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [50])
    await setKeyBudget({ pool, ids }, ACTOR, customer.keyId, { period: 'month', amount: nanos(110n) })
    await notice()
    assert.deepEqual(await percentsTo(customer.owner), [50, 50], 'a raise begins anew')
  })

  it('is told of nothing where nothing may be spent, and what is held is not used yet', () => {
    const startsAt = new Date(0)
    const state = { startsAt, amount: nanos(100n), held: nanos(60n), spent: nanos(60n) }
    assert.equal(levelToTell({ noticedFrom: null, noticed: 0 }, state), undefined)
    assert.equal(levelToTell({ noticedFrom: null, noticed: 0 }, { ...state, held: nanos(0n) }), 50)
    assert.equal(levelToTell({ noticedFrom: startsAt, noticed: 50 }, { ...state, held: nanos(0n) }), undefined)
    assert.equal(levelToTell({ noticedFrom: null, noticed: 0 }, { ...state, amount: nanos(0n) }), undefined)
  })
})

describe('a balance that is low', () => {
  it('is told once, and again after it was above', async () => {
    const customer = await makeStaffed(await makeCustomer(pool, { money: usd('3'), key: { mode: 'live' } }))
    await noticeBalances()
    assert.deepEqual(await lettersTo(customer.owner), [])
    await spend(calls, customer, usd('2.5'), [])
    await noticeBalances()
    await noticeBalances()
    for (const email of [customer.owner, customer.admin]) assert.deepEqual(await percentsTo(email), ['balance_low'])
    assert.deepEqual(await lettersTo(customer.developer), [])
    const top = { accountId: customer.accountId, kind: 'payment', amount: usd('1') } as const
    await creditAccount(pool, { entryId: ids.next(), ...top })
    await noticeBalances()
    await spend(calls, customer, usd('0.6'), [])
    await noticeBalances()
    assert.deepEqual(await percentsTo(customer.owner), ['balance_low', 'balance_low'])
  })

  it('is told to others where a letter of one account fails', async () => {
    const customers = await Promise.all(
      Array.from({ length: 3 }, async () =>
        makeStaffed(await makeCustomer(pool, { money: usd('3'), key: { mode: 'live' } })),
      ),
    )
    for (const customer of customers) await spend(calls, customer, usd('2.5'), [])
    const { rows } = await pool.query<{ id: string }>('select id from accounts where id = any ($1) order by id', [
      customers.map(({ accountId }) => accountId),
    ])
    const first = customers.find(({ accountId }) => accountId === rows[0]?.id) ?? assert.fail()
    const failing: typeof sendMail = (query, letter) =>
      letter.to === first.owner ? Promise.reject(new Error('no letter')) : sendMail(query, letter)
    await assert.rejects(createBalanceNotices({ ...told, sendMail: failing, low: LOW })(), /of 1 low balances/)
    for (const { owner } of customers)
      assert.deepEqual(await percentsTo(owner), owner === first.owner ? [] : ['balance_low'])
    await noticeBalances()
    assert.deepEqual(await percentsTo(first.owner), ['balance_low'])
  })

  it('is no news where there never was as much, or of test money', async () => {
    const poor = await makeStaffed(await makeCustomer(pool, { money: usd('0.5'), key: { mode: 'live' } }))
    const testing = await makeStaffed(await makeCustomer(pool, { money: usd('3') }))
    await spend(calls, testing, usd('2.9'), [])
    await noticeBalances()
    for (const { owner } of [poor, testing]) assert.deepEqual(await lettersTo(owner), [])
  })
})
