import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freePort } from '../../../harness/free-port.ts'
import { count, recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import {
  ask,
  type Customer,
  chargesOf,
  codeOf,
  ids,
  makeCustomer,
  startInstallation,
  type Told,
} from '../installation.ts'
import { follow, LINKS, linkAccount } from './linking.ts'
import { expire, platformOf } from './sandbox-platform.ts'

const WRITES = 100
const ROUNDS = count({ full: 50, reduced: 4 })
const PROCESSES = 3
const PRICE = 5_000_000n
const PROOF = 'links-refresh'

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  processes: PROCESSES,
  env: { FAREBOX_LINKS_OFFLINE_ACCESS: 'true' },
})
const { gateways, pool, sandbox, url } = installation
const platform = platformOf(sandbox.url)
after(installation.stop)
await platform.turn({ follow_limit: 1_000_000 })

/** A write through one of the processes, in turn. */
const write = (secret: string, number: number) =>
  follow(gateways[number % PROCESSES]?.url ?? '', secret, String(1_000 + number))

let users = 0
async function linked(): Promise<Customer & { readonly user: string }> {
  const customer = await makeCustomer(pool, { money: PRICE * BigInt(ROUNDS * WRITES) })
  const user = `refresher_${users++}`
  await linkAccount(url, customer.secret, user)
  return { ...customer, user }
}

const sessionOf = async (user: string) => (await platform.sessions()).find((one) => one.user === user)

async function stateOf(secret: string): Promise<readonly unknown[]> {
  const [link] = (await ask(url, secret, LINKS)).json.data as Record<string, unknown>[]
  return [link?.status, link?.reason]
}

/** The platform as our processes are to see it from now on. */
async function movePlatform(baseUrl: string, secret: string): Promise<void> {
  const { rows } = await pool.query<{ id: string; authorize_url: string }>(
    "select id, authorize_url from upstreams where slot = 'social_a_account'",
  )
  const seal = createSeal({ current: installation.masterKey })
  for (const { id, authorize_url: authorizeUrl } of rows)
    await saveUpstream(
      { pool, ids, seal },
      {
        ...{ id, slot: 'social_a_account', mode: 'test', kind: 'native', baseUrl, credential: new Secret(secret) },
        client: { id: 'sandbox-client', authorizeUrl },
      },
    )
}

describe('writes at once on a token that has expired', () => {
  it('LINK-6 refresh it once over all processes; every write succeeds and is charged once', async () => {
    const { secret, keyId, accountId, user } = await linked()
    let [slowestMs, refused] = [0, 0]
    for (let round = 1; round <= ROUNDS; round += 1) {
      await expire(pool, sandbox.url, [keyId])
      const startedAtMs = performance.now()
      const told = await Promise.all(Array.from({ length: WRITES }, (_, number) => write(secret, number)))
      slowestMs = Math.max(slowestMs, performance.now() - startedAtMs)
      const failed = told.filter(({ status }) => status !== 200)
      refused += failed.length
      assert.deepEqual(failed.map(({ status, text }) => `${status} ${text}`).slice(0, 3), [])
      const session = await sessionOf(user)
      assert.deepEqual([session?.refreshes, session?.refresh_reuses, session?.revoked], [round, 0, false])
    }
    const charges = [...(await chargesOf(pool, accountId)).values()]
    assert.equal(charges.length, ROUNDS * WRITES)
    assert.ok(charges.every((amount) => amount === PRICE))
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    const { failed_refreshes, refresh_reuses, follows } = await platform.summary()
    assert.deepEqual([failed_refreshes, refresh_reuses, follows], [0, 0, ROUNDS * WRITES])
    recordProof(PROOF, 'writes at once on an expired token', {
      ...{ processes: PROCESSES, rounds: ROUNDS, writes_at_once: WRITES, refreshes: ROUNDS, refresh_reuses },
      ...{ writes: ROUNDS * WRITES, failed: refused, charges: charges.length, slowest_round_ms: Math.round(slowestMs) },
    })
  })
})

/** Writes at once by one key whose token has expired, through all processes, while something is wrong. */
async function writesWhile(customer: Customer): Promise<readonly Told[]> {
  await expire(pool, sandbox.url, [customer.keyId])
  return Promise.all(Array.from({ length: 2 * PROCESSES }, (_, number) => write(customer.secret, number)))
}

describe('a refresh whose outcome nobody can know', () => {
  for (const [name, knob, wasDone] of [
    ['the connection is closed without an answer', 'refresh_cuts', 1],
    ['no answer comes in time', 'refresh_hangs', 0],
    ['the platform answers 500', 'refresh_fails', 0],
  ] as const) {
    it(`LINK-6 ${name}: its token is never used again, and the user is asked to link anew`, async () => {
      const customer = await linked()
      const { accountId, secret, user } = customer
      const before = await platform.summary()
      const tokenRequests = async () =>
        (await sandbox.journal()).filter(({ path }) => path === '/platform/2/oauth2/token').length
      const asked = await tokenRequests()
      await platform.turn({ [knob]: 1 })
      const told = await writesWhile(customer)
      assert.deepEqual([...new Set(told.map((one) => `${one.status} ${codeOf(one)}`))], ['403 link_required'])
      assert.deepEqual(await stateOf(secret), ['needs_link', 'lost'])
      assert.equal((await write(secret, 0)).status, 403)
      assert.equal((await tokenRequests()) - asked, 1, 'the platform was asked once')
      const now = await platform.summary()
      assert.equal(now.refreshes - before.refreshes, wasDone)
      assert.equal(now.refresh_reuses, 0)
      assert.ok([...(await chargesOf(pool, accountId)).values()].every((amount) => amount === 0n))
      await linkAccount(url, secret, user)
      assert.equal((await write(secret, 1)).status, 200)
      recordProof(PROOF, name, { writes: told.length, link_required: told.length, tries: 1, refresh_reuses: 0 })
    })
  }
})

describe('a refresh that the platform certainly did not carry out', () => {
  for (const status of [429, 503]) {
    it(`LINK-6 is given back where it answers ${status}, and works later`, async () => {
      const customer = await linked()
      const { secret, user } = customer
      await expire(pool, sandbox.url, [customer.keyId])
      await sandbox.fault('platform', [`status=${status}`])
      const told = await write(secret, 0)
      assert.equal(told.status, 502, told.text)
      assert.deepEqual(await stateOf(secret), ['active', null])
      assert.equal((await write(secret, 1)).status, 200)
      assert.deepEqual([(await sessionOf(user))?.refreshes, (await sessionOf(user))?.refresh_reuses], [1, 0])
    })
  }

  it('LINK-6 is given back where the connection is refused, and works later', async () => {
    const customer = await linked()
    const { secret, user } = customer
    await expire(pool, sandbox.url, [customer.keyId])
    await movePlatform(`http://127.0.0.1:${await freePort()}/platform/2`, 'sandbox-client-secret')
    // Processes hear of it within a second; until then the refresh is not to be had.
    await sandbox.fault('platform', ['status=503'], 1_000)
    const begun = (await sandbox.journal()).length
    let seen = begun
    await until(
      async () => {
        const before = seen
        const told = await write(secret, 0)
        assert.equal(told.status, 502, told.text)
        seen = (await sandbox.journal()).length
        return seen === before
      },
      PATIENCE_MS,
      'a write that finds nobody',
    )
    assert.deepEqual(await stateOf(secret), ['active', null])
    await fetch(`${sandbox.url}/control`, { method: 'DELETE' })
    await movePlatform(`${sandbox.url}/platform/2`, 'sandbox-client-secret')
    await until(async () => (await write(secret, 0)).status === 200, PATIENCE_MS, 'a write that works')
    assert.deepEqual([(await sessionOf(user))?.refreshes, (await sessionOf(user))?.refresh_reuses], [1, 0])
  })

  it("LINK-6 is given back where our own client is refused: that is the operator's to mend, and no user's session", async () => {
    const customer = await linked()
    const { secret, user } = customer
    await movePlatform(`${sandbox.url}/platform/2`, 'another-secret')
    const wrong = async () =>
      (await sandbox.journal()).some(({ path, credential }) => path.endsWith('/oauth2/token') && credential === 'wrong')
    await until(
      async () => {
        await expire(pool, sandbox.url, [customer.keyId])
        await write(secret, 0)
        return wrong()
      },
      PATIENCE_MS,
      'a refusal of our client',
    )
    assert.deepEqual(await stateOf(secret), ['active', null])
    await movePlatform(`${sandbox.url}/platform/2`, 'sandbox-client-secret')
    await until(async () => (await write(secret, 0)).status === 200, PATIENCE_MS, 'a write that works')
    assert.equal((await sessionOf(user))?.refresh_reuses, 0)
  })
})
