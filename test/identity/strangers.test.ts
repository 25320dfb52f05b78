import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { request } from 'undici'
import { judge } from '../../harness/figures.ts'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { FAILURES_PER_SECOND } from '../../server/src/identity/failures-by-address.ts'
import { makeKey, parseCredential } from '../../server/src/identity/key-format.ts'
import { createKey, revokeKey } from '../../server/src/identity/keys.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { grantTier } from '../../server/src/workspaces/workspaces.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, anotherAddress, ask, ids, makeCustomer, PROBE_SERVER, type Told } from './customers.ts'
import { badCredentials, differingInLast, SECRET_DIGITS, withIdOf } from './strangers-forgeries.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest

let gateway: Gateway
before(async () => {
  gateway = await startGateway({ databaseUrl: database.url, ...PROBE_SERVER })
})
after(async () => {
  await gateway.stop()
  await pools.close()
})

const unknownKey = () => makeKey(ids.next(), 'live', 0).reveal()

/** How often the server has asked PostgreSQL for a key. */
async function lookUps(): Promise<number> {
  const { body } = await request(`${gateway.adminUrl}/metrics`)
  return Number(/^farebox_cache_loads_total\{cache="keys"\} (\d+)$/m.exec(await body.text())?.[1] ?? 0)
}

/** The process has heard of every change so far: they come in order, and it knows of a later one. */
async function untilHeard(): Promise<void> {
  const { secret, workspaceId } = await makeCustomer(pool)
  const tier = async () => (await ask(gateway.url, secret)).body.tier
  assert.equal(await tier(), 'free')
  await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'growth' })
  await until(async () => (await tier()) === 'growth', PATIENCE_MS, 'that the process hears of a change')
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** An answer as it came over the wire, but for the time and for which request it is. */
async function told(path: string, headers: Record<string, string>, method: 'GET' | 'POST' = 'GET') {
  const response = await request(gateway.url + path, {
    method,
    headers: { 'x-forwarded-for': anotherAddress(), ...headers },
  })
  const text = await response.body.text()
  const { date, ...others } = response.headers
  return {
    status: response.statusCode,
    body: JSON.parse(text),
    wire: (JSON.stringify(others) + text).replace(UUID, 'ID'),
  }
}

const CARRIERS: Readonly<Record<string, (key: string) => Record<string, string>>> = {
  authorization: (key) => ({ authorization: `Bearer ${key}` }),
  'x-api-key': (key) => ({ 'x-api-key': key }),
  'x-goog-api-key': (key) => ({ 'x-goog-api-key': key }),
}

const ENDPOINTS = {
  openai: ['GET', '/v1/probe'],
  anthropic: ['POST', '/v1/messages'],
  gemini: ['POST', '/v1beta/models/one:generateContent'],
  data: ['GET', '/apis/v1/probe'],
  'data, where nothing is': ['GET', '/apis/v1/nothing'],
} as const

describe('AUTH-1 a stranger', () => {
  for (const [dialect, [method, path]] of Object.entries(ENDPOINTS)) {
    it(`is told the same 401 in the shape of ${dialect}, whatever is wrong with the credential`, async () => {
      const wires = new Map<string, string[]>()
      for (const [what, key] of Object.entries(await badCredentials(pool))) {
        for (const [header, carry] of Object.entries(CARRIERS)) {
          const { status, body, wire } = await told(path, carry(key), method)
          assert.equal(status, 401, `${what} in ${header}`)
          const error = Object(body.error)
          assert.equal(dialect === 'gemini' ? error.details[0].reason : error.code, 'invalid_credential')
          assert.equal(body.type, dialect === 'anthropic' ? 'error' : undefined)
          wires.set(wire, [...(wires.get(wire) ?? []), `${what} in ${header}`])
        }
      }
      assert.equal(wires.size, 1, JSON.stringify([...wires], null, 1))
    })

    it(`who has the secret of a key that has expired is told so, in the shape of ${dialect}`, async () => {
      const { workspaceId } = await makeCustomer(pool)
      const wanted = { workspaceId, mode: 'live', name: 'old', expiresAt: new Date(Date.now() - 60_000) } as const
      const { id, secret } = await createKey({ pool, ids }, ACTOR, wanted)
      const { status, body } = await told(path, { authorization: `Bearer ${secret.reveal()}` }, method)
      const error = Object(body.error)
      assert.equal(status, 401)
      assert.equal(dialect === 'gemini' ? error.details[0].reason : error.code, 'expired_credential')
      assert.equal(error.message, 'This key has expired. Create a new one.')
      // One that is revoked too is told nothing.
      await revokeKey({ pool, ids }, ACTOR, id)
      await untilHeard()
      const revoked = Object((await told(path, { authorization: `Bearer ${secret.reveal()}` }, method)).body.error)
      assert.equal(dialect === 'gemini' ? revoked.details[0].reason : revoked.code, 'invalid_credential')
    })

    it(`without a credential is told how to send one, in the shape of ${dialect}`, async () => {
      const { status, body } = await told(path, {}, method)
      const error = Object(body.error)
      assert.equal(status, 401)
      assert.equal(dialect === 'gemini' ? error.details[0].reason : error.code, 'missing_credential')
      assert.match(error.message, /Authorization: Bearer <key>/)
    })
  }
})

/** So many at once that a second's worth of look-ups is used up, on whatever machine, or a few times as many. */
const BURST = 100
const BURSTS_MOST = 50

const secondsSince = (startedMs: number) => (performance.now() - startedMs) / 1_000

/** Bursts until some of one were refused for their number; all answers, and those of the last burst. */
async function flood(one: (n: number) => Promise<Told>) {
  const all: Told[] = []
  for (let bursts = 0; bursts < BURSTS_MOST; bursts += 1) {
    const last = await Promise.all(Array.from({ length: BURST }, (_, n) => one(n)))
    all.push(...last)
    if (last.some(({ status }) => status === 429)) return { all, last }
  }
  return assert.fail(`nobody was refused for ${BURSTS_MOST * BURST} failed authentications`)
}

const numberOf = (answers: readonly Told[], wanted: number) => answers.filter(({ status }) => status === wanted).length
const guess = (address: string) => ask(gateway.url, unknownKey(), {}, { address })

describe('unknown keys', () => {
  it('beyond twenty a second from one address are refused unseen: PostgreSQL is asked nothing', async () => {
    const [address, before, startedMs] = [anotherAddress(), await lookUps(), performance.now()]
    const { all } = await flood(() => guess(address))
    const lookedUp = (await lookUps()) - before
    // Each second has its twenty, and the one that runs has twenty more.
    assert.ok(lookedUp <= FAILURES_PER_SECOND * (Math.floor(secondsSince(startedMs)) + 1), `${lookedUp} look-ups`)
    assert.equal(numberOf(all, 401), lookedUp)
    assert.equal(numberOf(all, 401) + numberOf(all, 429), all.length)
    for (const { status, code, headers } of all)
      if (status === 429) assert.deepEqual([code, headers.get('retry-after')], ['rate_limit_exceeded', '1'])
  })

  it('keep nobody out who is known already, from the same address or another', async () => {
    const [address, { secret }] = [anotherAddress(), await makeCustomer(pool, { paid: 1_000_000_000_000n })]
    // That the key was made reaches the process too, which then forgets what it knew of it.
    await untilHeard()
    assert.equal((await ask(gateway.url, secret, {}, { address })).status, 200)
    const { last } = await flood((n) => (n % 2 === 0 ? guess(address) : ask(gateway.url, secret, {}, { address })))
    assert.equal(numberOf(last, 200), BURST / 2)
    assert.equal((await ask(gateway.url, (await makeCustomer(pool)).secret)).status, 200)
  })

  it('keep a new key from the same address out for a second at the most', async () => {
    const [address, { secret }] = [anotherAddress(), await makeCustomer(pool)]
    await flood(() => guess(address))
    const isIn = async () => (await ask(gateway.url, secret, {}, { address })).status === 200
    await until(isIn, PATIENCE_MS, 'that a new key gets in')
  })

  it('are all that look like a key and are none, each told the same', async () => {
    for (const [what, key] of Object.entries(await badCredentials(pool))) {
      if (parseCredential(new Secret(key)) === undefined) continue
      const address = anotherAddress()
      const { all } = await flood(() => ask(gateway.url, key, {}, { address }))
      assert.equal(numberOf(all, 401) + numberOf(all, 429), all.length, what)
    }
  })

  it('count for a whole network of IPv6, and for an IPv4 address however it is written', async () => {
    await flood((n) => guess(`2001:db8:7:1:${n.toString(16)}::1`))
    await flood((n) => guess(n % 2 === 0 ? '203.0.113.7' : '::ffff:203.0.113.7'))
    for (const network of ['2001:db8:8', '2001:db8:9']) {
      const answers = Array.from({ length: BURST }, (_, n) => guess(`${network}:${n.toString(16)}::1`))
      assert.equal(numberOf(await Promise.all(answers), 401), BURST)
    }
  })
})

describe('what is no key by its form', () => {
  it('counts for nothing, however often it comes: PostgreSQL is asked nothing, and a new key of that address gets in', async () => {
    const [address, before] = [anotherAddress(), await lookUps()]
    for (const [what, text] of Object.entries(await badCredentials(pool))) {
      if (parseCredential(new Secret(text)) !== undefined) continue
      const answers = Array.from({ length: BURST }, () => ask(gateway.url, text, {}, { address }))
      assert.equal(numberOf(await Promise.all(answers), 401), BURST, what)
    }
    assert.equal(await lookUps(), before)
    assert.equal((await ask(gateway.url, (await makeCustomer(pool)).secret, {}, { address })).status, 200)
  })
})

/** What a look-up could have changed. */
async function everything(): Promise<unknown> {
  const tables = [
    'api_keys',
    'credentials',
    'accounts',
    'workspaces',
    'members',
    'audit',
    'plans',
    'entries',
    'change_log',
  ]
  const digests = tables.map(
    (table) => `select '${table}', count(*), md5(string_agg(t::text, ',' order by t::text)) from ${table} t`,
  )
  return (await pool.query(digests.join(' union all '))).rows
}

const INJECTIONS = [
  `'or'1'='1`,
  `'or/**/1=1--`,
  `';drop/**/table/**/api_keys;--`,
  `';update/**/credentials/**/set/**/active=true;--`,
  `'||pg_sleep(60)--`,
  `1;select/**/pg_sleep(60)`,
  `'union/**/select/**/*/**/from/**/api_keys--`,
  '$1',
  '$$;select/**/pg_sleep(60);$$',
  String.raw`\'or/**/true--`,
  String.raw`\x27or\x271\x27=\x271`,
  '%27or%271%27=%271',
  '%',
  '_',
  '*',
  '{"$ne":null}',
  '__proto__',
  'null',
  '00000000-0000-0000-0000-000000000000',
  'ffffffffffffffffffffffffffffffff',
  `${'0'.repeat(31)}'`,
]

describe('trap: SQL injection in the key look-up before authentication', () => {
  it('is refused as any bad credential is, changes nothing and asks PostgreSQL nothing', async () => {
    await makeCustomer(pool)
    const [before, lookedUp] = [await everything(), await lookUps()]
    const startedMs = performance.now()
    for (const text of INJECTIONS) {
      const keys = [text, `fb_live_${text}`, withIdOf(text.replace(/^f{32}$/, 'g')), `${unknownKey()}${text}`]
      for (const carry of Object.values(CARRIERS)) {
        const answers = await Promise.all(keys.map((key) => told('/v1/probe', carry(key))))
        assert.deepEqual(
          answers.map(({ status }) => status),
          [401, 401, 401, 401],
          text,
        )
        assert.ok(
          answers.every(({ wire }) => wire === answers[0]?.wire),
          text,
        )
      }
    }
    const tookMs = performance.now() - startedMs
    assert.equal(await lookUps(), lookedUp)
    judge('identity-strangers', 'injections, of which nothing slept', { unit: 'ms', atMost: 60_000 }, [tookMs])
    assert.deepEqual(await everything(), before)
  })

  it('has no place to go: a well-formed key is looked up once, by a parameter', async () => {
    const [key, lookedUp] = [unknownKey(), await lookUps()]
    assert.equal((await ask(gateway.url, key)).status, 401)
    assert.equal(await lookUps(), lookedUp + 1)
    const { rows } = await pool.query<{ query: string }>(
      "select query from pg_stat_activity where datname = current_database() and query like '%from api_keys%' and pid <> pg_backend_pid()",
    )
    assert.ok(
      rows.some(({ query }) => query.includes('from api_keys where id <= $1')),
      JSON.stringify(rows),
    )
    for (const { query } of rows) assert.ok(!/'[^']/.test(query) && !/[0-9a-f]{8}-/.test(query), query)
  })
})

describe('trap: a cache keyed by a part of the credential lets another in', () => {
  it('only the whole right key gets in, before and after it is known', async () => {
    const { secret } = await makeCustomer(pool, { promotion: 1_000n })
    const near = Array.from({ length: SECRET_DIGITS }, (_, at) => differingInLast(secret, at + 1))
    const far = Object.values(await badCredentials(pool))
    const statuses = async () =>
      new Set(await Promise.all([...near, ...far].map(async (key) => (await ask(gateway.url, key)).status)))

    assert.deepEqual(await statuses(), new Set([401]))
    for (let n = 0; n < 3; n += 1) assert.equal((await ask(gateway.url, secret, { hold: 1 })).status, 200)
    assert.deepEqual(await statuses(), new Set([401]))
    assert.equal((await ask(gateway.url, secret, { hold: 1 })).status, 200)
  })

  it('one key is nobody else: what a near one of the same workspace may do is its own', async () => {
    const { workspaceId, secret } = await makeCustomer(pool)
    const scoped = await createKey({ pool, ids }, ACTOR, {
      workspaceId,
      mode: 'live',
      name: 'scoped',
      scopes: ['rerank'],
    })
    for (let n = 0; n < 2; n += 1) {
      assert.equal((await ask(gateway.url, secret)).status, 200)
      assert.equal((await ask(gateway.url, scoped.secret.reveal())).status, 403)
    }
  })
})
