import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { listRefusedCalls } from '../../server/src/gateway/read-refused-calls.ts'
import { KEPT_PER_MINUTE } from '../../server/src/gateway/refused-calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { call, makeCustomer, startInstallation } from './installation.ts'
import { eachOf } from './models/streams.ts'

const PROCESSES = 3
const FLOOD = 900
const AT_ONCE = 24
const MINUTE_MS = 60_000

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: PROCESSES })
const { pool, gateways } = installation
after(installation.stop)

const refusedOf = async (accountId: Id) =>
  (await listRefusedCalls(pool, { accountId, sinceMs: 0, untilMs: Date.now() + MINUTE_MS, limit: 10_000 })).rows

describe('a flood of refusals', () => {
  it('leaves 200 of a workspace and minute over three processes, and the rest as counts', async () => {
    const poor = await makeCustomer(pool, { money: 0n })
    const startedAt = Date.now()
    await eachOf(
      Array.from({ length: FLOOD }, (_, at) => at),
      AT_ONCE,
      async (at) => {
        const told = await call(gateways[at % PROCESSES]?.url ?? '', poor.secret, 'tag_detail')
        assert.equal(told.status, 402, told.text)
      },
    )
    const minutes = Math.floor(Date.now() / MINUTE_MS) - Math.floor(startedAt / MINUTE_MS) + 1
    await until(
      async () => (await refusedOf(poor.accountId)).length >= KEPT_PER_MINUTE,
      PATIENCE_MS,
      'that they are written',
    )
    const [killed, ...others] = gateways
    // What this one has not written yet is lost with it, and nothing else.
    const before = await refusedOf(poor.accountId)
    await call(killed?.url ?? '', poor.secret, 'rerank')
    await killed?.kill()
    await Promise.all(others.map((gateway) => gateway.stop()))
    const kept = await refusedOf(poor.accountId)
    const ids = new Set(kept.map(({ id }) => id))
    assert.ok(before.every(({ id }) => ids.has(id)))
    const byMinute = Map.groupBy(kept, ({ at }) => Math.floor(at.getTime() / MINUTE_MS))
    for (const some of byMinute.values()) assert.ok(some.length <= KEPT_PER_MINUTE, `${some.length} of a minute`)
    assert.ok(byMinute.size <= minutes + 1)
  })
})
