import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { judge } from '../../harness/figures.ts'
import { freePort } from '../../harness/free-port.ts'
import { descendants } from '../../harness/processes.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { FAILURES_IN_A_ROW } from '../../server/src/upstreams/breakers.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { okay, startUpstream } from '../upstreams/raw-upstream.ts'
import { type Behaviour, RAW, type Rule, WORDED, type Worded } from './hostile-behaviours.ts'
import {
  CALLS,
  type Call,
  type Customer,
  call,
  errorOf,
  ids,
  makeCustomer,
  startInstallation,
  type Told,
} from './installation.ts'

/** What upstreams may do to us, each judged by the rule that docs/hostile-upstreams.md has for it. */
const TOTAL_MS = 3_000
const GROWTH_LIMIT_MIB = 64
/** As many as open the breaker again, each for longer, in the time that a test has. */
const MORE_FAILURES = 3
/** Whose price is set anew when something else was changed, so that it shows whether the process has heard of that. */
const MARKER = 'financial_metrics_snapshot'
const WARM_UP = count({ full: 50, reduced: 1 })
/**
 * So that memory is what the process keeps: left to itself it collects later, and grows by more than the limit. 0 where nobody
 * looks at it: collecting so often takes a quarter of a core.
 */
const COLLECT_EVERY_MS = count({ full: 100, reduced: 0 })

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  changes: 'test/acceptance/hostile-server.ts',
  env: { TEST_TOTAL_MS: String(TOTAL_MS), TEST_COLLECT_EVERY_MS: String(COLLECT_EVERY_MS), FAREBOX_LOG_LEVEL: 'error' },
})
const { url, pool, sandbox, gateways, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool, { money: 1_000_000_000_000n })
const live = await makeCustomer(pool, { money: 1_000_000_000_000n, key: { mode: 'live' } })

const OPERATIONS = { rerank: 'rerank', reseller: 'tag_detail' } as const
type Slot = keyof typeof OPERATIONS
const SLOTS = ['rerank', 'reseller'] as const
/** Of a reranking. */
const NANOS_PER_TOKEN = 50n
/** As an upstream that writes its own bytes says. */
const PAID_TOKENS = 5n
const KINDS = { rerank: 'native', reseller: 'managed' } as const

/** The process itself: what the harness started may stand before it. */
const pid = (() => {
  const started = gateways[0]?.pid ?? 0
  return descendants(started).at(-1) ?? started
})()

function rssMib(): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

const bound = new Map<Slot, Id>()

/** Points live mode somewhere, and waits until the process knows. */
async function bindLive(urlOf: (slot: Slot) => string): Promise<void> {
  const seal = createSeal({ current: masterKey })
  const credential = new Secret('sandbox-key')
  for (const slot of SLOTS) {
    const id = bound.get(slot)
    const settings = { slot, mode: 'live', kind: KINDS[slot], baseUrl: urlOf(slot), credential } as const
    bound.set(slot, await saveUpstream({ pool, ids, seal }, id === undefined ? settings : { ...settings, id }))
  }
  await untilHeard()
}

/** The process has heard of every change so far: they come in order, and it knows of a later one. */
async function untilHeard(): Promise<void> {
  const version = String(await setPrice(pool, { operation: MARKER, unitPrice: '0.01' }))
  const quoting = { headers: { 'x-farebox-cost-mode': 'quote' } }
  const isKnown = async () => (await call(url, customer.secret, MARKER, '', quoting)).json.price_version === version
  await until(isKnown, PATIENCE_MS, 'that the process hears of a change')
}

type Row = {
  readonly outcome: string
  readonly amount: bigint
  readonly overrun: bigint
  readonly value: bigint
  readonly executed: boolean
  readonly failed: boolean
  readonly input_tokens: bigint
}

async function rowOf(id: string): Promise<Row> {
  const { rows } = await pool.query<Row>(
    'select outcome, amount, overrun, value, executed, failed, input_tokens from charges where id = $1',
    [id],
  )
  assert.equal(rows.length, 1, 'one row in the ledger')
  return rows[0] as Row
}

/** What the records have to say of each call's attempt; they are written a moment after the answer, so they are read at the end. */
const attempts = new Map<string, string>()

type Judged = {
  readonly told: Told
  readonly row: Row
  readonly hold: bigint
  readonly slot: Slot
  readonly status: number | undefined
  /** What the sandbox was told to do. */
  readonly word?: string
}

function assertTransportFault({ told, slot }: Judged): void {
  const expected = slot === 'rerank' ? [502, 'upstream_transport'] : [503, 'managed_upstream_transport']
  assert.deepEqual([told.status, errorOf(told).code], expected, told.text)
  assert.equal(told.headers.get('x-should-retry'), 'false')
}

/** Nothing of the call was sent, so that the caller may send it again. */
function assertUnreachable({ told, slot }: Judged): void {
  const expected = slot === 'rerank' ? [502, 'upstream_unreachable'] : [503, 'managed_upstream_unreachable']
  assert.deepEqual([told.status, errorOf(told).code], expected, told.text)
  assert.equal(told.headers.get('x-should-retry'), null)
  assert.match(told.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
}

const ledger = ({ row: { outcome, amount, overrun, executed, failed } }: Judged) => ({
  outcome,
  amount,
  overrun,
  executed,
  failed,
})

/** Each rule of the document: what the caller sees, what is charged, what is recorded. */
const RULES: Readonly<Record<Rule, (judged: Judged) => void>> = {
  'not reached'(judged) {
    assertUnreachable(judged)
    const nothing = { outcome: 'voided', amount: 0n, overrun: 0n, executed: true, failed: true }
    assert.deepEqual(ledger(judged), nothing)
    attempts.set(judged.told.id, 'not_sent')
  },
  'broken off'(judged) {
    assertTransportFault(judged)
    const lost = { outcome: 'voided', amount: 0n, overrun: judged.hold, executed: true, failed: true }
    assert.deepEqual(ledger(judged), lost)
    assert.deepEqual([judged.row.value, judged.row.input_tokens], [0n, 0n])
    attempts.set(judged.told.id, 'unknown')
  },
  'not as promised'(judged) {
    assertTransportFault(judged)
    const { overrun, ...rest } = ledger(judged)
    assert.deepEqual(rest, { outcome: 'voided', amount: 0n, executed: true, failed: true })
    // What it says that it used, or all that it could have.
    const used = [judged.hold, judged.row.value, PAID_TOKENS * NANOS_PER_TOKEN]
    assert.ok(used.includes(overrun), `${overrun}`)
    attempts.set(judged.told.id, 'answered')
  },
  withheld(judged) {
    const { told } = judged
    assert.deepEqual([told.status, errorOf(told).code], [502, 'upstream_unreadable'], told.text)
    assert.equal(told.headers.get('x-should-retry'), 'false')
    const lost = { outcome: 'voided', amount: 0n, overrun: judged.hold, executed: true, failed: true }
    assert.deepEqual(ledger(judged), lost)
    attempts.set(told.id, 'answered')
  },
  counted(judged) {
    const { told, row, hold } = judged
    assert.equal(told.status, 200)
    assert.deepEqual([row.outcome, row.overrun, row.failed], ['posted', 0n, false])
    // As a tokenizer counts what was sent, which is less than a token for each byte.
    assert.equal(row.amount, row.input_tokens * NANOS_PER_TOKEN)
    assert.ok(row.amount > 0n && row.amount < hold)
  },
  'beyond the hold'(judged) {
    const { told, row, hold, word = '' } = judged
    assert.equal(told.status, 200)
    assert.equal(row.amount, hold)
    assert.ok(row.overrun > 0n)
    assert.equal(
      BigInt(JSON.parse(told.text).usage.total_tokens) * NANOS_PER_TOKEN,
      hold,
      'the caller is told what is billed',
    )
    // The loss is what it claims, however much; what is added up of it is a hundred times the bound at the most.
    const claimed = BigInt(/tokens=(\d+)/.exec(word)?.[1] ?? 0) * NANOS_PER_TOKEN
    assert.equal(row.amount + row.overrun, claimed)
    assert.equal(row.value, claimed < 100n * hold ? claimed : 100n * hold)
    assert.equal(row.outcome, 'posted')
  },
  'passed on unpaid'(judged) {
    const { told, status } = judged
    if (status !== undefined) assert.equal(told.status, status)
    const failed = told.status >= 400
    assert.deepEqual(ledger(judged), { outcome: 'posted', amount: 0n, overrun: 0n, executed: true, failed })
    assert.equal(told.headers.get('location'), null)
    assert.equal(told.headers.get('set-cookie'), null)
  },
  'about our account'(judged) {
    const { told } = judged
    assert.equal(errorOf(told).code, told.status === 429 ? 'upstream_rate_limit' : 'upstream_account')
    assert.deepEqual(ledger(judged), { outcome: 'voided', amount: 0n, overrun: 0n, executed: true, failed: true })
  },
  served(judged) {
    const { told, row, status = 200 } = judged
    assert.equal(told.status, status, told.text)
    assert.equal(told.headers.get('location'), null)
    assert.equal(told.headers.get('set-cookie'), null)
    assert.equal(told.headers.get('x-should-retry'), status >= 400 ? 'false' : null)
    assert.deepEqual([row.outcome, row.overrun], ['posted', 0n])
    assert.ok(row.amount > 0n)
    assert.equal(row.amount, row.value)
  },
}

/** As a caller that unpacks nothing, as the gateway itself does not. */
async function askPlainly(secret: string, { path, body }: Call): Promise<Told> {
  const authorization = `Bearer ${secret}`
  const answer = await request(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  const headers = new Headers(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]))
  const isJson = headers.get('content-type')?.startsWith('application/json; charset=utf-8')
  return {
    status: answer.statusCode,
    headers,
    text,
    json: isJson ? JSON.parse(text) : {},
    id: headers.get('x-request-id') ?? '',
    costUsd: headers.get('x-farebox-cost-usd'),
  }
}

/** Sends a call, and holds what came of it against the rule. */
async function expectRule(slot: Slot, rule: Rule, { secret }: Customer, word: string, status?: number): Promise<void> {
  const operation = OPERATIONS[slot]
  const quoting = { headers: { 'x-farebox-cost-mode': 'quote' } }
  const { json } = await call(url, secret, operation, word, quoting)
  const hold = usd(Object(json.max).usd)
  const told = await askPlainly(secret, CALLS[operation]?.(word) ?? { path: '' })
  const row = await rowOf(told.id)
  assert.equal(usd(String(told.costUsd)), row.amount, 'what the caller was told is what the ledger has')
  assert.ok(row.amount <= hold)
  RULES[rule]({ told, row, hold, slot, status, word })
}

let mostMib = 0
const judgedBy = ({ rerank, reseller }: Behaviour) =>
  `rerank ${rerank ?? 'not at all'}, reseller ${reseller ?? 'not at all'}`

/** Everything is as it was: the process lives, and serves. */
async function expectHealth(): Promise<void> {
  assert.equal(gateways[0]?.hasExited(), false)
  for (const slot of SLOTS) assert.equal((await call(url, customer.secret, OPERATIONS[slot])).status, 200)
}

// What a process needs once it has worked for a while is not what a hostile upstream costs it.
for (let at = 0; at < WARM_UP; at += 1) await Promise.all([expectHealth(), expectHealth()])
// So is what the first secure connection of a process loads, such as the certificates that it trusts.
await bindLive(() => sandbox.url.replace('http:', 'https:'))
for (const slot of SLOTS) await call(url, live.secret, OPERATIONS[slot])
// And so is the vocabulary by which it counts, from the first answer on that does not say what it used.
await call(url, customer.secret, 'rerank', 'sandbox:no-usage')
const startMib = rssMib()
mostMib = startMib
const sampling = setInterval(() => {
  mostMib = Math.max(mostMib, rssMib())
}, 10)
after(() => clearInterval(sampling))

async function expectWorded({ directives, status, ...rules }: Worded): Promise<void> {
  const word = directives.map((one) => `sandbox:${one}`).join(' ')
  for (const slot of SLOTS) {
    const rule = rules[slot]
    if (rule !== null) await expectRule(slot, rule, customer, word, status)
  }
  await expectHealth()
}

describe('an upstream that takes its time', { concurrency: 4 }, () => {
  for (const behaviour of WORDED.filter(({ isSlow }) => isSlow))
    it(`${behaviour.name}: ${judgedBy(behaviour)}`, () => expectWorded(behaviour))
})

describe('an upstream that the sandbox plays', () => {
  for (const behaviour of WORDED.filter(({ isSlow }) => !isSlow))
    it(`${behaviour.name}: ${judgedBy(behaviour)}`, () => expectWorded(behaviour))
})

describe('an upstream that writes its own bytes', async () => {
  let answer: Parameters<typeof startUpstream>[0] = ({ socket }) => void socket.write(okay('{}'))
  const upstream = await startUpstream((request) => answer(request))
  await bindLive(() => upstream.url)

  for (const behaviour of RAW)
    it(`${behaviour.name}: ${judgedBy(behaviour)}`, async () => {
      answer = behaviour.answer
      for (const slot of SLOTS) {
        const rule = behaviour[slot]
        if (rule !== null) await expectRule(slot, rule, live, '', behaviour.status)
      }
      // A breaker counts failures in a row, which these are not meant to be.
      answer = ({ socket }) => void socket.write(okay('{"code":1}'))
      for (const slot of SLOTS) await call(url, live.secret, OPERATIONS[slot])
      await expectHealth()
    })
})

describe('an upstream that is not there', () => {
  it('is down: not reached', async () => {
    const port = await freePort()
    await bindLive(() => `http://127.0.0.1:${port}`)
    for (const slot of SLOTS) await expectRule(slot, 'not reached', live, '')
  })

  it('has a name that nobody knows: not reached', async () => {
    await bindLive(() => 'https://upstream.invalid')
    for (const slot of SLOTS) await expectRule(slot, 'not reached', live, '')
  })

  it('speaks no TLS, or answers a handshake with garbage: not reached', async () => {
    const garbage = await startUpstream(
      () => {},
      (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    await bindLive(() => garbage.url.replace('http:', 'https:'))
    for (const slot of SLOTS) await expectRule(slot, 'not reached', live, '')
    await garbage.close()
  })

  it('says nothing at all in its handshake: not reached', async () => {
    const silent = await startUpstream(() => {})
    await bindLive(() => silent.url.replace('http:', 'https:'))
    await Promise.all(SLOTS.map((slot) => expectRule(slot, 'not reached', live, '')))
    await silent.close()
  })

  it('is stopped or killed in the middle of a call: broken off, and not reached from then on', async () => {
    const mortal = await startSandbox()
    await bindLive((slot) => `${mortal.url}/${slot}`)
    mortal.pause()
    await Promise.all(SLOTS.map((slot) => expectRule(slot, 'broken off', live, '')))
    mortal.resume()
    const asked = async () => (await mortal.journal()).filter(({ directives }) => directives.length > 0).length
    const calls = SLOTS.map((slot) => expectRule(slot, 'broken off', live, 'sandbox:delay=60000'))
    await until(async () => (await asked()) === SLOTS.length, PATIENCE_MS, 'both calls')
    await mortal.kill()
    await Promise.all(calls)
    for (const slot of SLOTS) await expectRule(slot, 'not reached', live, '')
  })
})

describe('what an upstream leaves behind', () => {
  it('a breaker opens after ten failures in a row, asks nobody, and closes when the upstream is well again', async () => {
    const metrics = async () => (await fetch(`${gateways[0]?.adminUrl}/metrics`)).text()
    const isNotClosed = async () => /upstream_breakers?\{[^}]*\} [12]$/m.test(await metrics())
    const asked = async () => (await sandbox.journal()).length
    const before = await asked()
    await sandbox.fault('rerank', ['reset=before-headers'], FAILURES_IN_A_ROW)
    for (let at = 0; at < FAILURES_IN_A_ROW; at += 1) await expectRule('rerank', 'broken off', customer, '')
    assert.equal(await asked(), before + FAILURES_IN_A_ROW)
    assert.ok(await isNotClosed(), 'the breaker is open')
    // It stays open for a second, in which a busy machine may not come to ask. Who asks later fails and opens it for longer.
    await sandbox.fault('rerank', ['reset=before-headers'], MORE_FAILURES)
    const isRefusedUnasked = async () => {
      const askedBefore = await asked()
      const told = await askPlainly(customer.secret, CALLS.rerank?.('') ?? { path: '' })
      const row = await rowOf(told.id)
      if ((await asked()) > askedBefore) return false
      RULES['not reached']({ told, row, hold: 0n, slot: 'rerank', status: undefined })
      return true
    }
    await until(isRefusedUnasked, PATIENCE_MS, 'that nobody is asked')
    const { json } = await call(url, customer.secret, 'tag_detail')
    assert.equal(json.code, 200, 'other upstreams are asked')
    const isServed = async () => {
      await delay(100)
      return (await call(url, customer.secret, 'rerank')).status === 200
    }
    await until(isServed, 120_000, 'that it closes')
    await expectRule('rerank', 'served', customer, '')
  })

  it('is a record of every attempt that says how far it came', async () => {
    const recorded = async () => {
      const { rows } = await pool.query<{ id: string; outcome: string }>(
        "select id, detail #>> '{upstream,0,outcome}' as outcome from request_records where id = any ($1)",
        [[...attempts.keys()]],
      )
      return new Map(rows.map(({ id, outcome }) => [id, outcome]))
    }
    assert.ok(attempts.size > 80)
    await until(async () => (await recorded()).size === attempts.size, PATIENCE_MS, 'a record of each')
    assert.deepEqual(await recorded(), attempts)
  })

  it('is no open call, no held money, and a ledger that adds up', async () => {
    const { rows } = await pool.query('select id from holds')
    assert.deepEqual(rows, [])
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('is a process that lives, and serves', async (test) => {
    await expectHealth()
    const behaviours = WORDED.length + RAW.length + 6
    test.diagnostic(`${behaviours} behaviours; from ${startMib.toFixed(0)} to ${mostMib.toFixed(0)} MiB at the most`)
    recordProof('hostile-upstreams', 'every behaviour by its written rule', {
      behaviours,
      garbage_collected_every_ms: COLLECT_EVERY_MS,
    })
    const limit = { unit: 'MiB', atMost: GROWTH_LIMIT_MIB } as const
    judge('hostile-upstreams', 'memory kept once garbage is collected', limit, [mostMib - startMib])
  })
})
