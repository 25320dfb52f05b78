import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { changeKey } from '../../server/src/identity/key-changes.ts'
import type { TermsChange } from '../../server/src/identity/key-terms.ts'
import { createKey, rotateKey } from '../../server/src/identity/keys.ts'
import { createNetworks } from '../../server/src/kernel/networks.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, ask, type Customer, ids, makeCustomer, PROBE_SERVER, type Told } from './customers.ts'

/** What a key has of its own (rates, scopes, addresses) holds exactly, whichever process is asked, and a change of it within a second. */
const PROOF = 'key-terms'
const PROCESSES = 3
const ROUNDS = count({ full: 20, reduced: 2 })
const FREE = { requests: 60, tokens: 60_000, concurrency: 5 }
const MUCH = 1_000_000_000n

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const parts = { pool, ids }

let gateways: readonly Gateway[] = []
before(async () => {
  gateways = await startGateways(PROCESSES, { databaseUrl: database.url, ...PROBE_SERVER })
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
})

const urlOf = (at: number) => gateways[at % PROCESSES]?.url ?? ''
/** With money that earns no tier: the tier is Free. */
const withKey = (terms: TermsChange) => makeCustomer(pool, { promotion: MUCH, key: terms })
const admitted = (told: readonly Told[]) => told.filter(({ status }) => status === 200)
const errorOf = ({ body }: Told) => Object(body.error)
const limitIn = ({ headers }: Told, what: 'Requests' | 'Tokens') => Number(headers.get(`X-RateLimit-Limit-${what}`))

/** Many at once, over all processes. */
function race(secret: string, times: number, query: (at: number) => Readonly<Record<string, string | number>>) {
  return Promise.all(Array.from({ length: times }, (_, at) => ask(urlOf(at), secret, query(at))))
}

function areRefusedBy(told: readonly Told[], limitedBy: string, says: RegExp): void {
  for (const refused of told.filter(({ status }) => status !== 200)) {
    assert.deepEqual(
      [refused.status, refused.code, errorOf(refused).limited_by],
      [429, 'rate_limit_exceeded', limitedBy],
    )
    assert.match(String(errorOf(refused).message), says)
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  }
}

describe("a key's own requests a minute, over three processes", () => {
  it('are never one more, and never one less, whatever endpoints are asked', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      // Below 30, which is what one of the endpoints allows by itself, and would tell.
      const limit = 17 + (round % 13)
      const { secret } = await withKey({ rates: { requestsPerMinute: limit } })
      const kinds = ['', 'tokens', 'generate_content', 'images']
      const told = await race(secret, 3 * limit, (at) => ({ limits: kinds[at % kinds.length] ?? '', tokens: 1 }))
      assert.equal(admitted(told).length, limit)
      const left = admitted(told).map(({ headers }) => Number(headers.get('X-RateLimit-Remaining-Requests')))
      assert.deepEqual(
        left.sort((a, b) => b - a),
        Array.from({ length: limit }, (_, at) => limit - 1 - at),
      )
      assert.ok(told.every((one) => limitIn(one, 'Requests') === limit))
      const says = new RegExp(
        `Rate limit of this key: ${limit} requests per 60 seconds \\(its tier allows 60\\)\\. Retry in \\d+ s, or have`,
      )
      areRefusedBy(told, 'key', says)
    }
    recordProof(PROOF, 'requests of their own', { processes: PROCESSES, rounds: ROUNDS, violations: 0 })
  })

  it('are the tier’s where the key has more, or none, and another key of the account has its own', async () => {
    const { workspaceId, secret } = await withKey({ rates: { requestsPerMinute: 1_000, tokensPerMinute: 10_000_000 } })
    const plain = await createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'other' })
    for (const one of [secret, plain.secret.reveal()]) {
      const told = await race(one, 90, () => ({}))
      assert.equal(admitted(told).length, FREE.requests)
      assert.ok(told.every((answer) => limitIn(answer, 'Requests') === FREE.requests))
      assert.ok(told.every((answer) => limitIn(answer, 'Tokens') === FREE.tokens))
      areRefusedBy(told, 'tier', /Rate limit of your tier: 60 requests per 60 seconds\. Retry in \d+ s\.$/)
    }
  })

  it('do not raise the limit of an endpoint, which says that it is the one', async () => {
    const { secret } = await withKey({ rates: { requestsPerMinute: 50 } })
    const told = await race(secret, 20, () => ({ limits: 'deep_research' }))
    assert.equal(admitted(told).length, 5)
    areRefusedBy(told, 'endpoint', /Rate limit of this endpoint: 5 requests per 60 seconds\. Retry in/)
  })
})

describe("a key's own tokens a minute, over three processes", () => {
  it('are never exceeded by what is reserved, and all of them are given', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { secret, keyId, accountId } = await withKey({ rates: { tokensPerMinute: 1_000 } })
      const told = await race(secret, 30, () => ({ hold: 10, tokens: 100, limits: 'tokens' }))
      assert.equal(admitted(told).length, 10)
      assert.ok(told.every((one) => limitIn(one, 'Tokens') === 1_000))
      areRefusedBy(
        told,
        'key',
        /0 of 1,000 per 60 seconds are left\. The limit is that of this key \(its tier allows 60,000\)\./,
      )
      const { rows } = await pool.query('select tokens from windows where credential_id = $1', [keyId])
      assert.deepEqual(rows, [{ tokens: 1_000n }])
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    }
    recordProof(PROOF, 'tokens of their own', { processes: PROCESSES, rounds: ROUNDS, violations: 0 })
  })
})

describe("a key's own calls at once, over three processes", () => {
  it('are of every kind of call together, and a place that is free again is given', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { secret, accountId } = await withKey({ rates: { concurrency: 2 } })
      const kinds = ['', 'concurrency', 'tokens']
      const long = (at: number) => ({ hold: 1, ms: 6_000, limits: kinds[at % kinds.length] ?? '' })
      const told = await race(secret, 12, long)
      assert.equal(admitted(told).length, 2)
      areRefusedBy(
        told,
        'key',
        /Concurrency limit of this key reached: 2 of 2 calls running \(its tier allows 5\)\. Retry in 1 s, or have/,
      )
      assert.equal(admitted(await race(secret, 2, () => ({ hold: 1 }))).length, 2)
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    }
    recordProof(PROOF, 'calls at once of their own', { processes: PROCESSES, rounds: ROUNDS, violations: 0 })
  })

  it('are those of the tier where the key has more', async () => {
    const { secret } = await withKey({ rates: { concurrency: 500 } })
    const told = await race(secret, 12, () => ({ hold: 1, ms: 6_000, limits: 'concurrency' }))
    assert.equal(admitted(told).length, FREE.concurrency)
    areRefusedBy(told, 'tier', /Concurrency limit of your tier reached: 5 of 5 calls running\. Retry in 1 s\.$/)
  })
})

const INSIDE = ['10.20.0.1', '10.20.255.255', '::ffff:10.20.3.4', '::ffff:a14:304', '2001:db8:1::9']
const OUTSIDE = ['10.21.0.1', '9.255.255.255', '2001:db9::1', '::10.20.0.1', '::ffff:10.21.0.1', 'not an address']
const NETWORKS = createNetworks(['10.20.0.0/16', '2001:db8::/32'])

async function traceOf({ keyId, accountId }: Customer) {
  const { rows } = await pool.query(
    `select (select count(*) from windows where credential_id = $1) as windows,
       (select count(*) from claims where credential_id = $1) as claims,
       (select count(*) from holds where account_id = $2) as holds,
       (select count(*) from charges where account_id = $2) as charges,
       (select held + charged from accounts where id = $2) as spent`,
    [keyId, accountId],
  )
  return rows[0]
}

describe('the addresses that a key allows, over three processes', () => {
  it('are let in, and all others are refused before anything is spent or counted in a window', async () => {
    const customer = await withKey({ networks: NETWORKS })
    const untouched = await traceOf(customer)
    for (const address of OUTSIDE)
      for (let at = 0; at < PROCESSES; at += 1) {
        const told = await ask(urlOf(at), customer.secret, { hold: 5 }, { address })
        assert.deepEqual([told.status, told.code, errorOf(told).type], [403, 'address_not_allowed', 'permission_error'])
        // What is no address at all is the proxy's own.
        const seen = address === 'not an address' ? '127.0.0.1' : address.replace('::ffff:', '')
        assert.match(String(errorOf(told).message), new RegExp(`Your address: ${seen.replaceAll('.', '\\.')}\\.$`))
      }
    assert.deepEqual(await traceOf(customer), untouched)
    for (const address of INSIDE)
      for (let at = 0; at < PROCESSES; at += 1)
        assert.equal((await ask(urlOf(at), customer.secret, { hold: 5 }, { address })).status, 200, address)
  })

  it('do not matter to another key, nor is a secret that is no more told that they exist', async () => {
    const { workspaceId, keyId, secret } = await withKey({ networks: NETWORKS })
    const other = await createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'other' })
    const elsewhere = { address: '9.9.9.9' }
    assert.equal((await ask(urlOf(0), other.secret.reveal(), {}, elsewhere)).status, 200)
    assert.equal((await ask(urlOf(0), secret, {}, elsewhere)).status, 403)
    const rotated = await rotateKey(parts, ACTOR, keyId, 0)
    await until(
      async () => (await ask(urlOf(0), secret, {}, elsewhere)).status === 401,
      PATIENCE_MS,
      'the end of the old secret',
    )
    assert.equal((await ask(urlOf(0), rotated.reveal(), {}, elsewhere)).status, 403)
  })

  it('hold for what no route takes, too', async () => {
    const { secret } = await withKey({ networks: NETWORKS })
    const nowhere = { path: '/apis/v1/nothing' }
    assert.equal((await ask(urlOf(0), secret, {}, { ...nowhere, address: '9.9.9.9' })).code, 'address_not_allowed')
    assert.equal((await ask(urlOf(0), secret, {}, { ...nowhere, address: '10.20.1.1' })).code, 'route_not_found')
  })
})

/** So soon every process knows of a change. */
const KNOWN = { unit: 'ms', atMost: 1_000 } as const

type Change = {
  readonly what: string
  readonly from: TermsChange
  readonly to: TermsChange
  readonly isBefore: (told: Told) => boolean
  readonly isAfter: (told: Told) => boolean
}

const CHANGES: readonly Change[] = [
  {
    what: 'its requests a minute',
    from: { rates: { requestsPerMinute: 30 } },
    to: { rates: { requestsPerMinute: 25 } },
    isBefore: (told) => limitIn(told, 'Requests') === 30,
    isAfter: (told) => limitIn(told, 'Requests') === 25,
  },
  {
    what: 'its tokens a minute, to those of the tier',
    from: { rates: { tokensPerMinute: 500 } },
    to: { rates: { tokensPerMinute: null } },
    isBefore: (told) => limitIn(told, 'Tokens') === 500,
    isAfter: (told) => limitIn(told, 'Tokens') === FREE.tokens,
  },
  {
    what: 'its scopes',
    from: { scopes: ['probe'] },
    to: { scopes: ['rerank'] },
    isBefore: ({ status }) => status === 200,
    isAfter: ({ code }) => code === 'forbidden',
  },
  {
    what: 'its addresses',
    from: { networks: createNetworks(['10.0.0.0/8']) },
    to: { networks: createNetworks(['192.0.2.0/24']) },
    isBefore: ({ status }) => status === 200,
    isAfter: ({ code }) => code === 'address_not_allowed',
  },
  {
    what: 'its addresses, to any',
    from: { networks: createNetworks(['192.0.2.0/24']) },
    to: { networks: null },
    isBefore: ({ code }) => code === 'address_not_allowed',
    isAfter: ({ status }) => status === 200,
  },
]

/** How often processes were told that a key is another now. */
async function timesTold(keyId: string): Promise<number> {
  const { rows } = await pool.query(
    "select count(*)::integer as times from change_log where topic = 'key' and key = $1",
    [keyId],
  )
  return rows[0]?.times
}

describe('a change of a key', () => {
  for (const { what, from, to, isBefore, isAfter } of CHANGES)
    it(`of ${what} holds in every process soon, and leaves what it does not name`, async () => {
      const timesMs: number[] = []
      for (let round = 0; round < count({ full: 10, reduced: 1 }); round += 1) {
        const { secret, keyId } = await withKey({ rates: { concurrency: 4 }, ...from })
        for (let at = 0; at < PROCESSES; at += 1) assert.ok(isBefore(await ask(urlOf(at), secret)))
        const told = await timesTold(keyId)
        await changeKey(parts, ACTOR, keyId, to)
        assert.equal(await timesTold(keyId), told + 1)
        const look = async () => {
          await delay(40)
          return (await Promise.all(gateways.map(({ url }) => ask(url, secret)))).every(isAfter)
        }
        timesMs.push(await until(look, PATIENCE_MS, `the change of ${what}`))
        const { rows } = await pool.query('select concurrency from api_keys where id = $1', [keyId])
        assert.deepEqual(rows, [{ concurrency: from.rates === undefined ? 4 : null }])
      }
      judge(PROOF, `from a change of ${what} to its effect everywhere`, KNOWN, timesMs)
    })

  it('that lowers a rate below what was used leaves nothing until the window ends; one that raises it gives the rest', async () => {
    const { secret, keyId } = await withKey({ rates: { requestsPerMinute: 20 } })
    assert.equal(admitted(await race(secret, 10, () => ({}))).length, 10)
    await changeKey(parts, ACTOR, keyId, { rates: { requestsPerMinute: 5 } })
    const isRefused = async () => (await race(secret, PROCESSES, () => ({}))).every(({ status }) => status === 429)
    await until(isRefused, PATIENCE_MS, 'the lower rate')
    const { rows } = await pool.query('select requests from windows where credential_id = $1', [keyId])
    const used: number = rows[0]?.requests
    await changeKey(parts, ACTOR, keyId, { rates: { requestsPerMinute: used + 3 } })
    const more: Told[] = []
    await until(
      async () => {
        more.push(...(await race(secret, PROCESSES, () => ({}))))
        return gateways.every((_, at) =>
          more.some((told, n) => n % PROCESSES === at && limitIn(told, 'Requests') === used + 3),
        )
      },
      PATIENCE_MS,
      'the higher rate',
    )
    more.push(...(await race(secret, 12, () => ({}))))
    assert.equal(admitted(more).length, 3)
  })
})
