import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { after, describe, it } from 'node:test'
import { CONVERSATION_SLOTS, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import type { NewKey } from '../../../server/src/identity/keys.ts'
import { formatUsd, nanos, usd } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import type { RouteProfile } from '../../../server/src/protocols/route-profile.ts'
import { ask, codeOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { CLIENTS } from './sdk-clients.ts'
import { ALL_PROTOCOLS, chargeOf, costOf, limited, type Protocol, settled, streamed, tokensOf } from './streams.ts'

/** Streams that hold what they need as they go on. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const SEEN: Partial<RouteProfile> = { abort: 'stops', output: 'seen', tokenBytes: 3 }
const MODELS = {
  'grow/seen': SEEN,
  'grow/bytes': { abort: 'stops', output: 'seen' },
  'grow/runs-on': { output: 'seen', tokenBytes: 3 },
  'grow/hidden': { abort: 'stops' },
} satisfies Record<string, Partial<RouteProfile>>

for (const [id, profile] of Object.entries(MODELS)) {
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  for (const protocol of ALL_PROTOCOLS)
    await saveRoute(
      { pool, ids },
      { model: id, slot: CONVERSATION_SLOTS[protocol], protocol, upstreamModel: 'sandbox/text', profile },
    )
}

const ASKED = 32_000
const FULL = { 'x-farebox-hold': 'full' }

type More = {
  readonly model?: keyof typeof MODELS
  readonly answer?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly words?: string
}

function chat(secret: string, protocol: Protocol, more: More = {}): Promise<Told> {
  const { model = 'grow/seen', answer = 200, headers = {}, words = '' } = more
  const { path, body } = streamed(protocol, model, `sandbox:output-tokens=${answer} ${words}`, limited(protocol, ASKED))
  return ask(url, secret, path, { body, headers })
}

/** What is held for so much output of the same question. */
async function heldFor(output: number): Promise<bigint> {
  const { secret } = await makeCustomer(pool)
  const { path, body } = streamed('openai', 'grow/seen', 'sandbox:output-tokens=200', limited('openai', output))
  const { json } = await ask(url, secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
  return usd(Object(json.max).usd)
}

const FIRST = await heldFor(1_024)
const ALL = await heldFor(ASKED)

describe('a stream whose hold grows', () => {
  for (const protocol of ALL_PROTOCOLS) {
    it(`${protocol} holds a first slice, and no more where that is enough`, async () => {
      const { secret } = await makeCustomer(pool, { money: 2n * FIRST })
      const told = await chat(secret, protocol)
      assert.equal(told.status, 200, told.text)
      assert.equal(told.headers.get('x-farebox-hold'), 'growing')
      const { held, amount, overrun, tokens } = await chargeOf(pool, told.id)
      assert.deepEqual([tokens.output, overrun, amount], [200, 0n, costOf(tokens)])
      assert.ok(held < 2n * FIRST && held > 1_024n * 2_000n, String(held))
    })

    it(`${protocol} holds more as it goes on, and no less than it comes to`, async () => {
      const { secret, accountId } = await makeCustomer(pool)
      const told = await chat(secret, protocol, { answer: 6_000 })
      const { held, amount, overrun, tokens } = await chargeOf(pool, told.id)
      assert.deepEqual([tokens.output, overrun, amount], [6_000, 0n, costOf(tokens)])
      assert.ok(held >= amount && held < ALL / 2n, String(held))
      await settled(pool, accountId)
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    })
  }

  it('gets a frame through that is larger than its slice', async () => {
    const { secret } = await makeCustomer(pool)
    for (const model of ['grow/seen', 'grow/bytes'] as const) {
      const told = await chat(secret, 'anthropic', { model, answer: 9_000, words: 'sandbox:delta-bytes=9000' })
      const { tokens, overrun } = await chargeOf(pool, told.id)
      assert.deepEqual([endedByIn(told.text), tokens.output, overrun], [undefined, 9_000, 0n])
    }
  })

  it('trap: worst-case reservations starve callers who have money: a burst that asks for 32,000 tokens and uses 200', async () => {
    const money = 12n * FIRST
    assert.ok(money < ALL)
    const { secret, accountId } = await makeCustomer(pool, { money })
    const full = await chat(secret, 'openai', { headers: FULL })
    assert.deepEqual([full.status, codeOf(full)], [402, 'insufficient_balance'])
    const burst = await Promise.all(Array.from({ length: 10 }, () => chat(secret, 'openai')))
    assert.deepEqual(
      burst.map(({ status }) => status),
      burst.map(() => 200),
    )
    await settled(pool, accountId)
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  })

  it('holds all from the start where the request or its key says so, or its provider does not stop or hides what it makes', async () => {
    const heldBy = async (key: Partial<NewKey>, more: More) => {
      const { secret } = await makeCustomer(pool, { key })
      const told = await chat(secret, 'openai', more)
      assert.equal(told.status, 200, told.text)
      const { held } = await chargeOf(pool, told.id)
      const said = told.headers.get('x-farebox-hold')
      return held > ALL / 2n ? (said ?? 'full') : said
    }
    const growing = { 'x-farebox-hold': 'growing' }
    const asFull = { holding: 'full' as const }
    assert.equal(await heldBy({}, {}), 'growing')
    assert.equal(await heldBy({}, { headers: FULL }), 'full')
    assert.equal(await heldBy(asFull, {}), 'full')
    assert.equal(await heldBy(asFull, { headers: growing }), 'growing')
    assert.equal(await heldBy({}, { headers: { 'x-farebox-fit': 'shrink' } }), 'full')
    assert.equal(await heldBy({}, { model: 'grow/runs-on', headers: growing }), 'full')
    assert.equal(await heldBy({}, { model: 'grow/hidden', headers: growing }), 'full')
  })

  it('refuses a word that is neither', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await chat(secret, 'openai', { headers: { 'x-farebox-hold': 'some' } })
    assert.deepEqual([told.status, codeOf(told)], [400, 'invalid_request'])
  })

  it('is bound by its cap for all that it can come to', async () => {
    const { secret } = await makeCustomer(pool)
    const headers = { 'x-farebox-max-cost-usd': formatUsd(nanos(2n * FIRST)) }
    const told = await chat(secret, 'openai', { headers })
    assert.deepEqual([told.status, codeOf(told)], [402, 'cost_cap_exceeded'])
  })

  it('is admitted by a token limit that it would exceed alone, and gives back what it did not use', async () => {
    const { secret } = await makeCustomer(pool, { key: { rates: { tokensPerMinute: 4_000 } } })
    const refused = await chat(secret, 'openai', { headers: FULL })
    assert.deepEqual([refused.status, codeOf(refused)], [429, 'quota_exceeded'])
    for (let calls = 0; calls < 4; calls += 1) assert.equal((await chat(secret, 'openai')).status, 200)
  })
})

/** How the last event says that it was cut, whatever the protocol. */
function endedByIn(text: string): unknown {
  return /"ended_by":"(\w+)"/.exec(text)?.[1]
}

/** Each waits for a while before it is cut. */
describe('a stream that meets the ceiling', { concurrency: 6 }, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`${protocol} ends at a limit, is charged what was delivered, and the next call is told what to do`, async () => {
      const money = await heldFor(3_000)
      const { secret, accountId } = await makeCustomer(pool, { money })
      const told = await chat(secret, protocol, { answer: 9_000 })
      assert.equal(told.status, 200)
      assert.equal(endedByIn(told.text), 'balance')
      const { amount, held, overrun, outcome, tokens, failed } = await chargeOf(pool, told.id)
      assert.deepEqual([outcome, overrun, failed, amount], ['posted', 0n, false, costOf(tokens)])
      assert.ok(amount <= held && held <= money, `${amount} of ${held} of ${money}`)
      assert.ok(tokens.output > 2_000 && tokens.output < 3_000, String(tokens.output))
      assert.ok(told.text.includes(formatUsd(nanos(amount))), 'the cost is told')
      await settled(pool, accountId)
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
      const next = await chat(secret, protocol, { answer: 9_000 })
      assert.deepEqual([next.status, codeOf(next)], [402, 'insufficient_balance'])
      assert.match(next.text, /first 1,024 tokens of output/)
    })

  for (const [limit, key] of [
    ['budget', async () => ({ budget: { period: 'total', amount: nanos(await heldFor(3_000)) } })],
    ['tokens_per_minute', async () => ({ rates: { tokensPerMinute: 3_000 } })],
  ] as const)
    it(`says which it was: ${limit}`, async () => {
      const { secret } = await makeCustomer(pool, { key: (await key()) as Partial<NewKey> })
      const told = await chat(secret, 'openai', { answer: 9_000 })
      assert.equal(endedByIn(told.text), limit)
      const { overrun, tokens } = await chargeOf(pool, told.id)
      assert.equal(overrun, 0n)
      assert.ok(tokens.output > 1_500 && tokens.output <= 3_000, String(tokens.output))
    })

  it('says it behind the body too', async () => {
    const { secret } = await makeCustomer(pool, { money: await heldFor(2_000) })
    const { path, body } = streamed('anthropic', 'grow/seen', 'sandbox:output-tokens=9000', limited('anthropic', ASKED))
    const trailers = await new Promise<NodeJS.Dict<string>>((resolve, reject) => {
      const sent = httpRequest(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      })
      sent.once('error', reject)
      sent.once('response', (answer) => {
        assert.equal(answer.headers.trailer, 'X-Farebox-Ended-By')
        answer.resume().once('end', () => resolve(answer.trailers))
      })
      sent.end(JSON.stringify(body))
    })
    assert.deepEqual(trailers, { 'x-farebox-ended-by': 'balance' })
  })

  it('is answered over HTTP/1.0 too, which has no trailers', async () => {
    const { secret } = await makeCustomer(pool, { money: await heldFor(2_000) })
    const { path, body } = streamed('openai', 'grow/seen', 'sandbox:output-tokens=9000', limited('openai', ASKED))
    const { hostname, port } = new URL(url)
    const text = JSON.stringify(body)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST ${path} HTTP/1.0\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    )
    let heard = ''
    for await (const piece of socket) heard += String(piece)
    assert.match(heard, /^HTTP\/1\.1 200 /)
    assert.doesNotMatch(heard, /^trailer:/im)
    assert.equal(endedByIn(heard), 'balance')
  })

  it('gets no text that is not held for, byte by byte', async () => {
    const money = await heldFor(2_500)
    const { secret } = await makeCustomer(pool, { money })
    const told = await chat(secret, 'openai', { model: 'grow/bytes', answer: 9_000 })
    const { held, tokens } = await chargeOf(pool, told.id)
    assert.equal(endedByIn(told.text), 'balance')
    assert.ok(held <= money)
    // A byte may be a token there, so that a third of what is held for has come.
    assert.ok(tokens.output > 600 && tokens.output < 900, String(tokens.output))
  })

  for (const client of CLIENTS)
    it(`ends normally for ${client.name}, with the reason that it has for a limit`, async () => {
      const { secret } = await makeCustomer(pool, { money: await heldFor(3_000) })
      const question = {
        model: 'grow/seen',
        turns: [{ by: 'user' as const, text: 'a short story sandbox:output-tokens=9000' }],
        limit: ASKED,
      }
      const said = await client.ask({ url, secret }, question, { streamed: true })
      assert.equal(said.finish, 'length')
      const tokens = tokensOf(said.text)
      assert.ok(tokens > 2_000 && tokens < 3_000, String(tokens))
      assert.ok(Math.abs(said.usage.output - tokens) <= 1, `${said.usage.output} told, ${tokens} came`)
    })
})
