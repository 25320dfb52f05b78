import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { TIERS } from '../../server/src/catalogue/tiers.ts'
import { setGrantBudget } from '../../server/src/grants/grants.ts'
import { setKeyBudget, setKeyExpiry } from '../../server/src/identity/key-changes.ts'
import { createKey, revokeKey, rotateKey } from '../../server/src/identity/keys.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { askOf } from '../../server/src/limits/ask.ts'
import { grantTier } from '../../server/src/workspaces/workspaces.ts'
import { connect, holdOf } from '../ledger/world.ts'
import { ACTOR, ask, type Customer, ids, makeCustomer, PROBE_SERVER, setPaid } from './customers.ts'
import { makeGranted, PLENTY } from './granted.ts'

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
const parts = { pool, ids }
const PROOF = 'identity-keys'
/** So soon every process knows of a change. */
const KNOWN = { unit: 'ms', atMost: 1_000 } as const
const MUCH = 1_000_000_000_000n

let gateways: readonly Gateway[] = []
before(async () => {
  gateways = await startGateways(2, { databaseUrl: database.url, ...PROBE_SERVER })
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
})

/** Every process knows the key, from memory. */
async function warm({ secret }: Customer): Promise<void> {
  for (const { url } of gateways) assert.equal((await ask(url, secret)).status, 200)
}

/** Until every process answers so; how long that took. */
async function everywhere(secret: string, isSo: (told: Awaited<ReturnType<typeof ask>>) => boolean): Promise<number> {
  const look = async () => {
    await delay(40)
    return (await Promise.all(gateways.map(({ url }) => ask(url, secret)))).every(isSo)
  }
  return until(look, PATIENCE_MS, 'the change')
}

describe('AUTH-6 a key', () => {
  it('works on every process as soon as it is issued', async () => {
    const customer = await makeCustomer(pool, { paid: MUCH })
    for (const { url } of gateways) assert.equal((await ask(url, customer.secret, { hold: 10 })).status, 200)
  })

  it('that is rotated works with both secrets during the overlap, and with the new one alone after it', async () => {
    const customer = await makeCustomer(pool, { paid: MUCH })
    await warm(customer)
    const rotated = (await rotateKey(parts, ACTOR, customer.keyId, 10)).reveal()
    for (const { url } of gateways) assert.equal((await ask(url, rotated)).status, 200)
    for (const { url } of gateways) assert.equal((await ask(url, customer.secret)).status, 200)
    await everywhere(customer.secret, ({ status }) => status === 401)
    for (const { url } of gateways) assert.equal((await ask(url, rotated)).status, 200)
  })

  it('that is rotated twice forgets its first secret at once', async () => {
    const customer = await makeCustomer(pool)
    await rotateKey(parts, ACTOR, customer.keyId)
    await rotateKey(parts, ACTOR, customer.keyId)
    assert.equal((await ask(gateways[0]?.url ?? '', customer.secret)).status, 401)
  })

  it('that expires, or whose expiry is changed, is refused on every process', async () => {
    const customer = await makeCustomer(pool, { key: { expiresAt: new Date(Date.now() + 3_600_000) } })
    await warm(customer)
    await setKeyExpiry(parts, ACTOR, customer.keyId, new Date(Date.now() + 300))
    const tookMs = await everywhere(customer.secret, ({ status }) => status === 401)
    judge(PROOF, 'from an expiry to a refusal everywhere', KNOWN, [tookMs - 300])
  })

  it('that is revoked starts no paid call once that is acknowledged, and soon no call at all', async () => {
    const timesMs: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const customer = await makeCustomer(pool, { paid: MUCH })
      await warm(customer)
      let isRevoked = false
      const begunAfter: number[] = []
      const callers = Array.from({ length: 6 }, async (_, at) => {
        const url = gateways[at % gateways.length]?.url ?? ''
        for (let more = 30; more > 0; ) {
          const sentAfter = isRevoked
          const { status } = await ask(url, customer.secret, { hold: 5 })
          if (sentAfter) begunAfter.push(status)
          if (isRevoked) more -= 10
        }
      })
      await delay(20)
      await revokeKey(parts, ACTOR, customer.keyId)
      isRevoked = true
      await Promise.all(callers)
      assert.deepEqual(new Set(begunAfter), new Set([401]))
      timesMs.push(await everywhere(customer.secret, ({ status }) => status === 401))
    }
    judge(PROOF, 'from a revocation to a refusal everywhere', KNOWN, timesMs)
  })

  it('of test money does not spend live money, and the other way round', async () => {
    const customer = await makeCustomer(pool, { paid: MUCH })
    const { workspaceId } = customer
    const test = await createKey(parts, ACTOR, { workspaceId, mode: 'test', name: 'a test key' })
    const told = await ask(gateways[0]?.url ?? '', test.secret.reveal(), { hold: 5 })
    assert.deepEqual([told.status, told.code], [402, 'insufficient_balance'])
    // The mode that a key says is a part of its checksum and of its hash: another mode is another key.
    const forged = test.secret.reveal().replace('fb_test_', 'fb_live_')
    assert.equal((await ask(gateways[0]?.url ?? '', forged)).status, 401)
  })

  it('with scopes may use what they name and nothing else', async () => {
    const customer = await makeCustomer(pool, { key: { scopes: ['rerank', 'images'] } })
    const url = gateways[0]?.url ?? ''
    const statusOf = async (operation: string, limits = '') =>
      (await ask(url, customer.secret, { operation, limits })).status
    assert.deepEqual(
      [await statusOf('rerank'), await statusOf('generate', 'images'), await statusOf('chat')],
      [200, 200, 403],
    )
  })

  it('with a budget can spend it and no more, by what the budget is now', async () => {
    const budget = { period: 'month', amount: nanos(100n) } as const
    const customer = await makeCustomer(pool, { paid: MUCH, key: { budget } })
    await warm(customer)
    const url = gateways[0]?.url ?? ''
    assert.equal((await ask(url, customer.secret, { hold: 60 })).status, 200)
    const refused = await ask(url, customer.secret, { hold: 60 })
    assert.deepEqual([refused.status, refused.code], [402, 'budget_exceeded'])
    assert.deepEqual(Object(refused.body.error).left_usd, '0.000000040')

    await setKeyBudget(parts, ACTOR, customer.keyId, { period: 'month', amount: nanos(120n) })
    assert.equal((await ask(url, customer.secret, { hold: 60 })).status, 200)
    await setKeyBudget(parts, ACTOR, customer.keyId, { period: 'month', amount: nanos(10n) })
    assert.equal((await ask(url, customer.secret, { hold: 1 })).status, 402)
    await setKeyBudget(parts, ACTOR, customer.keyId, null)
    await until(async () => (await ask(url, customer.secret, { hold: 60 })).status === 200, PATIENCE_MS)
  })

  it('is one of so many, by the tier', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const another = () => createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'another' })
    const made = await Promise.allSettled(Array.from({ length: 15 }, another))
    assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 9)
    const refusal = made.find(({ status }) => status === 'rejected')
    assert.equal(refusal?.status === 'rejected' && refusal.reason.code, 'quota_exceeded')
    await setPaid(pool, accountId, 1n)
    await another()
  })

  it('that ends keeps its place until its window is over and its calls have ended', async () => {
    const { workspaceId, accountId, keyId } = await makeCustomer(pool, { promotion: MUCH })
    const another = () => createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'another' })
    const refusedAs = (code: string) => (error: unknown) => error instanceof Fault && error.code === code
    const endWindow = (id: Id) =>
      pool.query("update credentials set all_started_at = all_started_at - interval '60 seconds' where id = $1", [id])
    const unused = []
    for (let at = 0; at < 9; at += 1) unused.push((await another()).id)
    await assert.rejects(another(), refusedAs('quota_exceeded'))
    // What never called leaves its place at once.
    for (const id of unused) await revokeKey(parts, ACTOR, id)
    for (let at = 0; at < 9; at += 1) await another()

    const { windows, slots: claims } = askOf(TIERS.free, ['concurrency'])
    const [used = ''] = (
      await pool.query(
        'select id from api_keys where workspace_id = $1 and revoked_at is null order by id desc limit 1',
        [workspaceId],
      )
    ).rows.map((row) => row.id)
    const ended = { id: ids.next(), accountId, credentialId: used, operation: 'probe', hold: holdOf(1n), tokens: 0 }
    assert.equal((await calls.begin({ ...ended, windows, claims })).outcome, 'begun')
    await calls.end({ id: ended.id, accountId, amount: null, forgiven: false, usage: NO_USAGE })
    await revokeKey(parts, ACTOR, used)
    // Nothing runs: its window alone keeps the place.
    await assert.rejects(another(), refusedAs('rate_limit_exceeded'))
    await endWindow(used)
    await another()

    const id = ids.next()
    const call = { id, accountId, credentialId: keyId, operation: 'probe', hold: holdOf(1n), tokens: 0 }
    assert.equal((await calls.begin({ ...call, windows, claims })).outcome, 'begun')
    await revokeKey(parts, ACTOR, keyId)
    await assert.rejects(another(), (error) => {
      assert.ok(error instanceof Fault && error.code === 'rate_limit_exceeded')
      assert.ok((error.retryAfterSeconds ?? 0) > 0 && (error.retryAfterSeconds ?? 0) <= 60)
      return true
    })
    await endWindow(keyId)
    await assert.rejects(another(), refusedAs('rate_limit_exceeded'))
    await calls.end({ id, accountId, amount: null, forgiven: false, usage: NO_USAGE })
    await another()
  })
})

describe('a grant that may spend', () => {
  it('takes a place of the tier as a key does, also where it is given an amount later', async () => {
    const { workspaceId } = await makeCustomer(pool, { promotion: MUCH })
    const isRefused = (error: unknown) => error instanceof Fault && error.code === 'quota_exceeded'
    const free = await makeGranted(pool, { workspaceId, budget: null })
    for (let at = 0; at < 9; at += 1) await makeGranted(pool, { workspaceId })
    await assert.rejects(makeGranted(pool, { workspaceId }), isRefused)
    await assert.rejects(createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'another' }), isRefused)
    await assert.rejects(setGrantBudget(parts, ACTOR, free.id, PLENTY), isRefused)
    // Test money has places of its own, and who can't pay takes none.
    await createKey(parts, ACTOR, { workspaceId, mode: 'test', name: 'for tests' })
    await makeGranted(pool, { workspaceId, budget: null })
  })
})

describe('LIMIT-2 the tier', () => {
  it('is Free, then Starter and Growth with the top-up that earns it, and less again when a payment is reversed', async () => {
    const customer = await makeCustomer(pool, { promotion: 5_000_000_000n })
    await warm(customer)
    const tierOf = async () => (await ask(gateways[0]?.url ?? '', customer.secret)).body.tier
    assert.equal(await tierOf(), 'free')
    await setPaid(pool, customer.accountId, 1n)
    const timesMs = [await everywhere(customer.secret, ({ body }) => body.tier === 'starter')]
    await setPaid(pool, customer.accountId, usd('499.999999998'))
    assert.equal(await tierOf(), 'starter')
    await setPaid(pool, customer.accountId, 1n)
    timesMs.push(await everywhere(customer.secret, ({ body }) => body.tier === 'growth'))
    await pool.query(
      "select reverse_payment(gen_random_uuid(), id, credited) from entries where account_id = $1 and kind = 'payment'",
      [customer.accountId],
    )
    timesMs.push(await everywhere(customer.secret, ({ body }) => body.tier === 'free'))
    judge(PROOF, 'from a payment to its tier everywhere', KNOWN, timesMs)
  })

  it('is derived from the ledger: whoever looks after the top-up’s commit sees it', async () => {
    const fresh = await makeCustomer(pool)
    await setPaid(pool, fresh.accountId, usd('500'))
    assert.equal((await ask(gateways[1]?.url ?? '', fresh.secret)).body.tier, 'growth')
  })

  it('is Growth by an application that an operator approves, and Enterprise by agreement, with its own limits', async () => {
    const customer = await makeCustomer(pool)
    await warm(customer)
    await grantTier(parts, ACTOR, customer.workspaceId, { tier: 'growth' })
    const timesMs = [await everywhere(customer.secret, ({ body }) => body.tier === 'growth')]
    const limits = { requestsPerMinute: 70, tokensPerMinute: 77_000, concurrency: 20 }
    await grantTier(parts, ACTOR, customer.workspaceId, { tier: 'enterprise', limits })
    timesMs.push(await everywhere(customer.secret, ({ headers }) => headers.get('x-ratelimit-limit-requests') === '70'))
    await grantTier(parts, ACTOR, customer.workspaceId, { tier: 'earned' })
    timesMs.push(await everywhere(customer.secret, ({ body }) => body.tier === 'free'))
    judge(PROOF, 'from a grant to its tier everywhere', KNOWN, timesMs)
  })
})
