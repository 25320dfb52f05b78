import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { setKeyBudget } from '../../server/src/identity/key-changes.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ACTOR, ids, makeCustomer, startInstallation } from './installation.ts'
import { openSlowly } from './slow-request.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { pool } = installation
after(installation.stop)

const CALLS = 40

describe('a process that is told to stop while calls are at their upstream', () => {
  for (const [who, env, charged] of [
    ['callers have left', {}, CALLS],
    ['callers are cut off', { FAREBOX_HTTP_DRAIN_MS: '300' }, 0],
  ] as const) {
    it(`and ${who}, ends every one of them`, async () => {
      const customer = await makeCustomer(pool)
      const gateway = await startGateway({
        databaseUrl: database.url,
        env: { FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn', ...env },
      })
      const left = new AbortController()
      const asking = Array.from({ length: CALLS }, () =>
        request(`${gateway.url}/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=sandbox:delay=8000`, {
          headers: { authorization: `Bearer ${customer.secret}` },
          signal: left.signal,
        }).catch(() => {}),
      )
      const held = async () =>
        (await pool.query('select from holds where account_id = $1', [customer.accountId])).rowCount ?? 0
      await until(async () => (await held()) === CALLS, PATIENCE_MS, 'all calls begun')
      if (charged > 0) left.abort()
      await delay(100)
      await gateway.stop()
      await Promise.all(asking)
      assert.equal(await held(), 0)
      const { rows } = await pool.query(
        'select count(*)::integer as calls, (count(*) filter (where amount > 0))::integer as charged from charges where account_id = $1',
        [customer.accountId],
      )
      assert.deepEqual(rows, [{ calls: CALLS, charged }])
      assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
    })
  }
})

describe('a request whose body takes long', () => {
  it('is judged by the key as it is when the body has come', async () => {
    const customer = await makeCustomer(pool)
    const slow = await openSlowly(installation.url, customer.secret, '/v1/rerank', { query: 'a', documents: ['b'] })
    await setKeyBudget({ pool, ids }, ACTOR, customer.keyId, { period: 'day', amount: nanos(0n) })
    await delay(1_500)
    assert.equal(await slow.finish(), 402)
  })
})
