import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import type { GenerateContentResponse } from '@google/genai'
import { streamText } from 'ai'
import AnthropicBefore1 from 'anthropic-sdk-0'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { ask, chargesOf, makeCustomer, startInstallation } from '../installation.ts'
import { aiModel } from './sdk-ai.ts'
import { anthropicBody, connectAnthropic } from './sdk-anthropic.ts'
import type { Addressee, Protocol, Question } from './sdk-client.ts'
import { CLIENTS } from './sdk-clients.ts'
import { connectGemini, geminiBody, geminiText } from './sdk-gemini.ts'
import { connectOpenai, openaiBody } from './sdk-openai.ts'
import { responsesBody } from './sdk-responses.ts'

/**
 * Calls whose settlement can't be written while the upstream answers: somebody holds the lock of their account for longer
 * than a settlement waits. All of them run at once, because each of them waits for those 10 seconds.
 */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)
const { secret, accountId } = customer
const TO: Addressee = { url, secret }
/** With the retries that libraries have by themselves. */
const AS_INSTALLED = { maxRetries: 2 }

/** Long enough that all have begun before the first has ended. */
const PROMPT = 'sandbox:output-tokens=200 sandbox:delta-ms=150'
const QUESTION: Question = { model: 'sandbox/text', turns: [{ by: 'user', text: PROMPT }] }

/** What a caller saw of a call. */
type Seen = {
  /** How much text there was. */
  readonly characters: number
  /** What said that the answer is whole: none may. */
  readonly finished: readonly unknown[]
  /** What said that it is not. */
  readonly failed: readonly unknown[]
}

type Watch = {
  readonly begun: () => void
  characters: number
  readonly finished: unknown[]
  readonly failed: unknown[]
}

/** Each way in which a library gives a stream to its caller, to the point where that one has all that there is. */
const READINGS: Readonly<Record<string, (watch: Watch) => Promise<unknown>>> = {
  async 'openai, chunk by chunk'(watch) {
    const stream = await connectOpenai(TO, AS_INSTALLED).chat.completions.create({
      ...openaiBody(QUESTION),
      stream: true,
    })
    for await (const { choices } of stream)
      for (const { delta, finish_reason } of choices) {
        note(watch, delta.content ?? '')
        if (finish_reason !== null) watch.finished.push(finish_reason)
      }
    watch.finished.push('the end of the stream')
  },
  async 'openai, with the usage'(watch) {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const stream = await connectOpenai(TO, AS_INSTALLED).chat.completions.create({
      ...openaiBody(QUESTION),
      ...options,
    })
    for await (const { choices, usage } of stream) {
      note(watch, choices[0]?.delta.content ?? '')
      if (usage) watch.finished.push(usage)
    }
    watch.finished.push('the end of the stream')
  },
  async 'openai, its final completion'(watch) {
    const stream = connectOpenai(TO, AS_INSTALLED).chat.completions.stream(openaiBody(QUESTION))
    stream.on('content', (text) => note(watch, text))
    stream.on('finalChatCompletion', (completion) => watch.finished.push(completion))
    watch.finished.push(await stream.finalChatCompletion())
  },
  async 'openai responses, event by event'(watch) {
    const { responses } = connectOpenai(TO, AS_INSTALLED)
    for await (const event of await responses.create({ ...responsesBody(QUESTION), stream: true })) {
      if (event.type === 'response.output_text.delta') note(watch, event.delta)
      if (event.type === 'response.completed' || event.type === 'response.incomplete') watch.finished.push(event)
    }
    watch.finished.push('the end of the stream')
  },
  async 'openai responses, its final response'(watch) {
    const stream = connectOpenai(TO, AS_INSTALLED).responses.stream(responsesBody(QUESTION))
    stream.on('response.output_text.delta', ({ delta }) => note(watch, delta))
    stream.on('response.completed', (event) => watch.finished.push(event))
    watch.finished.push(await stream.finalResponse())
  },
  'anthropic 1.x, event by event': (watch) => eventsOf(connectAnthropic(Anthropic, TO, AS_INSTALLED), watch),
  'anthropic 0.x, event by event': (watch) => eventsOf(connectAnthropic(AnthropicBefore1, TO, AS_INSTALLED), watch),
  'anthropic 1.x, its final message': (watch) => finalMessageOf(connectAnthropic(Anthropic, TO, AS_INSTALLED), watch),
  'anthropic 0.x, its final message': (watch) =>
    finalMessageOf(connectAnthropic(AnthropicBefore1, TO, AS_INSTALLED), watch),
  async 'gemini, chunk by chunk'(watch) {
    await chunksOf(await connectGemini(TO).models.generateContentStream(geminiBody(QUESTION)), watch)
  },
  async 'gemini, its chat'(watch) {
    const chat = connectGemini(TO).chats.create({ model: QUESTION.model })
    try {
      await chunksOf(await chat.sendMessageStream({ message: PROMPT }), watch)
    } finally {
      // A chat remembers the turns that are whole.
      watch.finished.push(...chat.getHistory())
    }
  },
  'ai over openai, part by part': (watch) => partsOf('openai', watch),
  'ai over responses, part by part': (watch) => partsOf('openai_responses', watch),
  'ai over anthropic, part by part': (watch) => partsOf('anthropic', watch),
  'ai over gemini, part by part': (watch) => partsOf('gemini', watch),
  'ai over openai, its text': (watch) => textOf('openai', watch),
  'ai over responses, its text': (watch) => textOf('openai_responses', watch),
  'ai over anthropic, its text': (watch) => textOf('anthropic', watch),
  'ai over gemini, its text': (watch) => textOf('gemini', watch),
}

function note(watch: Watch, text: string): void {
  watch.characters += text.length
  if (text !== '') watch.begun()
}

async function eventsOf(client: Anthropic, watch: Watch): Promise<void> {
  const stream = await client.messages.create({ ...anthropicBody(QUESTION), stream: true })
  for await (const event of stream) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') note(watch, event.delta.text)
    if (event.type === 'message_delta' || event.type === 'message_stop') watch.finished.push(event)
  }
  watch.finished.push('the end of the stream')
}

async function finalMessageOf(client: Anthropic, watch: Watch): Promise<void> {
  const stream = client.messages.stream(anthropicBody(QUESTION))
  stream.on('text', (text) => note(watch, text))
  stream.on('message', (message) => watch.finished.push(message))
  watch.finished.push(await stream.finalMessage())
}

async function chunksOf(stream: AsyncIterable<GenerateContentResponse>, watch: Watch): Promise<void> {
  for await (const chunk of stream) {
    note(watch, geminiText(chunk))
    for (const { finishReason } of chunk.candidates ?? []) if (finishReason) watch.finished.push(finishReason)
  }
  watch.finished.push('the end of the stream')
}

function streamedBy(protocol: Protocol, watch: Watch) {
  return streamText({
    model: aiModel(protocol, TO, QUESTION.model),
    prompt: PROMPT,
    maxOutputTokens: 1_000,
    ...AS_INSTALLED,
    onError: ({ error }) => void watch.failed.push(error),
    onFinish: (finish) => void watch.finished.push(finish),
  })
}

async function partsOf(protocol: Protocol, watch: Watch): Promise<void> {
  for await (const part of streamedBy(protocol, watch).stream) {
    if (part.type === 'text-delta') note(watch, part.text)
    if (part.type === 'error') watch.failed.push(part.error)
    if ((part.type === 'finish-step' || part.type === 'finish') && part.finishReason !== 'error')
      watch.finished.push(part)
  }
}

/** Its text ends without an error in any case; the library tells of one beside it. */
async function textOf(protocol: Protocol, watch: Watch): Promise<void> {
  const result = streamedBy(protocol, watch)
  for await (const text of result.textStream) note(watch, text)
  await result.finishReason.then(
    (reason) => (reason === 'error' ? watch.failed : watch.finished).push(reason),
    (error: unknown) => watch.failed.push(error),
  )
}

/** Reads to the end, whatever that is. */
async function read(reading: (watch: Watch) => Promise<unknown>, begun: () => void): Promise<Seen> {
  const watch: Watch = { begun, characters: 0, finished: [], failed: [] }
  await reading(watch).catch((error: unknown) => watch.failed.push(error))
  begun()
  return watch
}

/** Nobody but us writes to the account until it is let go. */
async function lockAccount(): Promise<() => Promise<void>> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query('set local idle_in_transaction_session_timeout = 0')
  await client.query('select from accounts where id = $1 for update', [accountId])
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

const balance = async () => Object((await ask(url, secret, '/v1/balance')).json)

describe('MODEL-1 MODEL-2 a call whose settlement can not be written', () => {
  const seen = new Map<string, Seen>()
  const wholes = new Map<string, unknown>()

  before(async () => {
    const names = Object.keys(READINGS)
    const begun = names.map(() => Promise.withResolvers<void>())
    const reading = names.map(async (name, place) => {
      const start = READINGS[name] ?? assert.fail()
      seen.set(name, await read(start, () => begun[place]?.resolve()))
    })
    const asking = CLIENTS.map(async (client) => {
      const slow: Question = { ...QUESTION, turns: [{ by: 'user', text: 'sandbox:delay=25000' }] }
      wholes.set(
        client.name,
        await client.ask(TO, slow, { streamed: false }).then(
          () => assert.fail('the call did not fail'),
          (error: unknown) => client.failureOf(error),
        ),
      )
    })
    await Promise.all(begun.map(({ promise }) => promise))
    await until(
      async () => (await sandbox.journal()).length === names.length + CLIENTS.length,
      PATIENCE_MS,
      'all calls',
    )
    assert.equal((await chargesOf(pool, accountId)).size, 0, 'nothing has ended yet')
    const release = await lockAccount()
    try {
      await Promise.all([...reading, ...asking])
    } finally {
      await release()
    }
  })

  for (const name of Object.keys(READINGS)) {
    it(`${name}: never looks finished, and is known to have failed`, () => {
      const { characters, finished, failed } = seen.get(name) ?? assert.fail()
      // All of the text that stands before the stop reason has come.
      assert.ok(characters > 500, `${characters} characters`)
      assert.deepEqual(finished, [])
      // The first word of it is ours. That the stream is broken off after it, some libraries tell too.
      assert.match(String(failed[0]), /could not be settled/)
    })
  }

  for (const { name } of CLIENTS) {
    it(`${name}, not streamed: is 503 settlement_timeout`, () => {
      const { status, code } = Object(wholes.get(name))
      assert.deepEqual([status, code], [503, 'settlement_timeout'])
    })
  }

  it('is not charged, and nothing stays held, once the ledger can be written', async () => {
    const zero = '0.000000000'
    const isBack = async () => {
      const { available, held } = await balance()
      return held?.usd === zero && available?.usd === '10.000000000'
    }
    await until(isBack, PATIENCE_MS, 'the whole balance')
    assert.equal((await chargesOf(pool, accountId)).size, Object.keys(READINGS).length + CLIENTS.length)
  })

  it('trap: no library repeats a stream by itself', async () => {
    assert.equal((await sandbox.journal()).length, Object.keys(READINGS).length + CLIENTS.length)
  })
})
