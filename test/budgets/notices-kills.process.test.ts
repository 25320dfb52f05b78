import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { makeCustomer } from '../acceptance/installation.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { set } from './setting.ts'
import { spend } from './spend.ts'

/** Three workers look for what is to be told and are killed while they do. Each person gets each letter once, in each period. */
const BUDGETS = count({ full: 400, reduced: 60 })
const KILLS = count({ full: 12, reduced: 3 })
const STEPS = [55n, 27n, 18n]
const PERIODS = count({ full: 3, reduced: 1 })
const PAUSE_BETWEEN_KILLS_MS = { least: 500, most: 4_000 }

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
const random = new Random(seed)
const workers: Gateway[] = await startGateways(3, {
  databaseUrl: database.url,
  env: {
    ...{ FAREBOX_ROLES: 'worker', FAREBOX_LOG_LEVEL: 'silent' },
    FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal(),
  },
})
after(async () => {
  await Promise.all(workers.map((worker) => worker.stop()))
  await pools.close()
})

/** How many letters each destination has: every person here has a domain of their own. */
async function lettersByDomain(): Promise<readonly number[]> {
  const { rows } = await pool.query<{ letters: number }>(
    "select count(*)::integer as letters from outbox where kind = 'mail' group by destination",
  )
  return rows.map(({ letters }) => letters)
}

/** All that has happened was a month ago. */
async function aMonthPasses(): Promise<void> {
  await pool.query(
    `begin; set local session_replication_role = replica;
     update kept_periods set starts_at = starts_at - interval '1 month';
     update credentials set budget_starts_at = budget_starts_at - interval '1 month', budget_ends_at = budget_starts_at; update budget_notices set starts_at = starts_at - interval '1 month';
     commit`,
  )
}

/** At least so many times, and until all letters are written. How many there were in each period. */
async function killSome(periodNow: () => number | 'over'): Promise<readonly number[]> {
  const killed = Array.from({ length: PERIODS }, () => 0)
  for (let kills = 0; kills < KILLS || periodNow() !== 'over'; kills += 1) {
    await delay(random.between(PAUSE_BETWEEN_KILLS_MS.least, PAUSE_BETWEEN_KILLS_MS.most))
    const at = random.between(0, workers.length - 1)
    const victim = workers[at] ?? assert.fail()
    const period = periodNow()
    if (period !== 'over') killed[period] = (killed[period] ?? 0) + 1
    await victim.kill()
    workers[at] = await victim.restart()
  }
  return killed
}

describe('notices of budgets', () => {
  it(`are written once each, by three workers that are killed ${KILLS} times or more`, async () => {
    const customers = await Promise.all(
      Array.from({ length: BUDGETS }, async (_, at) => {
        const customer = await makeCustomer(pool, { money: 1_000_000_000n })
        const { personId } = await makeMember(pool, customer.workspaceId, at % 2 === 0 ? 'owner' : 'admin')
        await pool.query('update people set email = $2 where id = $1', [personId, `someone@of-${at}.example`])
        const { id } = await set(pool, customer, { kind: 'workspace', amount: 100n, period: 'month' })
        return { customer, id }
      }),
    )
    let now: number | 'over' = 0
    const killing = killSome(() => now)
    let told = 0
    try {
      for (let period = 0; period < PERIODS; period += 1) {
        if (period > 0) await aMonthPasses()
        now = period
        for (const amount of STEPS) {
          for (const { customer, id } of customers) await spend(calls, customer, amount, [id])
          told += 1
          const areTold = async () => {
            const letters = await lettersByDomain()
            return letters.length === BUDGETS && letters.every((one) => one >= told)
          }
          await until(areTold, 3 * PATIENCE_MS, `letter ${told} of everybody`)
          assert.deepEqual(new Set(await lettersByDomain()), new Set([told]), 'nobody was told twice')
        }
      }
    } finally {
      now = 'over'
    }
    const killed = await killing
    sometimes(Math.min(...killed) > 0, `a kill in every period (${killed.join()})`)
    // Whatever a worker would tell once more, it tells when it looks again.
    await delay(2 * LOOK_EVERY_MS)
    assert.deepEqual(new Set(await lettersByDomain()), new Set([told]))
    recordProof('budget-notices', 'three levels of every budget and period, with workers killed', {
      ...{
        budgets: BUDGETS,
        periods: PERIODS,
        letters: BUDGETS * told,
        workers: 3,
        kills_by_period: killed,
        twice: 0,
        missing: 0,
      },
    })
  })
})

const LOOK_EVERY_MS = 10_000
