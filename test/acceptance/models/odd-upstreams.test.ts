import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { usd } from '../../../server/src/kernel/money.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { chunk, EVENTS_HEAD, LAST_CHUNK } from '../../upstreams/raw-stream.ts'
import { okay, type Received, startUpstream } from '../../upstreams/raw-upstream.ts'
import { ask, ids, makeCustomer, startInstallation } from '../installation.ts'
import {
  ALL_PROTOCOLS,
  type Charge,
  chargeOf,
  chargesOf,
  costOf,
  evidenceOf,
  hear,
  leaveOnce,
  limited,
  type Protocol,
  question,
  settled,
  streamed,
} from './streams.ts'

/** What is charged when an upstream does not do what its protocol says, by upstreams that write their own bytes. */
const MODEL = 'odd/plain'
/** Its upstreams count reasoning apart. */
const APART = 'odd/apart'
/** Its upstreams stop when they are left. */
const STOPS = 'odd/stops'
const MONEY = 1_000_000_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, masterKey } = installation
after(installation.stop)

let answer: (request: Received) => void = () => {}
const upstream = await startUpstream((request) => answer(request))
const seal = createSeal({ current: masterKey })
await saveUpstream(
  { pool, ids, seal },
  { slot: 'odd', mode: 'test', kind: 'native', baseUrl: upstream.url, credential: new Secret('key') },
)
for (const [id, profile] of [
  [MODEL, {}],
  [APART, { reasoning: 'apart' }],
  [STOPS, { abort: 'stops' }],
] as const) {
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS, outputMost: 10_000 })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  for (const protocol of ALL_PROTOCOLS) await saveRoute({ pool, ids }, { model: id, slot: 'odd', protocol, profile })
}

const json = (value: unknown) => okay(JSON.stringify(value), 'content-type: application/json')
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

const respond = (...bytes: readonly string[]) => {
  answer = ({ socket }) => void socket.write(bytes.join(''))
}

/** A frame with text, in each protocol. */
const said: Readonly<Record<Protocol, (text: string) => string>> = {
  openai: (content) => frame({ choices: [{ index: 0, delta: { content } }] }),
  openai_responses: (delta) => frame({ type: 'response.output_text.delta', delta }),
  anthropic: (text) => frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
  gemini: (text) => frame({ candidates: [{ index: 0, content: { parts: [{ text }] } }] }),
}

const chat = { id: 'x', choices: [{ index: 0, message: { content: 'Seven.' }, finish_reason: 'stop' }] }
const chatFrames = (usage: unknown) =>
  [
    said.openai('Seven.'),
    frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    frame({ choices: [], usage }),
    'data: [DONE]\n\n',
  ]
    .map(chunk)
    .join('')

const holdOf = async (secret: string, { path, body }: ReturnType<typeof question>): Promise<bigint> =>
  usd(Object((await ask(url, secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })).json.max).usd)

const tokens = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0 })
const isCharged = (charge: Charge, of: Charge['tokens']) =>
  assert.deepEqual([charge.outcome, charge.tokens, charge.amount, charge.overrun], ['posted', of, costOf(of), 0n])

describe('an upstream that counts reasoning outside of the completion', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 1_014 }

  for (const model of [MODEL, APART])
    it(`is paid for it where the total alone says so, whole and streamed: ${model}`, async () => {
      const { secret } = await makeCustomer(pool, { money: MONEY })
      respond(json({ ...chat, usage }))
      const whole = await hear(url, secret, question('openai', model, 'how many?'))
      isCharged(await chargeOf(pool, whole.id), tokens(10, 1_004))
      respond(EVENTS_HEAD, chatFrames(usage), LAST_CHUNK)
      const stream = await hear(url, secret, streamed('openai', model, 'how many?'))
      assert.equal(stream.end, 'clean')
      isCharged(await chargeOf(pool, stream.id), tokens(10, 1_004))
    })

  it('is paid for what its details alone say, where the route declares that they are apart', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    const details = { prompt_tokens: 10, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 300 } }
    respond(json({ ...chat, usage: details }))
    for (const [model, output] of [
      [APART, 304],
      [MODEL, 4],
    ] as const) {
      const { id } = await hear(url, secret, question('openai', model))
      isCharged(await chargeOf(pool, id), tokens(10, output))
    }
  })

  it('has its reasoning in the hold, which its limit does not bound', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    const long = { prompt_tokens: 10, completion_tokens: 50, total_tokens: 10_060 }
    respond(json({ ...chat, usage: long }))
    for (const [model, most, overrun] of [
      [APART, 10_050n, 0n],
      [MODEL, 50n, 10_000n],
    ] as const) {
      const asked = question('openai', model, '', limited('openai', 50))
      const { id } = await hear(url, secret, asked)
      const charge = await chargeOf(pool, id)
      const held = await holdOf(secret, asked)
      assert.equal(charge.held, held)
      assert.ok(held >= most * 2_000n && held < most * 2_000n + 1_000_000n, `${held}`)
      assert.equal(charge.amount + charge.overrun, costOf(tokens(10, 10_050)))
      assert.equal(charge.overrun > 0n, overrun > 0n)
    }
  })

  it('is paid for what the total has beyond all that is named, in the other protocol that has one', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 4, thoughtsTokenCount: 6, totalTokenCount: 120 }
    respond(
      json({
        candidates: [{ index: 0, content: { parts: [{ text: 'Seven.' }] }, finishReason: 'STOP' }],
        usageMetadata,
      }),
    )
    const { id } = await hear(url, secret, question('gemini', MODEL))
    isCharged(await chargeOf(pool, id), tokens(10, 110))
  })
})

describe('an upstream that ignores the output limit', () => {
  const WORDS = 'and so on and so forth, without any end that anybody could see, '.repeat(20)

  for (const protocol of ALL_PROTOCOLS)
    it(`has its stream cut, and the caller pays what was counted, the hold at the most: ${protocol}`, async () => {
      const { secret } = await makeCustomer(pool, { money: MONEY })
      let isClosed = false
      answer = ({ socket }) => {
        socket.write(EVENTS_HEAD)
        // As long as somebody reads it.
        const goOn = () => socket.writable && socket.write(chunk(said[protocol](WORDS)), () => setTimeout(goOn, 2))
        socket.once('close', () => {
          isClosed = true
        })
        goOn()
      }
      const heard = await hear(url, secret, streamed(protocol, MODEL, 'tell me', limited(protocol, 100)))
      assert.deepEqual([heard.status, heard.end], [200, 'broken'])
      assert.ok(typeof Object(Object(heard.events.at(-1)).error).message === 'string')
      const charge = await chargeOf(pool, heard.id)
      assert.deepEqual([charge.outcome, charge.amount], ['posted', charge.held])
      assert.ok(charge.overrun > 0n && charge.failed)
      assert.ok(Buffer.byteLength(heard.text) < 64 * 1_024, `${heard.text.length}`)
      await until(() => isClosed, 5_000, 'the upstream is given up')
    })

  it('costs the hold where its answer comes whole', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    respond(json({ ...chat, usage: { prompt_tokens: 10, completion_tokens: 5_000, total_tokens: 5_010 } }))
    const { id } = await hear(url, secret, question('openai', MODEL, '', limited('openai', 100)))
    const charge = await chargeOf(pool, id)
    assert.equal(charge.amount, charge.held)
    assert.equal(charge.amount + charge.overrun, costOf(tokens(10, 5_000)))
  })
})

describe('an upstream whose answer can not be read', () => {
  const PAGE = '<html><body>All that you have asked for, in a form that nobody has asked for.</body></html>'
  const counted = (text: string) => Math.ceil(Buffer.byteLength(text) / 3)

  for (const protocol of ALL_PROTOCOLS)
    for (const [what, body] of [
      ['no JSON', PAGE],
      ['JSON of another form', JSON.stringify({ answer: PAGE })],
    ] as const)
      it(`is paid for as counted, because it is handed over: ${protocol}, ${what}`, async () => {
        const { secret } = await makeCustomer(pool, { money: MONEY })
        respond(okay(body, 'content-type: text/html'))
        const { path, body: asked } = question(protocol, MODEL, 'word '.repeat(30))
        const told = await ask(url, secret, path, { body: asked })
        assert.deepEqual([told.status, told.text], [200, body])
        const charge = await chargeOf(pool, told.id)
        assert.equal(charge.tokens.output, counted(body))
        assert.ok(charge.tokens.input > 40 && charge.tokens.input < 70, `${charge.tokens.input}`)
        isCharged(charge, charge.tokens)
        const { evidence } = await evidenceOf(url, secret, told.id)
        assert.equal(Object(evidence).usage_source, 'counted')
      })

  for (const protocol of ALL_PROTOCOLS) {
    const WORDS = 'words in a member that the protocol does not have '
    const strange = chunk(frame({ choices: [{ index: 0, text: WORDS }] }))

    it(`is paid for as counted where it is a stream: ${protocol}`, async () => {
      const { secret } = await makeCustomer(pool, { money: MONEY })
      respond(EVENTS_HEAD, strange.repeat(30), LAST_CHUNK)
      const { id } = await hear(url, secret, streamed(protocol, MODEL, 'word '.repeat(30)))
      const charge = await chargeOf(pool, id)
      assert.equal(charge.tokens.output, counted(WORDS.repeat(30)))
      isCharged(charge, charge.tokens)
    })

    it(`is cut beyond its limit where it is a stream, and costs the output that was held for: ${protocol}`, async () => {
      const { secret } = await makeCustomer(pool, { money: MONEY })
      respond(EVENTS_HEAD, strange.repeat(3_000))
      const { id, end, events } = await hear(url, secret, streamed(protocol, MODEL, '', limited(protocol, 100)))
      assert.equal(end, 'broken')
      assert.match(Object(Object(events.at(-1)).error).message, /exceeded the output limit.*The limit is 100 tokens/)
      const charge = await chargeOf(pool, id)
      assert.equal(charge.amount, charge.held)
    })
  }

  it('costs as much output as was held for where it is packed, so that nothing can be counted', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    respond(okay(PAGE, 'content-encoding: br'))
    const { id } = await hear(url, secret, question('openai', MODEL, '', limited('openai', 200)))
    assert.equal((await chargeOf(pool, id)).tokens.output, 200)
  })

  it('costs nothing where it is empty, or says that it is an error', async () => {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    const { path, body } = question('openai', MODEL)
    for (const bytes of [okay(''), json({ error: { message: 'not today' } })]) {
      respond(bytes)
      const { id, costUsd } = await ask(url, secret, path, { body })
      const charge = await chargeOf(pool, id)
      assert.deepEqual([costUsd, charge.outcome, charge.overrun], ['0.000000000', 'voided', charge.held])
    }
  })
})

describe('a caller who leaves before the first word', () => {
  const START = frame({ type: 'message_start', message: { usage: { input_tokens: 77, cache_read_input_tokens: 20 } } })

  /** Asks, leaves once the upstream has been asked, and gives the charge. */
  async function leave(model: string, protocol: Protocol): Promise<Charge> {
    const { secret, accountId } = await makeCustomer(pool, { money: MONEY })
    const before = upstream.received.length
    await leaveOnce(url, secret, streamed(protocol, model, 'word '.repeat(30)), async () => {
      // The head and what follows it need a moment more than the request.
      return upstream.received.length > before
    })
    await settled(pool, accountId)
    const [charge] = (await chargesOf(pool, { accountId })).values()
    assert.ok(charge !== undefined)
    return charge
  }

  it('pays the input that the upstream reported, and is not heard out where that stops its meter', async () => {
    respond(EVENTS_HEAD, chunk(START))
    const { secret } = await makeCustomer(pool, { money: MONEY })
    // Who leaves before that has arrived pays the input as counted.
    const { id } = await hear(url, secret, streamed('anthropic', STOPS, 'word '.repeat(30)), { afterSilenceMs: 500 })
    isCharged(await chargeOf(pool, id), { ...tokens(77, 0), cacheRead: 20 })
  })

  it('pays the input as counted where the upstream reported none', async () => {
    respond(EVENTS_HEAD, chunk(': wait\n\n'))
    const { tokens: paid, ...charge } = await leave(STOPS, 'openai')
    assert.ok(paid.input > 40 && paid.input < 70, `${paid.input}`)
    assert.deepEqual([charge.outcome, charge.amount, paid.output], ['posted', costOf(tokens(paid.input, 0)), 0])
  })

  it('pays nothing where the upstream fails before its first word, and neither does who has stayed', async () => {
    answer = ({ socket }) => {
      socket.write(EVENTS_HEAD + chunk(START))
      setTimeout(() => socket.destroy(), 300)
    }
    const left = await leave(MODEL, 'anthropic')
    const { secret } = await makeCustomer(pool, { money: MONEY })
    const { id, end } = await hear(url, secret, streamed('anthropic', MODEL, 'word '.repeat(30)))
    assert.equal(end, 'broken')
    for (const charge of [left, await chargeOf(pool, id)]) {
      assert.deepEqual([charge.outcome, charge.amount], ['voided', 0n])
      assert.equal(charge.overrun, costOf({ ...tokens(77, 0), cacheRead: 20 }))
    }
  })
})

it('leaves a ledger that adds up', async () => {
  await settled(pool)
  assert.deepEqual(await verifyLedger(pool), [])
})
