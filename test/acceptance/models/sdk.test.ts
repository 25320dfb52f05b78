import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import AnthropicBefore1 from 'anthropic-sdk-0'
import {
  EMBEDDING_MODEL,
  IMAGE_MODEL,
  IMAGE_TOKENS_MODEL,
  OPENAI_ONLY_MODEL,
  SANDBOX_LIMITS,
  SANDBOX_MODELS,
  VIDEO_MODEL,
} from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { inputTokens, outputTokens } from '../../../sandbox/src/upstreams/models/tokens.ts'
import { formatUsd, nanos } from '../../../server/src/kernel/money.ts'
import { ask, type Customer, chargesOf, makeCustomer, startInstallation } from '../installation.ts'
import { connectAnthropic } from './sdk-anthropic.ts'
import type { Client, Question, Said, Schema, Tokens, Tool, Turn } from './sdk-client.ts'
import { CLIENTS, WAYS, type Way } from './sdk-clients.ts'
import { connectGemini } from './sdk-gemini.ts'
import { connectOpenai } from './sdk-openai.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

/** More at once would only wait for one another. */
const AT_ONCE = { concurrency: 4 }
const OTHERS = [OPENAI_ONLY_MODEL, EMBEDDING_MODEL, IMAGE_MODEL, IMAGE_TOKENS_MODEL, VIDEO_MODEL]
const MODELS = [...SANDBOX_MODELS, ...OTHERS].toSorted()

const user = (text: string): Turn => ({ by: 'user', text })
const askFor = (text: string, more: Partial<Question> = {}): Question => ({
  model: 'sandbox/echo',
  turns: [user(text)],
  ...more,
})

const WEATHER: Schema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
}
const LOOKUP: Tool = { name: 'weather', description: 'Tells how the weather will be.', schema: WEATHER }
/** What the sandbox says, turn by turn. */
const TWO_CALLS = [
  { name: 'weather', arguments: { city: 'Kyiv, north', days: 2 } },
  { name: 'weather', arguments: { city: 'Bonn', days: 3 } },
]
const TURNS = [{ text: 'I look it up.', calls: TWO_CALLS }, { text: 'In the end: {result}' }]
const SCRIPT = Buffer.from(JSON.stringify(TURNS)).toString('base64url')
/** A single pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const CHECKSUM = /^(.*) sha256:([0-9a-f]{64})$/s

type Scenario = {
  readonly name: string
  /** All others where it is not said. */
  readonly only?: readonly Client['protocol'][]
  readonly question: Question
  /** What to ask after the answer, where that is not the end. */
  readonly next?: (said: Said, question: Question) => Question
  readonly check: (said: Said) => void
}

/** What callers do with models, whatever library they use. */
const SCENARIOS: readonly Scenario[] = [
  {
    name: 'a text',
    question: askFor('Grüße, 世界 👋'),
    check({ text, finish, usage }) {
      assert.deepEqual([text, finish], ['Echo: Grüße, 世界 👋', 'stop'])
      assert.deepEqual(usage, { ...NOTHING, input: inputTokens(['Grüße, 世界 👋']), output: outputTokens(text) })
    },
  },
  {
    name: 'a conversation of many turns',
    question: askFor('', { turns: [user('one'), { by: 'assistant', text: 'two' }, user('three')] }),
    check({ text, finish }) {
      assert.deepEqual([text, finish], ['Echo: three (3 messages)', 'stop'])
    },
  },
  {
    name: 'a tool: its call, its result, and the answer',
    question: askFor('How will the weather be?', { model: 'sandbox/text', tool: LOOKUP }),
    next({ calls, finish, text }, question) {
      const [call] = calls
      assert.ok(call !== undefined && calls.length === 1)
      assert.deepEqual([call.name, finish, text], ['weather', 'tool', ''])
      assertFits(call.input, WEATHER)
      return { ...question, turns: [...question.turns, { by: 'tool', call, result: 'sunny until noon' }] }
    },
    check({ text, finish, calls }) {
      assert.match(text, /sunny until noon/)
      assert.deepEqual([finish, calls], ['stop', []])
    },
  },
  {
    name: 'a turn of an agent: a text, two calls at once, both results, and the answer',
    question: askFor(`How will the weather be? sandbox:script=${SCRIPT}`, { tool: LOOKUP }),
    next({ calls, finish, text }, question) {
      assert.deepEqual([text, finish], ['I look it up.', 'tool'])
      assert.deepEqual(
        calls.map(({ name, input }) => ({ name, arguments: input })),
        TWO_CALLS,
      )
      const results = calls.map((call): Turn => ({ by: 'tool', call, result: `sunny in ${Object(call.input).city}` }))
      return { ...question, turns: [...question.turns, ...results] }
    },
    check({ text, finish, calls }) {
      assert.match(text, /^In the end: .*sunny in Bonn/)
      assert.deepEqual([finish, calls], ['stop', []])
    },
  },
  {
    name: 'an answer by a schema',
    question: askFor('How will the weather be?', { json: WEATHER }),
    check: ({ text }) => assertFits(JSON.parse(text), WEATHER),
  },
  {
    name: 'an answer that is some JSON object',
    only: ['openai', 'openai_responses', 'gemini'],
    question: askFor('How will the weather be? Say it in JSON.', { json: 'any object' }),
    check: ({ text }) => assert.deepEqual(Object.keys(JSON.parse(text)), ['answer']),
  },
  {
    name: 'a picture',
    question: askFor('', { turns: [{ by: 'user', text: 'What is it?', png: PNG }] }),
    check({ text, usage }) {
      assert.equal(text, 'Echo: What is it?')
      assert.equal(usage.input, inputTokens(['What is it?'], 1))
    },
  },
  {
    name: 'an answer that its limit cuts',
    question: askFor('Tell all.', { model: 'sandbox/long', limit: 100 }),
    check: ({ finish, usage }) => assert.deepEqual([finish, usage.output], ['length', 100]),
  },
  {
    name: 'what caches had',
    only: ['openai', 'openai_responses', 'anthropic'],
    question: askFor(`${'x'.repeat(300)} sandbox:cache-read=30 sandbox:cache-write=20`),
    check: ({ usage }) => assert.deepEqual([usage.cacheRead, usage.cacheWrite], [30, 20]),
  },
  {
    name: 'what a cache had, in the protocol that does not say what went into it',
    only: ['gemini'],
    question: askFor(`${'x'.repeat(300)} sandbox:cache-read=30`),
    check: ({ usage }) => assert.equal(usage.cacheRead, 30),
  },
  {
    name: 'a long answer, whole and intact',
    question: askFor('sandbox:output-tokens=2000 sandbox:delta-ms=0', { model: 'sandbox/checksum', limit: 2_000 }),
    check({ text, usage }) {
      const [, words = '', sum] = CHECKSUM.exec(text) ?? []
      assert.equal(createHash('sha256').update(words).digest('hex'), sum)
      assert.equal(usage.output, 2_000)
    },
  },
]

const NOTHING: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

function assertFits(value: unknown, { properties }: Schema): void {
  assert.deepEqual(Object.keys(Object(value)).toSorted(), Object.keys(properties).toSorted())
  for (const [name, { type }] of Object.entries(properties)) {
    const member: unknown = Object(value)[name]
    assert.equal(typeof member, type === 'integer' ? 'number' : type)
  }
}

/** By the prices of the sandbox's models, in nano-USD a token. */
function priceOf({ input, output, cacheRead, cacheWrite }: Tokens): bigint {
  return BigInt(input * 500 + output * 2_000 + cacheRead * 50 + cacheWrite * 625)
}

/** That what the library shows, the ledger, the record and the upstream agree. */
async function assertCharged(
  { secret, accountId }: Customer,
  { client, streamed }: Pick<Way, 'client' | 'streamed'>,
  answers: readonly Said[],
): Promise<void> {
  const charges = await chargesOf(pool, accountId)
  assert.equal(charges.size, answers.length)
  const asked = await sandbox.journal()
  for (const { usage, costUsd, requestId = '' } of answers) {
    const cost = priceOf(usage)
    assert.ok(cost > 0n)
    assert.equal(charges.get(requestId), cost)
    const exact = formatUsd(nanos(cost))
    assert.equal(costUsd, client.hidesCostInStreams && streamed ? undefined : exact)
    const { json } = await ask(url, secret, `/v1/requests/${requestId}`)
    assert.equal(Object(json.cost).usd, exact)
    const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = Object(json.tokens)
    assert.deepEqual({ input, output, cacheRead, cacheWrite }, usage)
    const entry = asked.find(({ request_id }) => request_id === requestId)
    assert.equal(entry?.input_tokens, usage.input + usage.cacheRead + usage.cacheWrite)
    assert.equal(entry?.tokens, usage.output)
  }
}

for (const { name, only, question, next, check } of SCENARIOS) {
  describe(`MODEL-1 ${name}`, AT_ONCE, () => {
    for (const { client, streamed, title } of WAYS) {
      if (only?.includes(client.protocol) === false) continue
      it(`${title}: and the ledger has what the library shows`, async () => {
        const customer = await makeCustomer(pool)
        const to = { url, secret: customer.secret }
        const answers = [await client.ask(to, question, { streamed })]
        if (next !== undefined)
          for (const said of [...answers]) answers.push(await client.ask(to, next(said, question), { streamed }))
        for (const said of answers.slice(-1)) check(said)
        await assertCharged(customer, { client, streamed }, answers)
      })
    }
  })
}

describe('MODEL-1 MODEL-3 a call that is given up in the middle of its stream', AT_ONCE, () => {
  const TOKENS = 120
  // It takes six seconds, so that a busy client too is there to leave before the end.
  const question = askFor(`sandbox:output-tokens=${TOKENS} sandbox:delta-ms=50`, { model: 'sandbox/text' })

  for (const client of CLIENTS) {
    it(`${client.name} stops at once, and what the upstream reported is charged when that has ended`, async () => {
      const { secret, accountId } = await makeCustomer(pool)
      const leaving = new AbortController()
      let text = ''
      const asking = client.ask({ url, secret }, question, {
        streamed: true,
        signal: leaving.signal,
        onText(piece) {
          text += piece
          if (text.length > 60) leaving.abort()
        },
      })
      const finish = await asking.then(
        (said) => said.finish,
        () => undefined,
      )
      assert.ok(leaving.signal.aborted)
      assert.equal(finish, undefined)
      const bytes = Buffer.byteLength(text)
      assert.ok(bytes < 3 * TOKENS, `${bytes} bytes came`)
      const charges = () => chargesOf(pool, accountId)
      await until(async () => (await charges()).size > 0, PATIENCE_MS, 'a charge')
      const [[id, charge] = []] = [...(await charges())]
      const entry = (await sandbox.journal()).find(({ request_id }) => request_id === id)
      assert.deepEqual([entry?.outcome, entry?.tokens], ['answered', TOKENS])
      assert.equal(charge, priceOf({ ...NOTHING, input: entry?.input_tokens ?? 0, output: TOKENS }))
    })
  }
})

describe('MODEL-4 MODEL-1 what models there are', AT_ONCE, () => {
  it('openai lists them, and finds one by its name with a slash', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const { models } = connectOpenai({ url, secret })
    const listed: string[] = []
    for await (const { id, object, owned_by } of models.list()) {
      assert.equal(object, 'model')
      assert.match(owned_by, /^(sandbox|tests)$/)
      listed.push(id)
    }
    assert.deepEqual(listed, MODELS)
    const one = await models.retrieve('sandbox/echo')
    assert.deepEqual([one.id, one.object], ['sandbox/echo', 'model'])
    assert.equal((await chargesOf(pool, accountId)).size, 0)
  })

  for (const [name, Sdk] of [
    ['anthropic 1.x', Anthropic],
    ['anthropic 0.x', AnthropicBefore1],
  ] as const) {
    it(`${name} lists them page by page, forwards and backwards, and finds one by its name with a slash`, async () => {
      const { secret, accountId } = await makeCustomer(pool)
      const { models } = connectAnthropic(Sdk, { url, secret })
      const forwards: string[] = []
      for await (const { id, type } of models.list({ limit: 5 })) {
        assert.equal(type, 'model')
        forwards.push(id)
      }
      assert.deepEqual(forwards, MODELS)
      const backwards: string[] = []
      const last = MODELS.at(-1) ?? ''
      for await (const { id } of models.list({ limit: 5, before_id: last })) backwards.push(id)
      assert.deepEqual(backwards.toSorted(), MODELS.slice(0, -1))
      const one = await models.retrieve('sandbox/echo')
      assert.deepEqual([one.id, one.type, one.display_name], ['sandbox/echo', 'model', 'sandbox/echo'])
      assert.equal((await chargesOf(pool, accountId)).size, 0)
    })

    it(`${name} counts tokens, for nothing`, async () => {
      const { secret, accountId } = await makeCustomer(pool)
      const { messages } = connectAnthropic(Sdk, { url, secret })
      const content = 'How many tokens has this?'
      const asked = messages.countTokens({ model: 'sandbox/echo', messages: [{ role: 'user', content }] })
      const { data, response } = await asked.withResponse()
      assert.deepEqual(data, { input_tokens: inputTokens([content]) })
      assert.equal(response.headers.get('x-farebox-cost-usd'), '0.000000000')
      for (const amount of (await chargesOf(pool, accountId)).values()) assert.equal(amount, 0n)
    })
  }

  it('gemini lists them page by page, and finds one by its name with a slash', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const { models } = connectGemini({ url, secret })
    const listed: string[] = []
    const others: string[] = []
    for await (const { name = '', supportedActions = [] } of await models.list({ config: { pageSize: 5 } })) {
      listed.push(name.replace(/^models\//, ''))
      if (!supportedActions.includes('generateContent')) others.push(...listed.slice(-1))
    }
    assert.deepEqual(listed, MODELS)
    assert.deepEqual(others, OTHERS.toSorted())
    for (const model of ['sandbox/echo', 'models/sandbox/echo']) {
      const { name, displayName, outputTokenLimit } = await models.get({ model })
      assert.deepEqual(
        [name, displayName, outputTokenLimit],
        ['models/sandbox/echo', 'sandbox/echo', SANDBOX_LIMITS.outputMost],
      )
    }
    assert.equal((await chargesOf(pool, accountId)).size, 0)
  })

  it('gemini counts tokens, for nothing', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const contents = 'How many tokens has this?'
    const counted = await connectGemini({ url, secret }).models.countTokens({ model: 'sandbox/echo', contents })
    assert.equal(counted.totalTokens, inputTokens([contents]))
    assert.equal(counted.sdkHttpResponse?.headers?.['x-farebox-cost-usd'], '0.000000000')
    for (const amount of (await chargesOf(pool, accountId)).values()) assert.equal(amount, 0n)
  })
})
