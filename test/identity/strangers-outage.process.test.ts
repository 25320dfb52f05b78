import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { makeKey } from '../../server/src/identity/key-format.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { connect } from '../ledger/world.ts'
import { anotherAddress, ask, ids, makeCustomer, PROBE_SERVER } from './customers.ts'

describe('trap: the store is down: unlimited, or 500 for everybody, or 401', () => {
  it('everybody is told 503 and when to come back, and after its return all is as before', async () => {
    const postgres = await startPostgres()
    after(() => postgres.remove())
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const { pools } = connect(postgres.url())
    after(() => pools.close())
    const warm = await makeCustomer(pools.rest, { promotion: 1_000n })
    const cold = await makeCustomer(pools.rest, { promotion: 1_000n })
    const poor = await makeCustomer(pools.rest)
    const gateway = await startGateway({ databaseUrl: postgres.url(), ...PROBE_SERVER })
    after(() => gateway.kill())
    const address = anotherAddress()
    assert.equal((await ask(gateway.url, warm.secret, { hold: 1 }, { address })).status, 200)
    assert.equal((await ask(gateway.url, poor.secret, { hold: 1 })).status, 402)

    const everybody = () => [
      ask(gateway.url, warm.secret, { hold: 1 }, { address }),
      ask(gateway.url, warm.secret, {}, { address }),
      ask(gateway.url, cold.secret, { hold: 1 }),
      ask(gateway.url, poor.secret, { hold: 1 }),
      ask(gateway.url, makeKey(ids.next(), 'live', 0).reveal()),
      ask(gateway.url, makeKey(warm.keyId, 'live', 0).reveal(), {}, { address }),
    ]
    await postgres.kill()
    // From the first instant, when much is still known from memory, until nothing is.
    const asked = everybody()
    await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503, PATIENCE_MS, 'unreadiness')
    for (let n = 0; n < 10; n += 1) asked.push(...everybody())
    for (const { status, code, headers } of await Promise.all(asked)) {
      assert.deepEqual([status, code], [503, 'billing_dependency_timeout'])
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    // What is no key at all needs no store to be told so.
    assert.equal((await ask(gateway.url, 'x')).status, 401)

    await postgres.start()
    const tookMs = await until(
      async () => (await ask(gateway.url, warm.secret, { hold: 1 }, { address })).status === 200,
      PATIENCE_MS,
      'the first call after the outage',
    )
    judge('identity-outage', 'from the return of PostgreSQL to a first call', { unit: 'ms', atMost: 10_000 }, [tookMs])
    const statuses = (await Promise.all(everybody())).map(({ status }) => status)
    assert.deepEqual(statuses, [200, 200, 200, 402, 401, 401])
  })
})
