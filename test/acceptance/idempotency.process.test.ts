import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import OpenAI from 'openai'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import {
  CALLS,
  call,
  chargesOf,
  errorOf,
  ids,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from './installation.ts'
import { traceOf } from './refusals-trace.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { url, pool, sandbox, gateways, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

let keys = 0
const newKey = () => `key-${keys++}`
const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })
const tagOf = (key: string, word: string, secret = customer.secret, at = url) =>
  call(at, secret, 'tag_detail', word, withKey(key))

function assertRefused(told: Told, status: number, code: string): void {
  assert.deepEqual([told.status, errorOf(told).code], [status, code], told.text)
}

async function asked(marker: string): Promise<number> {
  return (await sandbox.journal()).filter(({ query }) => query.replaceAll('+', ' ').includes(marker)).length
}

describe('a repeated Idempotency-Key', () => {
  it('ERR-3 whose first call completed is 409, with its request id, its status and its cost', async () => {
    const key = newKey()
    const first = await tagOf(key, 'completed')
    assert.equal(first.status, 200)
    for (const { url: at } of gateways) {
      const again = await tagOf(key, 'completed', customer.secret, at)
      assertRefused(again, 409, 'idempotency_completed')
      const { first_request_id, status, cost_usd } = errorOf(again)
      assert.deepEqual([first_request_id, status, cost_usd], [first.id, 200, '0.001450000'])
      assert.equal(again.headers.get('retry-after'), null)
    }
    assert.equal(await asked('cats completed'), 1)
  })

  it('ERR-3 names the status of a first call that was charged for an error', async () => {
    const key = newKey()
    const word = 'sandbox:code=200 sandbox:status=422'
    const first = await tagOf(key, word)
    assert.deepEqual([first.status, first.costUsd], [422, '0.001450000'])
    const again = await tagOf(key, word)
    assertRefused(again, 409, 'idempotency_completed')
    assert.equal(errorOf(again).status, 422)
  })

  it('ERR-3 in the dialect of a model endpoint says the same', async () => {
    const key = newKey()
    const first = await call(url, customer.secret, 'rerank', 'same', withKey(key))
    const again = await call(url, customer.secret, 'rerank', 'same', withKey(key))
    assertRefused(again, 409, 'idempotency_completed')
    const { type, first_request_id, status, cost_usd } = errorOf(again)
    assert.deepEqual(
      { type, first_request_id, status, cost_usd },
      { type: 'conflict_error', first_request_id: first.id, status: 200, cost_usd: first.costUsd },
    )
  })

  it('ERR-3 whose first call is running is 409 with Retry-After, and then what became of it', async () => {
    const key = newKey()
    const first = tagOf(key, 'sandbox:delay=5000 running')
    await until(async () => (await asked('running')) === 1, PATIENCE_MS, 'the first call')
    const meanwhile = await tagOf(key, 'sandbox:delay=5000 running', customer.secret, gateways[1]?.url)
    assertRefused(meanwhile, 409, 'idempotency_running')
    assert.equal(meanwhile.headers.get('retry-after'), '1')
    assert.equal(meanwhile.headers.get('x-should-retry'), null)
    const { id } = await first
    assert.equal(errorOf(meanwhile).first_request_id, id)
    const after = await tagOf(key, 'sandbox:delay=5000 running')
    assertRefused(after, 409, 'idempotency_completed')
    assert.equal(errorOf(after).first_request_id, id)
    assert.equal(await asked('running'), 1)
  })

  it('ERR-3 with another payload is 422, and costs nothing', async () => {
    const key = newKey()
    const first = await tagOf(key, 'first')
    const posted = await call(url, customer.secret, 'rerank', 'one', withKey(key))
    const before = await traceOf({ pool, sandbox })
    for (const told of [await tagOf(key, 'second'), await tagOf(key, 'first ')]) {
      assertRefused(told, 422, 'idempotency_mismatch')
      assert.equal(errorOf(told).first_request_id, first.id)
    }
    const other = await call(url, customer.secret, 'rerank', 'two', withKey(key))
    assertRefused(other, 422, 'idempotency_mismatch')
    assert.equal(errorOf(other).first_request_id, posted.id)
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('ERR-3 is free again after a first attempt that ended uncharged', async () => {
    for (const directive of ['code=400', 'status=503', 'reset=before-headers', 'garbage', 'status=429']) {
      const key = newKey()
      await sandbox.fault('reseller', [directive])
      const first = await tagOf(key, 'freed')
      assert.equal(Number(first.costUsd), 0, directive)
      const second = await tagOf(key, 'freed')
      assert.deepEqual([second.status, second.costUsd], [200, '0.001450000'], directive)
      assertRefused(await tagOf(key, 'freed'), 409, 'idempotency_completed')
    }
  })

  it('ERR-3 is free again after a refusal', async () => {
    const poor = await makeCustomer(pool, { money: 1_000_000n })
    const key = newKey()
    assertRefused(await tagOf(key, 'refused', poor.secret), 402, 'insufficient_balance')
    const capped = { headers: { 'idempotency-key': key, 'x-farebox-max-cost-usd': '0.000001' } }
    assertRefused(await call(url, customer.secret, 'tag_detail', 'refused', capped), 402, 'cost_cap_exceeded')
    assert.equal((await tagOf(key, 'refused')).status, 200)
  })

  it('ERR-3 belongs to the credential and to the operation', async () => {
    const key = newKey()
    const sibling = await makeKey(pool, customer.workspaceId)
    const stranger = await makeCustomer(pool)
    for (const secret of [customer.secret, sibling.secret, stranger.secret])
      assert.equal((await tagOf(key, 'mine', secret)).status, 200)
    for (const operation of ['user_stories', 'rerank', 'post_comments', 'search_word_suggestion'])
      assert.equal((await call(url, customer.secret, operation, 'mine', withKey(key))).status, 200, operation)
    assertRefused(await tagOf(key, 'mine', sibling.secret), 409, 'idempotency_completed')
  })

  it('ERR-3 makes one call, however many send it at once to several processes', async () => {
    const key = newKey()
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, at) => tagOf(key, 'raced', customer.secret, gateways[at % 3]?.url)),
    )
    const winner = all.filter(({ status }) => status === 200)
    assert.equal(winner.length, 1)
    for (const told of all)
      if (told.status !== 200) {
        assert.equal(told.status, 409, told.text)
        assert.match(String(errorOf(told).code), /^idempotency_(running|completed)$/)
        assert.equal(errorOf(told).first_request_id, winner[0]?.id)
      }
    assert.equal(await asked('cats raced'), 1)
  })

  it('is kept for a day after a charged call, and no longer', async () => {
    const key = newKey()
    const { id } = await tagOf(key, 'kept')
    const { rows } = await pool.query<{ hours: number }>(
      'select extract(epoch from kept_until - clock_timestamp())::float8 / 3600 as hours from claims where call_id = $1',
      [id],
    )
    assert.ok(Number(rows[0]?.hours) > 23.9 && Number(rows[0]?.hours) <= 24)
    await pool.query('update claims set kept_until = clock_timestamp() where call_id = $1', [id])
    assert.equal((await tagOf(key, 'kept')).status, 200)
  })

  it('of a call that was given back later is still completed, and cost nothing', async () => {
    const key = newKey()
    const { id } = await tagOf(key, 'given back')
    await reverseCharge(pool, ids.next(), id, nanos(1_450_000n))
    const again = await tagOf(key, 'given back')
    assertRefused(again, 409, 'idempotency_completed')
    assert.equal(errorOf(again).cost_usd, '0.000000000')
  })

  it('has 1 to 255 visible characters of ASCII, or is 400; case matters', async () => {
    const before = await traceOf({ pool, sandbox })
    for (const wrong of ['', 'a b', 'é', 'x'.repeat(256), 'a\tb'])
      assertRefused(await tagOf(wrong, 'wrong'), 400, 'invalid_request')
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
    for (const right of ['x', 'X', '!~"\\,;:\'%00', 'x'.repeat(255), newKey()])
      assert.equal((await tagOf(right, 'right')).status, 200, right)
  })
})

/** A call that was being made when its process died. */
async function interrupted(key: string, marker: string): Promise<Id> {
  const env = { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'error' }
  const mortal = await startGateway({ databaseUrl: database.url, env })
  await sandbox.fault('reseller', ['delay=600000'])
  const lost = tagOf(key, marker, customer.secret, mortal.url).catch(() => undefined)
  await until(async () => (await asked(marker)) === 1, PATIENCE_MS, 'the call')
  await mortal.kill()
  assert.equal(await lost, undefined)
  const { rows } = await pool.query<{ id: Id }>('select id from holds where account_id = $1 and unsettled_at is null', [
    customer.accountId,
  ])
  assert.equal(rows.length, 1)
  return rows[0]?.id ?? ''
}

/** What a sweep does when the lease of the dead process has ended. */
async function sweep(id: Id): Promise<void> {
  await pool.query(
    "update owners set lease_until = clock_timestamp() - interval '1 s' where id = (select owner_id from holds where id = $1)",
    [id],
  )
  // Unless a gateway's own sweep came between.
  await pool.query('select from mark_unsettled($1, null)', [[id]])
  const { rowCount } = await pool.query('select from holds where id = $1 and unsettled_at is not null', [id])
  assert.equal(rowCount, 1)
}

describe('a key whose first call was interrupted', () => {
  it('ERR-3 ERR-6 is 409 outcome_unknown with its request id, is not repeated, and is resolved by evidence', async () => {
    const key = newKey()
    const word = 'interrupted'
    const id = await interrupted(key, word)
    const early = await tagOf(key, word)
    assertRefused(early, 409, 'idempotency_running')
    assert.equal(errorOf(early).first_request_id, id)

    await sweep(id)
    for (const { url: at } of gateways) {
      const told = await tagOf(key, word, customer.secret, at)
      assertRefused(told, 409, 'outcome_unknown')
      assert.equal(errorOf(told).first_request_id, id)
      assert.equal(told.headers.get('x-should-retry'), 'false')
      assert.equal(told.headers.get('retry-after'), null)
    }
    assertRefused(await tagOf(key, 'other'), 422, 'idempotency_mismatch')
    assert.equal(await asked('interrupted'), 1)

    await resolveCall(pool, id, nanos(1_450_000n))
    const resolved = await tagOf(key, word)
    assertRefused(resolved, 409, 'idempotency_completed')
    // The process that could have told the status is dead.
    assert.deepEqual([errorOf(resolved).status, errorOf(resolved).cost_usd], [null, '0.001450000'])
  })

  it('ERR-3 is free again where it turns out that nothing was charged', async () => {
    const key = newKey()
    const id = await interrupted(key, 'voided')
    await sweep(id)
    await resolveCall(pool, id, null)
    assert.equal((await tagOf(key, 'voided')).status, 200)
  })
})

describe('what is not to be repeated', () => {
  it('ERR-6 a call whose outcome is unknown is asked once by us, and says x-should-retry: false', async () => {
    const failures = ['reset=before-headers', 'reset=in-body', 'close-early', 'truncate']
    for (const operation of ['tag_detail', 'rerank'])
      for (const directive of failures) {
        const before = (await sandbox.journal()).length
        await sandbox.fault(operation === 'rerank' ? 'rerank' : 'reseller', [directive])
        const told = await call(url, customer.secret, operation)
        assertRefused(
          told,
          operation === 'rerank' ? 502 : 503,
          operation === 'rerank' ? 'upstream_transport' : 'managed_upstream_transport',
        )
        assert.equal(told.headers.get('x-should-retry'), 'false')
        assert.equal(told.costUsd, '0.000000000')
        assert.equal((await sandbox.journal()).length, before + 1, `${operation} ${directive}`)
        assert.equal((await call(url, customer.secret, operation)).status, 200)
      }
  })

  it('ERR-6 a key whose first call completed says so too', async () => {
    const key = newKey()
    await tagOf(key, 'said')
    assert.equal((await tagOf(key, 'said')).headers.get('x-should-retry'), 'false')
  })
})

/** A client as a caller has it, which counts what it sends. */
function sdk(base: string) {
  const sent: number[] = []
  const client = new OpenAI({
    baseURL: url + base,
    apiKey: customer.secret,
    async fetch(input, init) {
      const answer = await fetch(input, init)
      sent.push(answer.status)
      return answer
    },
  })
  return { client, sent }
}

describe('SDKs that retry by themselves', () => {
  const body = CALLS.rerank?.('').body
  const headers = { 'idempotency-key': 'of an SDK'.replaceAll(' ', '-') }

  it('trap: an SDK does not repeat a conflict of an idempotency key', async () => {
    const { client, sent } = sdk('/v1')
    await client.post('/rerank', { body, headers })
    await assert.rejects(client.post('/rerank', { body, headers }), OpenAI.ConflictError)
    assert.deepEqual(sent, [200, 409])
  })

  it('trap: an SDK waits for a call that is still running, and is told of it once it completed', async () => {
    const { client, sent } = sdk('/v1')
    const key = { 'idempotency-key': newKey() }
    const slow = CALLS.rerank?.('sandbox:delay=1500').body
    const [first, second] = await Promise.allSettled([
      client.post('/rerank', { body: slow, headers: key }),
      client.post('/rerank', { body: slow, headers: key }),
    ])
    assert.deepEqual([first.status, second.status].sort(), ['fulfilled', 'rejected'])
    const [served, ...conflicts] = sent.toSorted()
    assert.equal(served, 200)
    assert.deepEqual(new Set(conflicts), new Set([409]))
    assert.ok(conflicts.length > 1, 'it came again')
  })

  it('trap: an SDK does not repeat a failure whose outcome is unknown', async () => {
    const { client, sent } = sdk('/v1')
    const before = (await sandbox.journal()).length
    for (const directive of ['reset=before-headers', 'reset=in-body', 'truncate']) {
      const broken = CALLS.rerank?.(`sandbox:${directive}`).body
      await assert.rejects(client.post('/rerank', { body: broken }), OpenAI.InternalServerError)
    }
    assert.deepEqual(sent, [502, 502, 502])
    assert.equal((await sandbox.journal()).length, before + 3)
  })

  it('trap: an SDK does not pay again for an error that was charged', async () => {
    const { client, sent } = sdk('/apis/v1')
    const charged = await chargesOf(pool, customer.accountId)
    const path = CALLS.tag_detail?.('sandbox:code=200 sandbox:status=409').path.replace('/apis/v1', '') ?? ''
    await assert.rejects(client.get(path), OpenAI.ConflictError)
    assert.deepEqual(sent, [409])
    assert.equal((await chargesOf(pool, customer.accountId)).size, charged.size + 1)
  })

  it('trap: an SDK that ignores a Retry-After above 60 s is told not to retry; within 60 s it waits', async () => {
    const { client, sent } = sdk('/v1')
    const limited = (seconds: number) =>
      CALLS.rerank?.(`sandbox:status=429 sandbox:retry-after=${seconds} ${seconds}`).body
    await assert.rejects(client.post('/rerank', { body: limited(61) }), OpenAI.RateLimitError)
    await assert.rejects(client.post('/rerank', { body: limited(86_400) }), OpenAI.RateLimitError)
    assert.deepEqual(sent, [429, 429])
    const startedMs = performance.now()
    await assert.rejects(client.post('/rerank', { body: limited(1), maxRetries: 1 }), OpenAI.RateLimitError)
    assert.deepEqual(sent, [429, 429, 429, 429])
    assert.ok(performance.now() - startedMs >= 1_000)
    for (const seconds of [1, 60, 61, 86_400]) {
      const told = await call(url, customer.secret, 'tag_detail', `sandbox:status=429 sandbox:retry-after=${seconds}`)
      assert.equal(told.status, 429)
      assert.ok(Number(told.headers.get('retry-after')) <= 60 || told.headers.get('x-should-retry') === 'false')
    }
  })
})

it('leaves a ledger that adds up', async () => {
  assert.deepEqual(await verifyLedger(pool), [])
})
