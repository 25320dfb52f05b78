import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { refusalsOf } from '../../server/src/gateway/refusals.ts'
import { createNetworks } from '../../server/src/kernel/networks.ts'
import { startShell } from '../house/command-shell.ts'
import { ask, call, codeOf, makeCustomer, makeKey, startInstallation, type Told } from './installation.ts'
import { eachOf } from './models/streams.ts'

const PROCESSES = 3
const AT_ONCE = 24
const ROUNDS = 60

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: PROCESSES })
const { pool, gateways } = installation
after(installation.stop)

type Answered = { readonly keyId: string; readonly told: Told }

/** What callers were told, by key and code: what the counts have to be. */
function tally(all: readonly Answered[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { keyId, told } of all) {
    if (told.status < 400 || told.status === 401) continue
    const name = `${keyId} ${codeOf(told)}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

async function counted(): Promise<Record<string, number>> {
  const { rows } = await pool.query(
    'select credential_id, reason, sum(count)::integer as count from refusals group by 1, 2',
  )
  return Object.fromEntries(rows.map(({ credential_id, reason, count }) => [`${credential_id} ${reason}`, count]))
}

describe('refusals of keys', () => {
  it('are counted exactly by key and reason over three processes, once these have written', async () => {
    const poor = await makeCustomer(pool, { money: 0n })
    const slow = await makeCustomer(pool, { requestsPerMinute: 10 })
    const scoped = await makeKey(pool, slow.workspaceId, { scopes: ['rerank'] })
    const distant = await makeKey(pool, slow.workspaceId, { networks: createNetworks(['192.0.2.0/24']) })
    const rich = await makeCustomer(pool)
    const all: Answered[] = []
    const asks: readonly ((url: string) => Promise<Answered>)[] = [
      async (url) => ({ keyId: poor.keyId, told: await call(url, poor.secret, 'rerank') }),
      async (url) => ({ keyId: slow.keyId, told: await call(url, slow.secret, 'tag_detail') }),
      async (url) => ({ keyId: scoped.keyId, told: await call(url, scoped.secret, 'tag_detail') }),
      async (url) => ({ keyId: distant.keyId, told: await call(url, distant.secret, 'tag_detail') }),
      async (url) => ({ keyId: rich.keyId, told: await ask(url, rich.secret, '/v1/nothing') }),
      async (url) => ({ keyId: rich.keyId, told: await ask(url, rich.secret, '/v1/rerank', { body: '{' }) }),
      async (url) => ({ keyId: rich.keyId, told: await call(url, rich.secret, 'rerank') }),
      async (url) => ({
        keyId: rich.keyId,
        told: await call(url, `${rich.secret.slice(0, -1)}${rich.secret.endsWith('x') ? 'y' : 'x'}`, 'rerank'),
      }),
    ]
    const rounds = Array.from({ length: ROUNDS }, (_, at) => at)
    await eachOf(rounds, AT_ONCE, async (at) => {
      const gateway = gateways[at % PROCESSES] ?? assert.fail()
      for (const one of asks) all.push(await one(gateway.url))
    })
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    const told = tally(all)
    assert.deepEqual(await counted(), told)
    assert.deepEqual(
      Object.keys(told)
        .map((name) => name.split(' ')[1])
        .sort(),
      [
        ...['address_not_allowed', 'forbidden', 'insufficient_balance', 'invalid_json', 'rate_limit_exceeded'],
        'route_not_found',
      ],
    )
    assert.equal(told[`${poor.keyId} insufficient_balance`], ROUNDS)
    assert.equal(told[`${distant.keyId} address_not_allowed`], ROUNDS)

    // However many, they are a row for each reason and hour; this may have taken from one hour into the next.
    const refused = await refusalsOf(pool, poor.keyId, new Date(0))
    assert.ok(refused.length <= 2)
    const { said } = startShell({ ...process.env, FAREBOX_DATABASE_URL: database.url })
    const printed = await said('keys', 'refusals', poor.keyId)
    for (const { hour, count } of refused)
      assert.ok(printed.includes(`${hour.toISOString()}  ${count}  insufficient_balance\n`), printed)
    assert.match(
      await said('keys', 'refusals', poor.workspaceId),
      /No calls of key .* were refused in the last 30 days/,
    )
  })
})
