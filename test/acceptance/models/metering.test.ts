import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../../harness/gateways.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { formatUsd, nanos } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { grantTier } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, ask, type Customer, ids, makeCustomer, makeKey, startInstallation } from '../installation.ts'
import {
  ALL_PROTOCOLS,
  byCall,
  type Charge,
  chargeOf,
  chargesOf,
  costOf,
  eachOf,
  evidenceOf,
  generatedIn,
  hear,
  type Leaving,
  leaveOnce,
  leftOver,
  limited,
  PROTOCOLS,
  type Protocol,
  type Question,
  question,
  settled,
  streamed,
  tokensIn,
  tokensOf,
} from './streams.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
/** One that gives an upstream up as soon as the caller has left. */
const impatient = await startGateway({
  databaseUrl: database.url,
  env: {
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    FAREBOX_LOG_LEVEL: 'warn',
    FAREBOX_HTTP_ABANDONED_STREAM_MS: '0',
  },
})
after(async () => {
  await impatient.stop()
  await installation.stop()
})

const FORMS = [
  ['streamed', streamed],
  ['in one piece', question],
] as const

/** What the upstream knows of a call. */
async function entryOf(id: string): Promise<JournalEntry> {
  const entry = byCall(await sandbox.journal()).get(id)
  assert.ok(entry !== undefined, `${id} did not reach the upstream`)
  return entry
}

/** The call of somebody who has made but one, when it is settled and the upstream knows that it is over. */
async function onlyCall({ accountId }: Customer): Promise<{ charge: Charge; entry: JournalEntry }> {
  await settled(pool, accountId)
  const [charge, ...others] = (await chargesOf(pool, { accountId })).values()
  assert.ok(charge !== undefined && others.length === 0)
  await until(async () => (await entryOf(charge.id)).outcome !== 'open', PATIENCE_MS, 'the upstream learns of it')
  return { charge, entry: await entryOf(charge.id) }
}

/** Leaves as soon as the upstream has been asked. */
async function leaveEarly(at: string, { secret, accountId }: Customer, asked: Question): Promise<void> {
  await leaveOnce(at, secret, asked, async () => {
    const { rows } = await pool.query('select id from holds where account_id = $1', [accountId])
    return rows.length > 0 && byCall(await sandbox.journal()).has(rows[0].id)
  })
}

function assertCharged(charge: Charge, tokens: Charge['tokens']): void {
  assert.deepEqual(
    [charge.outcome, charge.amount, charge.tokens, charge.overrun],
    ['posted', costOf(tokens), tokens, 0n],
  )
}

describe('trap: caller disconnects mid-stream and pays nothing, no row', { concurrency: true }, () => {
  for (const protocol of ALL_PROTOCOLS) {
    it(`trap: who leaves pays what the upstream reports, and finds the call: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const { id, end } = await hear(url, customer.secret, streamed(protocol, 'sandbox/text', 'sandbox:delta-ms=15'), {
        atByte: 3_000,
      })
      assert.equal(end, 'cut')
      const { charge, entry } = await onlyCall(customer)
      assertCharged(charge, tokensIn(entry.usage))
      assert.equal(charge.id, id)
      const { evidence } = await evidenceOf(url, customer.secret, id)
      const { input: inputTokens, output, cacheRead: cacheReadTokens, cacheWrite: cacheWriteTokens } = charge.tokens
      const told = { inputTokens, outputTokens: output, cacheReadTokens, cacheWriteTokens }
      assert.deepEqual(evidence, { ...told, usage_source: 'provider' })
    })

    it(`trap: who leaves an upstream that goes on pays what was delivered, and finds the call: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const asked = streamed(protocol, 'sandbox/long', 'sandbox:delta-bytes=300 sandbox:hang=body')
      const { id, text } = await hear(impatient.url, customer.secret, asked, { atByte: 5_000 })
      const { charge, entry } = await onlyCall(customer)
      assert.ok(tokensOf(text) <= charge.tokens.output && charge.tokens.output <= (entry.tokens ?? 0))
      assertCharged(charge, { ...charge.tokens, input: entry.input_tokens ?? 0, cacheRead: 0, cacheWrite: 0 })
      assert.ok(charge.tokens.output > 500)
      const { evidence } = await evidenceOf(url, customer.secret, id)
      assert.equal(Object(evidence).usage_source, sourceInTheMiddle(protocol))
    })
  }
})

/** Every event of one protocol reports what has been used so far. */
const sourceInTheMiddle = (protocol: Protocol) => (protocol === 'gemini' ? 'provider' : 'counted')

describe('trap: non-streamed disconnect records only the input cost', { concurrency: true }, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`trap: who leaves before the answer pays all of it: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      await leaveEarly(url, customer, question(protocol, 'sandbox/text', 'sandbox:delay=300'))
      const { charge, entry } = await onlyCall(customer)
      assertCharged(charge, tokensIn(entry.usage))
      assert.ok(charge.tokens.output > 50)
    })
})

describe('trap: on disconnect, an explicit zero usage is read as missing and overbilled', { concurrency: true }, () => {
  const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  for (const protocol of ALL_PROTOCOLS)
    for (const [form, asks] of FORMS)
      it(`trap: a zero is a zero, for who stays and who leaves: ${protocol}, ${form}`, async () => {
        const stays = await makeCustomer(pool)
        const leaves = await makeCustomer(pool)
        const asked = asks(protocol, 'sandbox/zero-usage', `${'word '.repeat(30)} sandbox:delta-ms=15`)
        const { end, id } = await hear(url, stays.secret, asked)
        assert.equal(end, 'clean')
        if (form === 'streamed') assert.equal((await hear(url, leaves.secret, asked, { atByte: 2_000 })).end, 'cut')
        else await leaveEarly(url, leaves, asks(protocol, 'sandbox/zero-usage', 'sandbox:delay=300'))
        for (const customer of [stays, leaves]) {
          const { charge, entry } = await onlyCall(customer)
          assertCharged(charge, free)
          assert.ok(charge.executed && (entry.tokens ?? 0) > 5)
        }
        assert.equal(Object((await evidenceOf(url, stays.secret, id)).evidence).usage_source, 'provider')
      })
})

describe('trap: an aborted stream that delivered nothing is charged in full; one that delivered much is refunded in full', {
  concurrency: true,
}, () => {
  for (const protocol of ALL_PROTOCOLS) {
    it(`trap: nothing was delivered to one who left, and the input that was sent is charged, no more: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      await leaveEarly(impatient.url, customer, streamed(protocol, 'sandbox/text', 'sandbox:slow-first-byte=60000'))
      const { charge, entry } = await onlyCall(customer)
      assert.deepEqual([entry.outcome, entry.tokens], ['left', 0])
      assertCharged(charge, { input: entry.input_tokens ?? 0, output: 0, cacheRead: 0, cacheWrite: 0 })
      assert.equal(charge.failed, false)
      await isReported(customer, [charge])
    })

    it(`trap: much was delivered, and all of that is charged: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const asked = streamed(
        protocol,
        'sandbox/text',
        'sandbox:output-tokens=4000 sandbox:delta-bytes=60 sandbox:delta-ms=4',
      )
      const { text } = await hear(impatient.url, customer.secret, asked, { atByte: 30_000 })
      const { charge, entry } = await onlyCall(customer)
      assert.equal(entry.outcome, 'left')
      assert.ok(tokensOf(text) > 1_500 && charge.tokens.output >= tokensOf(text))
      assertCharged(charge, charge.tokens)
    })
  }
})

describe("trap: cancelled stream, 806 deltas delivered, 1 token billed; or 9.1 × the model's maximum", {
  concurrency: true,
}, () => {
  for (const protocol of ALL_PROTOCOLS) {
    it(`trap: a thousand deltas are billed, to the token: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      // It falls silent after half of its deltas, so that none is on its way when the caller leaves.
      const asked = streamed(
        protocol,
        'sandbox/text',
        'sandbox:output-tokens=4000 sandbox:delta-bytes=6 sandbox:hang=body',
      )
      const silent = await hear(impatient.url, customer.secret, asked, { afterSilenceMs: 1_500 })
      const { charge, entry } = await onlyCall(customer)
      const deltas = silent.events.filter((event) => generatedIn(event) !== '').length
      assert.ok(deltas >= 806, `${deltas} deltas`)
      assert.deepEqual([entry.outcome, entry.tokens, tokensOf(silent.text)], ['hung', 2_000, 2_000])
      assertCharged(charge, { input: entry.input_tokens ?? 0, output: 2_000, cacheRead: 0, cacheWrite: 0 })
    })

    it(`trap: no more is billed than the call can have, whatever is reported or counted: ${protocol}`, async () => {
      for (const [form, asks] of FORMS)
        for (const [model, word] of [
          ['sandbox/text', 'sandbox:usage=1000000'],
          ['sandbox/text', 'sandbox:usage=9007199254740991'],
          ['sandbox/text', 'sandbox:usage=9223372036854775808'],
          ['sandbox/no-usage', 'sandbox:output-tokens=5000'],
        ] as const) {
          const customer = await makeCustomer(pool)
          const told = await hear(url, customer.secret, asks(protocol, model, word, limited(protocol, 50)))
          const { charge } = await onlyCall(customer)
          assert.deepEqual([told.status, told.end], [200, 'clean'], form)
          // A hundred bytes of a question and what surrounds them, and fifty tokens of an answer.
          assert.ok(charge.amount <= charge.held && charge.held < costOf({ ...MOST, output: 50 }), `${charge.held}`)
          if (model === 'sandbox/no-usage') assert.equal(charge.tokens.output, 50)
        }
    })
  }
})

const MOST = { input: 600, cacheRead: 0, cacheWrite: 600 }

describe('trap: cache-write or cache-read tokens counted twice', { concurrency: true }, () => {
  const prompt = 'word '.repeat(400)
  /** What is told as the input, with all or nothing of what caches had, and what is told of writing. */
  const CACHED = {
    openai: { input: 1_000, written: 300 },
    openai_responses: { input: 1_000, written: 300 },
    anthropic: { input: 100, written: 300 },
    gemini: { input: 700, written: 0 },
  }
  for (const protocol of ALL_PROTOCOLS)
    for (const [form, asks] of FORMS)
      it(`trap: each token is priced once, in its own class: ${protocol}, ${form}`, async () => {
        const customer = await makeCustomer(pool)
        const { input, written } = CACHED[protocol]
        const words = `sandbox:input-tokens=${input} sandbox:cache-read=600 sandbox:cache-write=300 sandbox:output-tokens=70`
        const { id } = await hear(url, customer.secret, asks(protocol, 'sandbox/text', `${prompt} ${words}`))
        const { charge } = await onlyCall(customer)
        assertCharged(charge, { input: 100, output: 70, cacheRead: 600, cacheWrite: written })
        assert.equal(charge.amount, 100n * 500n + 70n * 2_000n + 600n * 50n + BigInt(written) * 625n)
        assert.equal(Object((await evidenceOf(url, customer.secret, id)).evidence).usage_source, 'provider')
      })

  for (const protocol of PROTOCOLS)
    it(`trap: a real cache is written once and read then, and the report has the sums of all: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const marks = protocol === 'anthropic' ? { cache_control: { type: 'ephemeral' } } : { prompt_cache_key: protocol }
      const charges: Charge[] = []
      for (const [, asks] of [...FORMS, ...FORMS]) {
        const { id, end } = await hear(url, customer.secret, asks(protocol, 'sandbox/echo', prompt.repeat(2), marks))
        assert.equal(end, 'clean')
        const charge = await chargeOf(pool, id)
        const entry = await entryOf(id)
        assertCharged(charge, tokensIn(entry.usage))
        const { input, cacheRead, cacheWrite } = charge.tokens
        assert.equal(input + cacheRead + cacheWrite, entry.input_tokens)
        charges.push(charge)
      }
      const [first, ...later] = charges.map(({ tokens }) => tokens)
      assert.ok((first?.cacheWrite ?? 0) > 1_200 && first?.cacheRead === 0)
      assert.ok(later.every(({ cacheRead, cacheWrite }) => cacheRead === first.cacheWrite && cacheWrite === 0))
      await isReported(customer, charges)
    })
})

/** That the usage report has just these calls. */
async function isReported({ secret }: Customer, charges: readonly Charge[]): Promise<void> {
  const { totals } = Object((await ask(url, secret, '/v1/usage?start_time=1')).json)
  const sum = (of: (charge: Charge) => number) => charges.reduce((all, charge) => all + of(charge), 0)
  const amount = charges.reduce((all, charge) => all + charge.amount, 0n)
  const { usage_value_micros_usd, ...rest } = totals
  assert.deepEqual(rest, {
    requests: charges.length,
    failed_requests: sum(({ failed }) => Number(failed)),
    input_tokens: sum(({ tokens }) => tokens.input),
    output_tokens: sum(({ tokens }) => tokens.output),
    cache_read_tokens: sum(({ tokens }) => tokens.cacheRead),
    cache_write_tokens: sum(({ tokens }) => tokens.cacheWrite),
    charged_micros_usd: Number(amount / 1_000n),
  })
  assert.equal(usage_value_micros_usd, rest.charged_micros_usd)
}

describe('MODEL-3 tokens', { concurrency: true }, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`MODEL-3 are counted where the upstream reports none, and said to be: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const charges: Charge[] = []
      for (const [, asks] of FORMS)
        for (const text of ['', 'word '.repeat(500), 'Größe 東京 🙂 '.repeat(40)]) {
          const { id } = await hear(url, customer.secret, asks(protocol, 'sandbox/no-usage', text))
          const charge = await chargeOf(pool, id)
          const { input_tokens, tokens, usage } = await entryOf(id)
          assert.equal(usage, null)
          assertCharged(charge, charge.tokens)
          assertNear(charge.tokens.input, input_tokens ?? 0)
          assertNear(charge.tokens.output, tokens ?? 0)
          assert.equal(Object((await evidenceOf(url, customer.secret, id)).evidence).usage_source, 'counted')
          charges.push(charge)
        }
      await isReported(customer, charges)
    })

  it('MODEL-3 of a stream and its cost are in its last frame, as the ledger has them: openai', async () => {
    const { secret } = await makeCustomer(pool)
    const wanted = { stream_options: { include_usage: true } }
    const { id, events } = await hear(url, secret, streamed('openai', 'sandbox/text', '', wanted))
    const [told, done] = events.slice(-2)
    const { tokens, amount } = await chargeOf(pool, id)
    const { cost_usd, ...usage } = Object(Object(told).usage)
    assert.deepEqual([cost_usd, done], [formatUsd(nanos(amount)), '[DONE]'])
    assert.deepEqual(tokensIn(usage), tokens)
    assert.ok(events.slice(0, -2).every((event) => Object(event).usage === null))
  })

  it('MODEL-3 are metered where the caller did not ask for them, who then sees nothing of it but the cost: openai', async () => {
    const { secret } = await makeCustomer(pool)
    for (const more of [{}, { stream_options: { include_usage: false } }, { stream_options: null }]) {
      const { id, events } = await hear(url, secret, streamed('openai', 'sandbox/text', '', more))
      assertCharged(await chargeOf(pool, id), tokensIn((await entryOf(id)).usage))
      assert.ok(events.length > 20 && events.at(-1) === '[DONE]')
      for (const event of events) {
        assert.ok(typeof event === 'string' || !('usage' in Object(event)), JSON.stringify(event))
        assert.notDeepEqual(Object(event).choices, [])
      }
    }
  })

  it('MODEL-3 of a stream and its cost are in its last frames, as the ledger has them: anthropic', async () => {
    const { secret } = await makeCustomer(pool)
    const { id, events } = await hear(url, secret, streamed('anthropic', 'sandbox/text', 'sandbox:cache-read=9'))
    const [told, stop] = events.slice(-2)
    const { tokens, amount } = await chargeOf(pool, id)
    const { cost_usd, ...usage } = Object(Object(told).usage)
    assert.deepEqual([cost_usd, stop], [formatUsd(nanos(amount)), { type: 'message_stop' }])
    assert.deepEqual(tokensIn(usage), tokens)
  })

  it('MODEL-3 of a stream and its cost are in its last frame, as the ledger has them: gemini', async () => {
    const { secret } = await makeCustomer(pool)
    const { id, events } = await hear(url, secret, streamed('gemini', 'sandbox/text', 'sandbox:cache-read=2'))
    const { tokens, amount } = await chargeOf(pool, id)
    const costs = events.map((event) => Object(event).usageMetadata.cost_usd)
    assert.deepEqual([costs.pop(), new Set(costs)], [formatUsd(nanos(amount)), new Set([undefined])])
    assert.deepEqual(tokensIn(Object(events.at(-1)).usageMetadata), tokens)
    assert.equal(tokens.cacheRead, 2)
  })
})

function assertNear(counted: number, real: number): void {
  assert.ok(Math.abs(counted - real) <= Math.max(2, 0.03 * real), `${counted} instead of ${real}`)
}

describe('a stream that fails in its middle', { concurrency: true }, () => {
  for (const protocol of ALL_PROTOCOLS) {
    for (const [model, word] of [
      ['sandbox/cut-mid-stream', ''],
      ['sandbox/error-mid-stream', ''],
      ['sandbox/no-end', ''],
      ['sandbox/text', 'sandbox:truncate'],
      ['sandbox/text', 'sandbox:reset=in-body'],
    ] as const)
      it(`MODEL-3 ends in an error that nobody takes for an end, and costs what was delivered: ${protocol}, ${model} ${word}`, async () => {
        const customer = await makeCustomer(pool)
        const { id, status, end, events, text } = await hear(url, customer.secret, streamed(protocol, model, word))
        assert.deepEqual([status, end], [200, 'broken'])
        const last = Object(events.at(-1))
        const { type, error } = last
        assert.ok(typeof Object(error).message === 'string', JSON.stringify(events.at(-1)))
        if (protocol === 'anthropic' || protocol === 'openai_responses') assert.equal(type, 'error')
        assert.doesNotMatch(JSON.stringify(events), /stop_reason":"|finishReason|response\.completed/)
        assert.ok(!events.includes('[DONE]'))

        const { charge, entry } = await onlyCall(customer)
        // Who reads the error knows what it cost, and by which id to look it up.
        const words = JSON.stringify(last)
        assert.ok(words.includes(`"cost_usd":"${formatUsd(nanos(charge.amount))}"`), words)
        assert.ok(words.includes(`"request_id":"${id}"`), words)
        assert.ok(text.length > 50)
        assertCharged(charge, { input: entry.input_tokens ?? 0, output: tokensOf(text), cacheRead: 0, cacheWrite: 0 })
        assert.equal(charge.failed, true)
        const { evidence } = await evidenceOf(url, customer.secret, id)
        assert.equal(Object(evidence).usage_source, sourceInTheMiddle(protocol))
      })

    it(`MODEL-3 falls silent, and costs what was delivered when the caller leaves: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const { text } = await hear(impatient.url, customer.secret, streamed(protocol, 'sandbox/hang'), {
        afterSilenceMs: 200,
      })
      const { charge, entry } = await onlyCall(customer)
      assert.deepEqual([entry.outcome, text.length], ['hung', 8])
      assertCharged(charge, { input: entry.input_tokens ?? 0, output: 3, cacheRead: 0, cacheWrite: 0 })
    })

    it(`MODEL-3 has a frame that nobody can read: it is passed on, and what follows is metered: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const { end, events } = await hear(url, customer.secret, streamed(protocol, 'sandbox/garbage-frame'))
      const { charge, entry } = await onlyCall(customer)
      assert.equal(end, 'clean')
      assert.equal(events.filter((event) => typeof event === 'string' && event !== '[DONE]').length, 1)
      assertCharged(charge, tokensIn(entry.usage))
    })
  }
})

describe('trap: a second protocol or a pass-through route bypasses budgets or drops the spend row', () => {
  const COUNT_OF_GEMINI = '/v1beta/models/sandbox/text:countTokens'
  const WAYS: readonly (readonly [string, (word: string) => Question])[] = [
    ...ALL_PROTOCOLS.flatMap((protocol) =>
      FORMS.map(
        ([form, asks]) => [`${protocol}, ${form}`, (word: string) => asks(protocol, 'sandbox/text', word)] as const,
      ),
    ),
    ['count_tokens', (word) => ({ ...question('anthropic', 'sandbox/text', word), path: '/v1/messages/count_tokens' })],
    ['countTokens', (word) => ({ ...question('gemini', 'sandbox/text', word), path: COUNT_OF_GEMINI })],
  ]
  const isFree = (name: string) => name === 'count_tokens' || name === 'countTokens'
  for (const [name, asks] of WAYS)
    it(`trap: money is held while the upstream works, and a row stays: ${name}`, async () => {
      const customer = await makeCustomer(pool)
      const running = hear(url, customer.secret, asks('sandbox:delay=1500'))
      let isHeld = false
      await until(async () => {
        const { rows } = await pool.query('select id from holds where account_id = $1', [customer.accountId])
        isHeld = rows.length > 0 && byCall(await sandbox.journal()).get(rows[0].id)?.outcome === 'open'
        return isHeld
      }, PATIENCE_MS)
      assert.equal((await running).end, 'clean')
      const { charge } = await onlyCall(customer)
      assert.equal(charge.amount > 0n, !isFree(name))
      await isReported(customer, isFree(name) ? [] : [charge])
      const { executed } = Object((await ask(url, customer.secret, `/v1/requests/${charge.id}`)).json)
      assert.equal(executed, true)
    })

  // What costs nothing is within any budget.
  for (const [name, asks] of WAYS.filter(([one]) => !isFree(one)))
    it(`trap: a budget of nothing stops it before the upstream is asked: ${name}`, async () => {
      const { workspaceId } = await makeCustomer(pool)
      const { secret } = await makeKey(pool, workspaceId, { budget: { period: 'total', amount: nanos(1n) } })
      const asked = (await sandbox.journal()).length
      const { path, body } = asks('')
      assert.equal((await ask(url, secret, path, { body })).status, 402)
      assert.equal((await sandbox.journal()).length, asked)
    })
})

describe('USAGE-9 the report', { concurrency: true }, () => {
  for (const [path, protocol] of [
    ['/v1/messages/count_tokens', 'anthropic'],
    ['/v1beta/models/sandbox/text:countTokens', 'gemini'],
  ] as const)
    it(`USAGE-9 counts no ${path}, whether it succeeds or fails`, async () => {
      const customer = await makeCustomer(pool)
      for (const word of ['', 'sandbox:status=500']) {
        const { body } = question(protocol, 'sandbox/text', word)
        assert.equal((await ask(url, customer.secret, path, { body })).status, word === '' ? 200 : 500)
      }
      await isReported(customer, [])
      assert.deepEqual(await verifyLedger(pool), [])
    })
})

describe('trap: a concurrency slot leaks on every tool call or upstream timeout until the key is deadlocked', () => {
  const AT_ONCE = 5
  const FAILING: readonly ((protocol: Protocol) => { asked: Question; leaving?: Leaving })[] = [
    (protocol) => ({ asked: streamed(protocol, 'sandbox/hang'), leaving: { afterSilenceMs: 100 } }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/slow'), leaving: { atByte: 3_000 } }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/cut-mid-stream') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/error-mid-stream') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/no-end') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/tools') }),
    (protocol) => ({ asked: question(protocol, 'sandbox/tools') }),
    (protocol) => ({ asked: question(protocol, 'sandbox/cut-mid-stream') }),
    (protocol) => ({ asked: question(protocol, 'sandbox/500') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/429') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/overloaded') }),
    (protocol) => ({ asked: question(protocol, 'sandbox/text', 'sandbox:close-early') }),
    (protocol) => ({ asked: streamed(protocol, 'sandbox/text', 'sandbox:reset=before-headers') }),
  ]

  it('trap: every call gives its place back, however it ends', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000_000, concurrency: AT_ONCE }
    await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'enterprise', limits })
    const failing = FAILING.flatMap((make) => ALL_PROTOCOLS.flatMap((protocol) => [make(protocol), make(protocol)]))
    assert.ok(failing.length >= 50)
    await eachOf(failing, AT_ONCE, async ({ asked, leaving }) => {
      const { status } = await hear(impatient.url, secret, asked, leaving)
      // The place of one who has left is free a moment later.
      await until(async () => (await leftOver(pool)).claims < AT_ONCE, PATIENCE_MS, 'a place is free')
      assert.notEqual(status, 0)
    })
    await settled(pool)
    assert.deepEqual(await leftOver(pool), { holds: 0, claims: 0 })

    const whole = () => hear(impatient.url, secret, streamed('openai', 'sandbox/text', 'sandbox:slow-first-byte=3000'))
    const told = await Promise.all(Array.from({ length: AT_ONCE + 1 }, whole))
    assert.deepEqual(told.map(({ status }) => status).toSorted(), [...Array.from({ length: AT_ONCE }, () => 200), 429])
  })
})

describe('trap: nothing reaches an upstream before its money is held', () => {
  it('trap: every request in the journal has a row that began before it', async () => {
    await settled(pool)
    const charges = await chargesOf(pool)
    const journal = await sandbox.journal()
    assert.ok(journal.length > 120)
    for (const { request_id, at_ms } of journal) {
      const charge = charges.get(request_id ?? '')
      assert.ok(charge !== undefined && charge.begunAtMs < at_ms, `${request_id} at ${at_ms}`)
    }
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
