import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { generateText, type ModelMessage } from 'ai'
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { formatUsd, nanos } from '../../../server/src/kernel/money.ts'
import { ask, type Customer, makeCustomer, startInstallation } from '../installation.ts'
import { aiModel } from './sdk-ai.ts'
import { connectOpenai } from './sdk-openai.ts'
import { chargeOf, costOf, evidenceOf, hear, question, streamed, tokensIn } from './streams.ts'

/** What is special about Responses; what it has in common with other protocols is tested with those. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const MODEL = 'sandbox/text'
const PATH = '/v1/responses'
const connect = ({ secret }: Customer) => connectOpenai({ url, secret })
const entryOf = async (id: string) =>
  (await sandbox.journal()).find(({ request_id }) => request_id === id) ?? assert.fail(`nobody was asked for ${id}`)

/** That a call cost what its upstream reported, and what that came to. */
async function chargedAsReported(id: string): Promise<string> {
  const { usage } = await entryOf(id)
  const charge = await chargeOf(pool, id)
  assert.deepEqual([charge.outcome, charge.amount, charge.tokens], ['posted', costOf(tokensIn(usage)), tokensIn(usage)])
  return formatUsd(nanos(charge.amount))
}

describe('MODEL-1 the official library over responses', { concurrency: 4 }, () => {
  it('parses an answer by a schema', async () => {
    const customer = await makeCustomer(pool)
    const format = zodTextFormat(z.object({ city: z.string(), days: z.int() }), 'weather')
    const asked = { model: MODEL, input: 'How will the weather be?', text: { format } }
    const { output_parsed, _request_id: id } = await connect(customer).responses.parse(asked)
    assert.deepEqual([typeof output_parsed?.city, typeof output_parsed?.days], ['string', 'number'])
    await chargedAsReported(id ?? '')
  })

  it('puts a stream together, and its usage tells the cost', async () => {
    const customer = await makeCustomer(pool)
    const stream = connect(customer).responses.stream({ model: MODEL, input: 'a short story' })
    let text = ''
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta
    })
    const { output_text, usage, status } = await stream.finalResponse()
    assert.deepEqual([output_text, status], [text, 'completed'])
    const { data } = (await ask(url, customer.secret, '/v1/requests')).json
    const [{ id }] = data as [{ id: string }]
    assert.equal(Object(usage).cost_usd, await chargedAsReported(id))
  })

  it('goes on with what it was given, reasoning and calls too, and nothing is kept in between', async () => {
    const customer = await makeCustomer(pool)
    const { responses } = connect(customer)
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'How will the weather be?' }]
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const shared: Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'input'> = {
      model: MODEL,
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      tools: [{ type: 'function', name: 'weather', parameters, strict: false }],
    }
    const first = await responses.create({ ...shared, input })
    const called = first.output.find((item) => item.type === 'function_call') ?? assert.fail('nothing was called')
    assert.ok(first.output.some((item) => item.type === 'reasoning' && item.encrypted_content))
    for (const item of first.output) if (item.type === 'reasoning' || item.type === 'function_call') input.push(item)
    input.push({ type: 'function_call_output', call_id: called.call_id, output: 'sunny' })
    const second = await responses.create({ ...shared, input })
    assert.match(second.output_text, /sunny/)
    for (const { _request_id: id } of [first, second]) await chargedAsReported(id ?? '')
  })
})

describe('MODEL-1 the AI SDK over responses', () => {
  /** Two turns, the second with what the library made of the first answer. */
  async function talk(secret: string, store?: boolean): Promise<string> {
    const shared = {
      model: aiModel('openai_responses', { url, secret }, 'sandbox/echo'),
      maxRetries: 0,
      ...(store !== undefined && { providerOptions: { openai: { store } } }),
    }
    const messages: ModelMessage[] = [{ role: 'user', content: 'one' }]
    const first = await generateText({ ...shared, messages })
    messages.push(...first.response.messages, { role: 'user', content: 'two' })
    return (await generateText({ ...shared, messages })).text
  }

  it('goes on with an answer where it is told that nothing is stored, and else is told to say so', async () => {
    const { secret } = await makeCustomer(pool)
    assert.equal(await talk(secret, false), 'Echo: two (3 messages)')
    await assert.rejects(
      talk(secret),
      /"input\[1\]\.type" may not be "item_reference".*providerOptions\.openai\.store = false/,
    )
    await assert.rejects(talk(secret, true), /"store" is not supported: nothing is stored here/)
  })
})

describe('trap: the bound counts the bytes of a request, and forgets what it refers to', () => {
  it('trap: earlier answers, conversations, prompts and items that are stored are refused before anybody is asked', async () => {
    const customer = await makeCustomer(pool)
    const { responses } = connect(customer)
    const before = (await sandbox.journal()).length
    const stored: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>[] = [
      { previous_response_id: 'resp_1' },
      { conversation: 'conv_1' },
      { prompt: { id: 'pmpt_1' } },
      { input: [{ id: 'msg_1' }] },
      { input: [{ type: 'item_reference', id: 'msg_1' }] },
    ]
    for (const members of stored)
      await assert.rejects(responses.create({ model: MODEL, input: 'Hello', ...members }), OpenAI.BadRequestError)
    assert.equal((await sandbox.journal()).length, before)
  })
})

describe('what an upstream is asked for a response', () => {
  it('is to keep nothing, within the model’s cap, whether or not that is said', async () => {
    const { secret } = await makeCustomer(pool)
    for (const store of [undefined, null, false]) {
      const { status, json } = await ask(url, secret, PATH, { body: { model: MODEL, input: 'Hello', store } })
      // The vendor repeats what it was asked.
      assert.deepEqual([status, json.store, json.max_output_tokens], [200, false, 4_096])
    }
    const { json } = await ask(url, secret, PATH, { body: { model: MODEL, input: 'Hello', max_output_tokens: 30 } })
    assert.equal(json.max_output_tokens, 30)
  })
})

/** In the shape that Codex sends; no recording. */
const CODEX = {
  instructions: 'You are Codex. '.repeat(200),
  input: [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: '<permissions>' }] },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'List the files.' }] },
  ],
  tools: [
    { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters: { type: 'object' } },
    { type: 'namespace', name: 'mcp__docs', description: 'Reads.', tools: [{ type: 'function', name: 'read' }] },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'a-session',
  client_metadata: { 'x-codex-installation-id': 'a' },
}

describe('what Codex asks for', () => {
  it('is streamed to its call of a tool, and charged as reported', async () => {
    const { secret } = await makeCustomer(pool)
    const { id, end, events } = await hear(url, secret, { path: PATH, body: { model: MODEL, ...CODEX } })
    assert.equal(end, 'clean')
    const { type, response } = Object(events.at(-1))
    assert.deepEqual([type, response.usage.cost_usd], ['response.completed', await chargedAsReported(id)])
    assert.deepEqual(
      response.output.map((item: { type: string }) => item.type),
      ['reasoning', 'function_call'],
    )
  })

  it('is counted as what it was given where nothing is reported, and not as what the answer repeats of it', async () => {
    const { secret } = await makeCustomer(pool)
    for (const asks of [streamed, question]) {
      const { tools, stream, ...rest } = CODEX
      const { id } = await hear(url, secret, asks('openai_responses', 'sandbox/no-usage', '', rest))
      const { tokens } = await entryOf(id)
      const charge = await chargeOf(pool, id)
      // The hidden part of the reasoning is nowhere to be counted.
      assert.ok(
        charge.tokens.output > 0 && charge.tokens.output <= (tokens ?? 0),
        `${charge.tokens.output} of ${tokens}`,
      )
      assert.equal(Object((await evidenceOf(url, secret, id)).evidence).usage_source, 'counted')
    }
  })

  it('is refused with what to set where its search is on', async () => {
    const { secret } = await makeCustomer(pool)
    const body = { model: MODEL, ...CODEX, tools: [...CODEX.tools, { type: 'web_search' }] }
    const told = await ask(url, secret, PATH, { body })
    assert.equal(told.status, 400)
    assert.match(told.text, /web_search = \\"disabled\\"/)
  })
})
