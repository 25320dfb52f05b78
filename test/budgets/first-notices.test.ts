import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createWorkspace } from '../../server/src/identity/workspaces.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { createBalanceNotices } from '../../server/src/oauth/balance-notices.ts'
import { createBudgetNotices } from '../../server/src/oauth/budget-notices.ts'
import { createSendMail } from '../../server/src/storage/mail.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { MIGRATIONS_FOLDER } from '../../server/src/storage/migrations.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { ACTOR } from '../acceptance/installation.ts'
import { makeMember } from '../identity/granted.ts'
import { connect, ids, makeAllowance, makeCredential } from '../ledger/world.ts'

/** A database of the release before, with budgets of keys that are used and balances that are low, is brought to this one. */
const NEXT = '0028_budgets.sql'
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const folder = mkdtempSync(path.join(tmpdir(), 'farebox-before-'))
after(async () => {
  rmSync(folder, { recursive: true })
  await pools.close()
})
for (const file of readdirSync(MIGRATIONS_FOLDER))
  if (file < NEXT) cpSync(path.join(MIGRATIONS_FOLDER, file), path.join(folder, file))
await pool.query('drop schema public cascade; create schema public')
await migrate({ url: new Secret(database.url), log: silentLog, folder })

const sendMail = createSendMail({ ids, seal: createSeal({ current: makeMasterKey() }) })
const told = { pool, sendMail, siteUrl: 'https://farebox.example' }
const look = async () => {
  await createBudgetNotices(told)()
  await createBalanceNotices({ ...told, low: usd('1') })()
  const { rowCount } = await pool.query("select from outbox where kind = 'mail'")
  return rowCount
}

/** A workspace with an owner, and a key whose budget of 100 is charged so much in the running month. */
async function makeUsed(charged: bigint) {
  const { id: workspaceId, liveAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Used' })
  await makeMember(pool, workspaceId, 'owner')
  await creditAccount(pool, { entryId: ids.next(), accountId: liveAccountId, kind: 'payment', amount: usd('3') })
  const allowanceId = await makeAllowance(pool, liveAccountId, 'month', 100n)
  const keyId = await makeCredential(pool, liveAccountId)
  await pool.query(
    "insert into api_keys (id, workspace_id, name, hash, allowance_id) values ($1, $2, 'old', decode(repeat('00', 32), 'hex'), $3)",
    [keyId, workspaceId, allowanceId],
  )
  await pool.query(
    `insert into allowance_periods (allowance_id, starts_at, amount, charged) values
       ($1, period_start('month', clock_timestamp()), 100, $2),
       ($1, period_start('month', period_start('month', clock_timestamp()) - interval '1 second'), 100, 100)`,
    [allowanceId, charged],
  )
  return { allowanceId, accountId: liveAccountId }
}

const charge = (accountId: string, amount: bigint) =>
  pool.query('update accounts set charged = charged + $2 where id = $1', [accountId, amount])

describe('the first look after an upgrade', () => {
  it('tells nobody what was used before, and tells what is used from then on', async () => {
    const [used, unused] = [await makeUsed(60n), await makeUsed(10n)]
    await charge(used.accountId, usd('2.5'))
    await migrate({ url: new Secret(database.url), log: silentLog })
    assert.equal(await look(), 0)
    for (const { allowanceId } of [used, unused])
      await pool.query(
        "update kept_periods set charged = 85 where allowance_id = $1 and starts_at = period_start('month', clock_timestamp())",
        [allowanceId],
      )
    assert.equal(await look(), 2)
    await charge(unused.accountId, usd('2.5'))
    assert.equal(await look(), 3)
  })
})
