import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { TIERS } from '../../server/src/catalogue/tiers.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { RATE_HEADERS } from '../../server/src/limits/headers.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, ask, ids, makeCustomer, PROBE_SERVER, setPaid, type Told } from './customers.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const PROMOTION = 1_000_000_000n

let gateways: readonly Gateway[] = []
let url = ''
before(async () => {
  gateways = await startGateways(2, { databaseUrl: database.url, ...PROBE_SERVER })
  url = gateways[0]?.url ?? ''
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
})

const rateOf = ({ headers }: Told, what: 'Requests' | 'Tokens') => ({
  limit: Number(headers.get(`X-RateLimit-Limit-${what}`) ?? Number.NaN),
  left: Number(headers.get(`X-RateLimit-Remaining-${what}`) ?? Number.NaN),
  resetSeconds: Number(headers.get(`X-RateLimit-Reset-${what}`) ?? Number.NaN),
})

/** How many statements have begun calls, as PostgreSQL itself counts what they would have touched: admissions too. */
async function windowsOf(keyId: string) {
  const { rows } = await pool.query(
    'select limit_group, requests, tokens from windows where credential_id = $1 order by 1',
    [keyId],
  )
  return rows
}

async function forgetWindows(keyId: string): Promise<void> {
  await pool.query('delete from group_windows where credential_id = $1', [keyId])
  await pool.query('update credentials set all_started_at = null, all_requests = 0, all_tokens = 0 where id = $1', [
    keyId,
  ])
}

describe('LIMIT-1 the tiers', () => {
  for (const [tier, paid, requests, tokens, concurrency] of [
    ['free', 0n, '60', '60000', 5],
    ['starter', 1n, '600', '600000', 20],
    ['growth', 500_000_000_000n, '3000', '3000000', 50],
  ] as const) {
    it(`${tier}: ${requests} requests and ${tokens} tokens a minute, ${concurrency} at once`, async () => {
      const customer = await makeCustomer(pool, { paid, promotion: PROMOTION })
      const told = await ask(url, customer.secret)
      assert.equal(told.body.tier, tier)
      assert.equal(told.headers.get('X-RateLimit-Limit-Requests'), requests)
      assert.equal(told.headers.get('X-RateLimit-Limit-Tokens'), tokens)
      const racing = Array.from({ length: concurrency + 3 }, () =>
        ask(url, customer.secret, { hold: 1, ms: 5_000, limits: 'concurrency' }),
      )
      const statuses = (await Promise.all(racing)).map(({ status }) => status)
      assert.equal(statuses.filter((status) => status === 200).length, concurrency)
      assert.equal(statuses.filter((status) => status === 429).length, 3)
    })
  }

  it('are per key: another key of the same account has limits of its own', async () => {
    const customer = await makeCustomer(pool)
    const { createKey } = await import('../../server/src/identity/keys.ts')
    const { workspaceId } = customer
    const other = await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'other' })
    for (const secret of [customer.secret, other.secret.reveal()]) {
      const statuses = []
      for (let at = 0; at <= TIERS.free.requestsPerMinute; at += 1) statuses.push((await ask(url, secret)).status)
      assert.deepEqual([statuses.indexOf(429), statuses.length], [TIERS.free.requestsPerMinute, statuses.length])
    }
  })

  it('limit tokens only where an operation counts them', async () => {
    const customer = await makeCustomer(pool, { promotion: PROMOTION })
    assert.equal((await ask(url, customer.secret, { tokens: 60_000, limits: 'tokens' })).status, 200)
    const refused = await ask(url, customer.secret, { tokens: 1, limits: 'tokens' })
    assert.deepEqual([refused.status, refused.code], [429, 'rate_limit_exceeded'])
    assert.equal(rateOf(refused, 'Tokens').left, 0)
    assert.equal((await ask(url, customer.secret)).status, 200)
  })
})

describe('limits of groups of endpoints', () => {
  for (const [group, limit] of [
    ['deep_research', 5],
    ['generate_content', 30],
    ['images', 30],
  ] as const) {
    it(`${group}: ${limit} a minute, beside the key's own limit, and the tighter one speaks`, async () => {
      const customer = await makeCustomer(pool)
      const told = []
      for (let at = 0; at <= limit; at += 1) told.push(await ask(url, customer.secret, { limits: group }))
      assert.deepEqual(
        told.map(({ status }) => status),
        [...Array(limit).fill(200), 429],
      )
      assert.deepEqual(
        told.map((one) => rateOf(one, 'Requests').left),
        [...Array.from({ length: limit }, (_, at) => limit - at - 1), 0],
      )
      assert.equal(rateOf(told[0] ?? (await ask(url, '')), 'Requests').limit, limit)
      // What is refused by the group costs nothing of the key's own limit.
      const plain = await ask(url, customer.secret)
      assert.deepEqual([plain.status, rateOf(plain, 'Requests').left], [200, 60 - limit - 1])
    })
  }

  it('video_tasks: three at once', async () => {
    const customer = await makeCustomer(pool, { promotion: PROMOTION })
    const racing = Array.from({ length: 6 }, () =>
      ask(url, customer.secret, { hold: 1, ms: 4_000, limits: 'video_tasks' }),
    )
    const statuses = (await Promise.all(racing)).map(({ status }) => status).sort()
    assert.deepEqual(statuses, [200, 200, 200, 429, 429, 429])
  })
})

describe('LIMIT-4 the headers', () => {
  it('are six on every limited answer, refused or not, with Retry-After on 429', async () => {
    const customer = await makeCustomer(pool)
    const told = []
    for (let at = 0; at < 62; at += 1) told.push(await ask(url, customer.secret))
    for (const [at, one] of told.entries()) {
      for (const name of RATE_HEADERS) assert.ok(one.headers.has(name), `${name} is missing from answer ${at}`)
      assert.equal(rateOf(one, 'Requests').left, Math.max(0, 59 - at))
      const waitSeconds = rateOf(one, 'Requests').resetSeconds - Date.now() / 1_000
      assert.ok(waitSeconds > 0 && waitSeconds <= 61, `${waitSeconds} s to the reset`)
    }
    for (const refused of told.slice(60)) {
      assert.equal(refused.status, 429)
      assert.equal(refused.code, 'rate_limit_exceeded')
      const after = Number(refused.headers.get('retry-after'))
      assert.ok(after >= 1 && after <= 60, `Retry-After ${after}`)
    }
    const model = await ask(url, customer.secret, {}, { path: '/v1/probe' })
    assert.equal(Object(model.body.error).type, 'rate_limit_error')
  })

  it('say of money that is missing what is left of the limits, too', async () => {
    const customer = await makeCustomer(pool)
    const told = await ask(url, customer.secret, { hold: 5 })
    assert.deepEqual([told.status, told.code, rateOf(told, 'Requests').left], [402, 'insufficient_balance', 59])
  })
})

describe('refusals for want of money', () => {
  it('count as requests: the 61st of a minute is refused for the limit, by whichever process', async () => {
    const customer = await makeCustomer(pool)
    const told = []
    for (let at = 0; at < 64; at += 1)
      told.push(await ask(gateways[at % 2]?.url ?? '', customer.secret, { hold: 5, limits: 'concurrency' }))
    assert.deepEqual(
      told.map(({ status, code }) => `${status} ${code}`),
      [...Array(60).fill('402 insufficient_balance'), ...Array(4).fill('429 rate_limit_exceeded')],
    )
    assert.deepEqual(
      told.map((one) => rateOf(one, 'Requests').left),
      [...Array.from({ length: 60 }, (_, at) => 59 - at), 0, 0, 0, 0],
    )
    assert.deepEqual(await windowsOf(customer.keyId), [{ limit_group: 'all', requests: 60, tokens: 0n }])
    const left = await pool.query('select 1 from holds where account_id = $1', [customer.accountId])
    assert.equal(left.rowCount, 0, 'nor a place among the calls at once, which is a hold')
  })

  it('that race are as many as the limit allows, and the rest are refused for it', async () => {
    const customer = await makeCustomer(pool)
    const racing = Array.from({ length: 100 }, (_, at) =>
      ask(gateways[at % 2]?.url ?? '', customer.secret, { hold: 5 }),
    )
    const statuses = (await Promise.all(racing)).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 402).length, 60)
    assert.equal(statuses.filter((status) => status === 429).length, 40)
  })

  it('count in the window of a group, too', async () => {
    const customer = await makeCustomer(pool)
    const statuses = []
    for (let at = 0; at < 6; at += 1)
      statuses.push((await ask(url, customer.secret, { hold: 5, limits: 'deep_research' })).status)
    assert.deepEqual(statuses, [402, 402, 402, 402, 402, 429])
  })

  it('cost nobody a statement once the limit is reached', async () => {
    const customer = await makeCustomer(pool)
    for (let at = 0; at < 61; at += 1) await ask(url, customer.secret, { hold: 5 })
    // Whoever asked PostgreSQL would be refused for money now.
    await forgetWindows(customer.keyId)
    for (let at = 0; at < 20; at += 1) assert.equal((await ask(url, customer.secret, { hold: 5 })).status, 429)
    assert.deepEqual(await windowsOf(customer.keyId), [])
  })
})

describe('a process that was told that a window is spent', () => {
  it('asks PostgreSQL nothing until it ends, unless the key or the account changes', async () => {
    const customer = await makeCustomer(pool)
    for (let at = 0; at < 61; at += 1) await ask(url, customer.secret)
    // Whoever asked PostgreSQL would be admitted now.
    await forgetWindows(customer.keyId)
    for (let at = 0; at < 20; at += 1) assert.equal((await ask(url, customer.secret)).status, 429)
    assert.deepEqual(await windowsOf(customer.keyId), [])

    await pool.query("select record_change('key', $1)", [customer.keyId])
    await until(async () => (await ask(url, customer.secret)).status === 200, PATIENCE_MS, 'the change of the key')
  })

  it('asks again as soon as a top-up gives the key another limit', async () => {
    const customer = await makeCustomer(pool)
    for (let at = 0; at < 61; at += 1) await ask(url, customer.secret)
    await setPaid(pool, customer.accountId, nanos(1n))
    await until(async () => (await ask(url, customer.secret)).status === 200, PATIENCE_MS, 'the change of the tier')
  })

  it('asks again when the window has ended', async () => {
    const customer = await makeCustomer(pool)
    for (let at = 0; at < 60; at += 1) await ask(url, customer.secret)
    await pool.query(
      "update credentials set all_started_at = clock_timestamp() - interval '54 seconds' where id = $1",
      [customer.keyId],
    )
    const refused = await ask(url, customer.secret)
    assert.equal(refused.status, 429)
    await delay(Number(refused.headers.get('retry-after')) * 1_000)
    // By the clock of PostgreSQL as the process knows it, which is not exact: a second refusal may ask for one second more, and not for another window.
    const isAdmitted = async () => {
      const { status, headers } = await ask(url, customer.secret)
      if (status === 429) assert.equal(headers.get('retry-after'), '1')
      return status === 200
    }
    await until(isAdmitted, PATIENCE_MS, 'a new window')
  })
})

describe('what went wrong in other gateways', () => {
  it('trap: a call refused for concurrency still burns a request', async () => {
    const customer = await makeCustomer(pool, { promotion: PROMOTION })
    const running = Array.from({ length: 5 }, () =>
      ask(url, customer.secret, { hold: 1, ms: 6_000, limits: 'concurrency' }),
    )
    await until(async () => (await windowsOf(customer.keyId))[0]?.requests === 5, PATIENCE_MS)
    for (let at = 0; at < 10; at += 1)
      assert.equal((await ask(url, customer.secret, { hold: 1, limits: 'concurrency' })).status, 429)
    assert.deepEqual(await windowsOf(customer.keyId), [{ limit_group: 'all', requests: 5, tokens: 0n }])
    await Promise.all(running)
  })
})
