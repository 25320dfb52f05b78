import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { Farebox, FareboxError, type Usd } from '../../client/src/index.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { createTcpProxy } from '../../harness/tcp-proxy.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { chargesOf, makeCustomer, startInstallation } from '../acceptance/installation.ts'

const CALLS = count({ full: 5_000, reduced: 250 })
const AT_ONCE = 24
const CUT_EVERY = 9
const FAULT_EVERY = 7

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2 })
const { pool, gateways } = installation
const proxies = await Promise.all(
  gateways.map(({ url }) => createTcpProxy({ target: { port: Number(new URL(url).port) } })),
)
after(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()))
  await installation.stop()
})
const customer = await makeCustomer(pool, { money: 1_000_000_000_000n })

/** Numbers that are the same for the same seed. */
function createRandom(from: number): () => number {
  let state = from >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
const random = createRandom(seed)
const pick = <T>(items: readonly [T, ...T[]]): T => items[Math.floor(random() * items.length)] ?? items[0]

const UPSTREAM_FAULTS = [
  'status=500',
  'status=503',
  'status=429 sandbox:retry-after=1',
  'reset=before-headers',
  'reset=in-body',
  'truncate',
  'garbage',
  'code=400',
  'code=200 sandbox:status=500',
  'html',
  'delay=700',
] as const

type Told = {
  readonly cost: Usd | null
  readonly key: string
  readonly operation: 'tag_detail' | 'user_stories'
  readonly what: string
  readonly requestId: string | null
}

/** One call, with whatever was said of its money. */
async function makeCall(farebox: Farebox, at: number): Promise<Told> {
  const word = at % FAULT_EVERY === 0 ? `sandbox:${pick(UPSTREAM_FAULTS)}` : ''
  const key = `call-${at}`
  const how = { idempotencyKey: key }
  const operation = random() < 0.5 ? 'tag_detail' : 'user_stories'
  try {
    const { cost, requestId } =
      operation === 'tag_detail'
        ? await farebox.call('tag_detail', { tag_name: `cats ${at} ${word}` }, how)
        : await farebox.call('user_stories', { username: `cats ${at} ${word}` }, how)
    return { cost, key, operation, what: 'answered', requestId }
  } catch (error) {
    if (!(error instanceof FareboxError)) throw error
    return { cost: error.cost, key, operation, what: error.code, requestId: error.requestId }
  }
}

/** Breaks connections, at the first byte of a request or of an answer, or in the middle of one. */
function breakSomething(): void {
  const proxy = pick([proxies[0], ...proxies.slice(1)])
  proxy?.arm({
    direction: pick(['toServer', 'toClient']),
    at: { afterBytes: pick([0, 1, 100, 400, 900]) },
    effect: pick(['reset', 'end']),
  })
}

describe('calls through connections that break, to providers that fail', () => {
  it('CLIENT-2 cost what the client says that they cost, to the last nano-dollar', async () => {
    const clients = proxies.map(
      (proxy, at) => new Farebox({ apiKey: customer.secret, baseUrl: proxy.url(gateways[at]?.url ?? '') }),
    )
    const told: Told[] = []
    let next = 0
    const caller = async (): Promise<void> => {
      for (let at = next++; at < CALLS; at = next++) {
        if (at % CUT_EVERY === 0) breakSomething()
        told.push(await makeCall(pick([clients[0], ...clients.slice(1)]) ?? assert.fail(), at))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, caller))

    // Of what was not told, the key tells the rest, as the error's fix says.
    const direct = new Farebox({ apiKey: customer.secret, baseUrl: gateways[0]?.url ?? '' })
    const known = await Promise.all(
      told.map(async (one) => {
        if (one.cost !== null) return one.cost.nanos
        const found = await direct.requests.find(one.key, one.operation)
        assert.ok(found === undefined || found.outcome === 'posted', found?.outcome)
        return BigInt((found?.cost?.usd ?? '0').replace('.', ''))
      }),
    )
    const charges = await chargesOf(pool, customer.accountId)
    const sum = known.reduce((all, one) => all + one, 0n)
    const charged = [...charges.values()].reduce((all, one) => all + one, 0n)
    assert.equal(sum, charged)
    told.forEach(({ requestId, cost }, at) => {
      if (cost !== null && cost.nanos > 0n) assert.equal(charges.get(requestId ?? ''), known[at])
    })
    const { rows } = await pool.query<{ keys: bigint; calls: bigint }>(
      "select count(*) as calls, count(distinct key) as keys from claims where scope = 'idempotency'",
    )
    assert.equal(rows[0]?.calls, rows[0]?.keys, 'a key has one charged call')
    assert.ok((await verifyLedger(pool)).length === 0)

    const by = Object.fromEntries(
      [...Map.groupBy(told, ({ what }) => what)].map(([what, some]) => [what, some.length]).toSorted(),
    )
    assert.ok(Number(by.answered) > CALLS / 2, JSON.stringify(by))
    sometimes(Number(by.idempotency_completed) > 0, `some are told that they had completed (${JSON.stringify(by)})`)
    const looked = told.filter(({ cost }) => cost === null).length
    recordProof('client-faults', 'the sum of costs', {
      calls: CALLS,
      outcomes: by,
      found_by_key_afterwards: looked,
      charged_nanos: charged,
      difference_nanos: 0,
    })
  })
})
