import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../harness/gateways.ts'
import { killAndRestart } from '../../harness/kill-and-restart.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { allowanceIdOf } from '../../server/src/budgets/account-budgets.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { askAnybody, CALLS, makeCustomer, makeKey, startInstallation } from '../acceptance/installation.ts'
import { makeMember } from '../identity/granted.ts'
import { countedOf, endUserIdOf, set, untilKnown } from './setting.ts'

/**
 * Budgets of all five kinds, met at once by calls on three processes of which one after the other is killed. What is charged and held is
 * looked at all the while, and never is a nano above any of them.
 */
const CALLS_AT_ONCE = count({ full: 600, reduced: 150 })
const ROUNDS = count({ full: 5, reduced: 1 })
const END_USERS = 6
const RUNS = 5
const PAUSE_BETWEEN_KILLS_MS = 300
/** What a call of tag_detail costs, and holds. */
const PRICE = 1_450_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3, env: { FAREBOX_LOG_LEVEL: 'error' } })
const { pool } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})
const random = new Random(seed)

type Ceiling = {
  readonly name: string
  readonly allowanceId: Id
  readonly amount: bigint
  /** Which charges and holds are its own, of rows that have a key, tags and an end user: by what the calls are, not by what was counted. */
  readonly isOf: (row: Spent) => boolean
}

/** A customer with ceilings of every kind, of which each is met by some calls before the others. */
async function makeBudgeted() {
  const amountOf = (calls: number) => PRICE * BigInt(calls) + BigInt(random.between(0, Number(PRICE) - 1))
  const own = amountOf(20)
  const customer = await makeCustomer(pool, {
    money: 1_000_000_000_000n,
    key: { budget: { period: 'total', amount: nanos(own) } },
  })
  const { memberId, personId } = await makeMember(pool, customer.workspaceId, 'developer')
  const members = await makeKey(pool, customer.workspaceId, { memberId })
  const plain = await makeKey(pool, customer.workspaceId)
  const ofWorkspace = await set(pool, customer, { kind: 'workspace', amount: amountOf(60), period: 'month' })
  const ofMember = await set(pool, customer, {
    kind: 'member',
    subject: personId,
    amount: amountOf(15),
    period: 'week',
  })
  const ofTeam = await set(pool, customer, { kind: 'tag', subject: 'team=search', amount: amountOf(25), period: 'day' })
  const everyRun = await set(pool, customer, { kind: 'tag', subject: 'run=*', amount: amountOf(8) })
  const everybody = await set(pool, customer, { kind: 'end_user', subject: '*', amount: amountOf(7), period: 'day' })
  const alices = await set(pool, customer, { kind: 'end_user', subject: 'user 0', amount: amountOf(4), period: 'day' })
  const { rows } = await pool.query<{ id: Id }>('select allowance_id as id from api_keys where id = $1', [
    customer.keyId,
  ])
  const { accountId } = customer
  const derived = (kind: 'tag' | 'end_user', subject: string, like: typeof everybody): Ceiling => ({
    name: `${kind} ${subject}`,
    allowanceId: allowanceIdOf(accountId, kind, subject, like.period),
    amount: like.amount,
    isOf: ({ tags, endUser }) => (kind === 'tag' ? tags.includes(subject) : endUser === subject),
  })
  const single = ({ kind, id, amount }: typeof everybody, isOf: Ceiling['isOf']): Ceiling => ({
    ...{ name: kind, allowanceId: id, amount, isOf },
  })
  const ceilings: Ceiling[] = [
    { name: 'key', allowanceId: rows[0]?.id ?? '', amount: own, isOf: ({ keyId }) => keyId === customer.keyId },
    single(ofWorkspace, () => true),
    single(ofMember, ({ keyId }) => keyId === members.keyId),
    single(ofTeam, ({ tags }) => tags.includes('team=search')),
    single(alices, ({ endUser }) => endUser === endUserIdOf(accountId, 'user 0')),
    ...Array.from({ length: RUNS }, (_, run) => derived('tag', `run=${run}`, everyRun)),
    ...Array.from({ length: END_USERS - 1 }, (_, user) =>
      derived('end_user', endUserIdOf(accountId, `user ${user + 1}`), everybody),
    ),
  ]
  const headers = { 'x-farebox-tags': 'team=search,run=1', 'x-farebox-end-user': 'user 1' }
  for (const { url } of team) await untilKnown(url, customer.secret, 5, headers)
  for (const { url } of team) await untilKnown(url, members.secret, 5, headers)
  return { accountId, ceilings, secrets: [customer.secret, members.secret, plain.secret] }
}

type Budgeted = Awaited<ReturnType<typeof makeBudgeted>>

/** Whether anybody answered, and how. */
async function send({ secrets }: Budgeted): Promise<number> {
  const { path } = CALLS.tag_detail?.(`sandbox:delay=${random.between(0, 200)}`) ?? assert.fail()
  const tags = [
    ...(random.chance(0.5) ? ['team=search'] : []),
    ...(random.chance(0.7) ? [`run=${random.between(0, RUNS - 1)}`] : []),
  ]
  const headers = {
    ...(tags.length > 0 && { 'x-farebox-tags': tags.join(',') }),
    ...(random.chance(0.8) && { 'x-farebox-end-user': `user ${random.between(0, END_USERS - 1)}` }),
  }
  const secret = secrets[random.between(0, secrets.length - 1)] ?? ''
  const { url } = team[random.between(0, team.length - 1)] ?? { url: '' }
  return askAnybody(url, secret, path, { headers }).then(
    ({ status }) => status,
    () => 0,
  )
}

type Spent = {
  readonly keyId: Id
  readonly tags: readonly string[]
  readonly endUser: Id | null
  readonly amount: bigint
}

/** What is charged and held, in one snapshot, with whose it is. */
async function spentIn(accountId: Id): Promise<readonly Spent[]> {
  const { rows } = await pool.query<Spent>(
    `select credential_id as "keyId", coalesce(tags, '{}') as tags, end_user as "endUser", sum(amount)::bigint as amount from (
       select credential_id, tags, end_user, amount from charges where account_id = $1
       union all select credential_id, tags, end_user, amount from holds where account_id = $1
     ) row group by 1, 2, 3`,
    [accountId],
  )
  return rows
}

/** What each ceiling has charged and held, added up from the calls. */
function sumsOf(ceilings: readonly Ceiling[], spent: readonly Spent[]) {
  return ceilings.map(({ name, allowanceId, amount, isOf }) => ({
    ...{ name, allowanceId, amount },
    sum: spent.filter(isOf).reduce((sum, one) => sum + one.amount, 0n),
  }))
}

/** Those that are passed, by name. */
async function passedIn({ accountId, ceilings }: Budgeted): Promise<readonly string[]> {
  return sumsOf(ceilings, await spentIn(accountId))
    .filter(({ sum, amount }) => sum > amount)
    .map(({ name }) => name)
}

describe('budgets of five kinds at once', () => {
  it(`trap: concurrent first requests all pass the budget: ${CALLS_AT_ONCE} calls in three processes that are killed pass none by a nano`, async () => {
    let [looks, kills, begun, refused, lost, reached] = [0, 0, 0, 0, 0, 0]
    for (let round = 0; round < ROUNDS; round += 1) {
      const budgeted = await makeBudgeted()
      const { accountId, ceilings } = budgeted
      let isOver = false
      const watch = async () => {
        for (; !isOver; looks += 1) {
          assert.deepEqual(await passedIn(budgeted), [])
          await delay(20)
        }
      }
      const killing = killAndRestart(team, { random, pauseMs: PAUSE_BETWEEN_KILLS_MS, isOver: () => isOver })
      const watching = watch()
      const all = await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => send(budgeted)))
      const again = await Promise.all(all.filter((status) => status === 0).map(() => send(budgeted)))
      isOver = true
      kills += await killing
      await watching
      for (const status of [...all, ...again]) {
        if (status === 200) begun += 1
        else if (status === 402) refused += 1
        else lost += 1
      }
      assert.deepEqual(await passedIn(budgeted), [])
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
      // Calls of a process that was killed may still be swept between the two looks.
      const agree = async () => {
        for (const { allowanceId, sum } of sumsOf(ceilings, await spentIn(accountId)))
          if ((await countedOf(pool, allowanceId)) !== sum) return false
        return true
      }
      await until(agree, PATIENCE_MS, 'that each budget counts what its calls have spent')
      reached += sumsOf(ceilings, await spentIn(accountId)).filter(({ amount, sum }) => amount - sum < PRICE).length
    }
    assert.ok(begun > 0 && refused > 0)
    sometimes(kills > 0, 'a kill')
    sometimes(reached >= 3 * ROUNDS, `three ceilings are reached a round (${reached} in ${ROUNDS})`)
    recordProof('budgets', 'five kinds of budgets at once, with kills', {
      ...{ calls: CALLS_AT_ONCE * ROUNDS, processes: 3, kills, begun, refused, unanswered: lost },
      ...{ ceilings_each_round: 5 + RUNS + END_USERS - 1, reached, looks, above: 0 },
    })
  })
})
