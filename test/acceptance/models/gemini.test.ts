import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { formatUsd, nanos } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { ask, chargesOf, errorOf, makeCustomer, startInstallation, type Told } from '../installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

type Usage = {
  readonly promptTokenCount?: number
  readonly candidatesTokenCount?: number
  readonly thoughtsTokenCount?: number
  readonly cachedContentTokenCount?: number
  readonly cost_usd?: string
}
type Chunk = {
  readonly candidates?: readonly {
    readonly content: { readonly parts: readonly { readonly text?: string }[] }
    readonly finishReason?: string
  }[]
  readonly usageMetadata?: Usage
  readonly error?: Record<string, unknown>
}

const says = (text: string, members: object = {}) => ({ contents: [{ role: 'user', parts: [{ text }] }], ...members })
const limited = (maxOutputTokens: number) => ({ generationConfig: { maxOutputTokens } })
const at = (model: string, action: string) => `/v1beta/models/${model}:${action}`
const GENERATE = 'generateContent'
const STREAM = 'streamGenerateContent?alt=sse'

const secretOf = async (money?: bigint) => (await makeCustomer(pool, money === undefined ? {} : { money })).secret
/** Each has 30 requests a minute of its own. */
const secret = await secretOf()

function generate(body: unknown, { model = 'sandbox/echo', key = secret, headers = {} } = {}): Promise<Told> {
  return ask(url, key, at(model, GENERATE), { body, headers })
}

/** What the sandbox's tokens cost, in nanos of a USD. */
function costOf({
  promptTokenCount = 0,
  cachedContentTokenCount: cached = 0,
  candidatesTokenCount = 0,
  thoughtsTokenCount = 0,
}: Usage): string {
  const output = candidatesTokenCount + thoughtsTokenCount
  return formatUsd(nanos(BigInt((promptTokenCount - cached) * 500 + cached * 50 + output * 2_000)))
}

const usageOf = ({ json }: Told) => json.usageMetadata as Usage
const lastEntry = async () => (await sandbox.journal()).at(-1)
const asked = async () => (await sandbox.journal()).length

async function stream(body: unknown, { model = 'sandbox/echo', key = secret } = {}) {
  const response = await fetch(url + at(model, STREAM), {
    method: 'POST',
    headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const pieces: Buffer[] = []
  let isBroken = false
  try {
    for await (const piece of response.body ?? []) pieces.push(Buffer.from(piece))
  } catch {
    isBroken = true
  }
  const text = Buffer.concat(pieces).toString()
  return { response, text, isBroken, chunks: chunksIn(text), id: response.headers.get('x-request-id') ?? '' }
}

/** As the vendor's library reads them: a frame starts with its data, and has a blank line behind it. */
function chunksIn(text: string): Chunk[] {
  const frames = text.split(/\r\n\r\n|\n\n/)
  assert.equal(frames.pop(), '', 'the last frame has a blank line behind it')
  return frames
    .filter((frame) => !frame.includes('oops'))
    .map((frame) => {
      assert.match(frame, /^data: /)
      return JSON.parse(frame.slice('data: '.length))
    })
}

const textOf = (chunks: readonly Chunk[]) =>
  chunks
    .flatMap(({ candidates = [] }) => candidates.flatMap(({ content }) => content.parts.map(({ text }) => text)))
    .join('')

async function record(id: string, key = secret) {
  const { json } = await ask(url, key, `/v1/requests/${id}`)
  return json as { cost: { usd: string }; tokens: Record<string, number> } & Record<string, unknown>
}

function isGeminiFault(told: Told, status: number, name: string, reason: string): void {
  assert.equal(told.status, status, told.text)
  assert.match(told.headers.get('content-type') ?? '', /^application\/json/)
  const { code, status: named, message, details } = errorOf(told)
  assert.deepEqual([code, named], [status, name])
  assert.ok(typeof message === 'string' && message.length > 10)
  const [info, about] = details as [Record<string, unknown>, Record<string, unknown>]
  assert.equal(info.reason, reason)
  assert.equal(about.requestId, told.id)
}

describe('generateContent', () => {
  it('MODEL-3 answers with what the upstream said, at the price of the tokens that it reports', async () => {
    const told = await generate(says('Hello', limited(100)))
    assert.equal(told.status, 200, told.text)
    assert.equal(textOf([told.json as Chunk]), 'Echo: Hello')
    const used = { promptTokenCount: 2, candidatesTokenCount: 4, totalTokenCount: 6 }
    assert.deepEqual(usageOf(told), { ...used, cost_usd: told.costUsd })
    assert.equal(told.costUsd, costOf(usageOf(told)))
    const { cost, tokens } = await record(told.id)
    assert.equal(cost.usd, told.costUsd)
    assert.deepEqual(tokens, { input: 2, output: 4, cache_read: 0, cache_write: 0 })
  })

  it('passes the body on byte for byte, to the model in the path, with our key and no other', async () => {
    const body =
      ' { "contents":[{"parts":[{"text":"\\u00e9"}]}],"labels":{"a":1.0},"generation_config":{"max_output_tokens":9} }'
    for (const name of ['sandbox/text', 'sandbox%2Ftext']) {
      await ask(url, '', at(name, GENERATE), { body, headers: { 'x-goog-api-key': secret } })
      const entry = await lastEntry()
      assert.deepEqual(
        [entry?.path, entry?.query, entry?.body_sha256, entry?.credential],
        ['/gemini/v1beta/models/sandbox/text:generateContent', '', hash('sha256', body), 'right'],
      )
      assert.ok(!entry?.header_names.includes('authorization'))
    }
  })

  it('MODEL-3 counts thoughts as output, and what was cached once, at its own price', async () => {
    const thinkingConfig = { thinkingBudget: 20 }
    const told = await generate(
      says('sandbox:input-tokens=100 sandbox:cache-read=60', { generationConfig: { thinkingConfig } }),
    )
    const usage = usageOf(told)
    assert.deepEqual([usage.cachedContentTokenCount, usage.thoughtsTokenCount], [60, 20])
    assert.equal(told.costUsd, costOf(usage))
    const { tokens } = await record(told.id)
    const output = 20 + (usage.candidatesTokenCount ?? 0)
    assert.deepEqual(tokens, { input: 40, output, cache_read: 60, cache_write: 0 })
  })

  it('MODEL-3 charges what was thought where there was no room for an answer', async () => {
    const generationConfig = { maxOutputTokens: 5, thinkingConfig: { thinkingBudget: -1 } }
    const told = await generate(says('Hello', { generationConfig }))
    const used = { promptTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 7 }
    assert.deepEqual(usageOf(told), { ...used, cost_usd: told.costUsd })
    assert.equal(told.costUsd, costOf({ promptTokenCount: 2, thoughtsTokenCount: 5 }))
  })

  it('MODEL-3 counts what was sent and given where the upstream reports nothing', async () => {
    const told = await generate(says('Hello'), { model: 'sandbox/no-usage' })
    assert.equal(told.costUsd, costOf({ promptTokenCount: 2, candidatesTokenCount: 4 }))
  })

  it('MODEL-5 has the cap of the model where it names none, sent upstream and told in a header', async () => {
    const told = await generate(says('sandbox:output-tokens=9000'))
    assert.equal(told.headers.get('x-farebox-output-cap'), String(SANDBOX_LIMITS.outputCap))
    assert.equal(usageOf(told).candidatesTokenCount, SANDBOX_LIMITS.outputCap)
    const named = await generate(says('sandbox:output-tokens=9000', limited(5_000)))
    assert.equal(named.headers.get('x-farebox-output-cap'), null)
    assert.equal(usageOf(named).candidatesTokenCount, 5_000)
    const above = await generate(says('Hello', limited(SANDBOX_LIMITS.outputMost + 1)))
    isGeminiFault(above, 400, 'INVALID_ARGUMENT', 'invalid_request')
  })
})

describe('streamGenerateContent', () => {
  it('MODEL-3 gives the answer in frames that start with their data, and the cost in the last usage', async () => {
    const { response, chunks, text, id, isBroken } = await stream(says('Hello world'))
    assert.equal(response.status, 200, text)
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
    assert.deepEqual([isBroken, textOf(chunks)], [false, 'Echo: Hello world'])
    const { cost_usd, ...usage } = chunks.at(-1)?.usageMetadata ?? {}
    assert.equal(cost_usd, costOf(usage))
    assert.equal(chunks.filter(({ usageMetadata }) => usageMetadata?.cost_usd !== undefined).length, 1)
    const { cost, tokens } = await record(id)
    assert.equal(cost.usd, cost_usd)
    assert.deepEqual(tokens, { input: 4, output: 6, cache_read: 0, cache_write: 0 })
    const entry = await lastEntry()
    assert.deepEqual(
      [entry?.path, entry?.query],
      ['/gemini/v1beta/models/sandbox/echo:streamGenerateContent', 'alt=sse'],
    )
  })

  it('is refused for several candidates, of which an upstream may give fewer', async () => {
    const key = await secretOf()
    const body = says('Hello', { generationConfig: { candidateCount: 3 } })
    const path = '/v1beta/models/sandbox/text:streamGenerateContent?alt=sse'
    assert.equal((await ask(url, key, path, { body })).status, 400)
    assert.equal((await ask(url, key, '/v1beta/models/sandbox/text:generateContent', { body })).status, 200)
  })

  it('MODEL-2 ends with an error of this protocol where the upstream breaks off, and what was given is charged', async () => {
    const key = await secretOf()
    for (const model of ['sandbox/cut-mid-stream', 'sandbox/no-end']) {
      const { chunks, isBroken, id } = await stream(says('Hello'), { model, key })
      assert.equal(isBroken, true, model)
      assert.equal(typeof chunks.at(-1)?.error?.code, 'number', model)
      const given = textOf(chunks.slice(0, -1))
      assert.ok(given.length > 10)
      const { cost } = await record(id, key)
      const tokens = Math.ceil(Buffer.byteLength(given) / 3)
      assert.equal(cost.usd, costOf({ promptTokenCount: 2, candidatesTokenCount: tokens }), model)
    }
    const told = await stream(says('Hello'), { model: 'sandbox/error-mid-stream', key })
    assert.deepEqual([told.isBroken, told.chunks.at(-1)?.error?.status], [true, 'UNAVAILABLE'])
    assert.equal(told.chunks.filter(({ error }) => error !== undefined).length, 1)
  })

  it('passes a frame that is no JSON on, and counts what nobody reports', async () => {
    const key = await secretOf()
    const garbage = await stream(says('Hello'), { model: 'sandbox/garbage-frame', key })
    assert.deepEqual([garbage.isBroken, garbage.text.includes('oops')], [false, true])
    const silent = await stream(says('Hello'), { model: 'sandbox/no-usage', key })
    assert.equal((await record(silent.id, key)).cost.usd, costOf({ promptTokenCount: 2, candidatesTokenCount: 4 }))
  })

  it('MODEL-3 charges whoever leaves in the middle what the upstream reports at its end', async () => {
    const customer = await makeCustomer(pool)
    const left = new AbortController()
    const response = await fetch(url + at('sandbox/slow', STREAM), {
      method: 'POST',
      headers: { 'x-goog-api-key': customer.secret, 'content-type': 'application/json' },
      body: JSON.stringify(says('sandbox:delta-ms=20')),
      signal: left.signal,
    })
    await response.body?.getReader().read()
    left.abort()
    await until(async () => (await chargesOf(pool, customer.accountId)).size === 1, PATIENCE_MS)
    const [charged] = [...(await chargesOf(pool, customer.accountId)).values()]
    const entry = await lastEntry()
    assert.equal(entry?.outcome, 'answered')
    assert.equal(formatUsd(nanos(charged ?? 0n)), costOf(entry?.usage ?? {}))
  })

  it('is refused as anything but server-sent events', async () => {
    const told = await ask(url, secret, at('sandbox/echo', 'streamGenerateContent'), { body: says('Hello') })
    isGeminiFault(told, 400, 'INVALID_ARGUMENT', 'invalid_request')
  })
})

describe('countTokens', () => {
  it('counts for nothing, also what is told as a request for content', async () => {
    const customer = await makeCustomer(pool, { money: 0n })
    const count = (body: unknown) => ask(url, customer.secret, at('sandbox/echo', 'countTokens'), { body })
    const told = await count(says('Hello world'))
    assert.deepEqual([told.status, told.json.totalTokens], [200, 4], told.text)
    const whole = await count({ generateContentRequest: { model: 'models/sandbox/echo', ...says('Hello world') } })
    assert.deepEqual([whole.status, whole.json.totalTokens], [200, 4], whole.text)
    for (const amount of (await chargesOf(pool, customer.accountId)).values()) assert.equal(amount, 0n)
  })
})

describe('a refusal', () => {
  it('MODEL-2 has the shape of this protocol, whatever is refused', async () => {
    const key = await secretOf()
    isGeminiFault(await generate(says('Hello'), { key: 'wrong' }), 401, 'UNAUTHENTICATED', 'invalid_credential')
    const unknown = await generate(says('Hello'), { model: 'nobody/knows', key })
    isGeminiFault(unknown, 404, 'NOT_FOUND', 'model_not_found')
    const elsewhere = await generate(says('Hello'), { model: 'sandbox/openai-only', key })
    isGeminiFault(elsewhere, 404, 'NOT_FOUND', 'resource_not_found')
    assert.match(String(errorOf(elsewhere).message), /\/v1\/chat\/completions/)
    isGeminiFault(await generate('{"contents":', { key }), 400, 'INVALID_ARGUMENT', 'invalid_json')
    const poor = await generate(says('Hello'), { key: await secretOf(1n) })
    isGeminiFault(poor, 402, 'RESOURCE_EXHAUSTED', 'insufficient_balance')
  })

  it('MODEL-2 of the upstream comes as the upstream wrote it', async () => {
    const key = await secretOf()
    const told = await generate(says('Hello'), { model: 'sandbox/500', key })
    assert.deepEqual([told.status, errorOf(told).code, errorOf(told).status], [500, 500, 'INTERNAL'])
    const busy = await generate(says('Hello'), { model: 'sandbox/overloaded', key })
    assert.deepEqual([busy.status, errorOf(busy).status], [503, 'UNAVAILABLE'])
  })

  it('MODEL-6 names what costs money beyond tokens, in either spelling, and nothing is sent or charged', async () => {
    const customer = await makeCustomer(pool)
    const before = await asked()
    const members: Readonly<Record<string, object>> = {
      googleSearch: { tools: [{ googleSearch: {} }] },
      urlContext: { tools: [{ url_context: {} }] },
      codeExecution: { tools: { codeExecution: {} } },
      cachedContent: { cached_content: 'cachedContents/a' },
      serviceTier: { serviceTier: 'priority' },
      responseModalities: { generation_config: { response_modalities: ['AUDIO'] } },
      speechConfig: { generationConfig: { speechConfig: {} } },
      imageConfig: { generationConfig: { image_config: {} } },
      generationConfig: { generationConfig: {}, generation_config: { maxOutputTokens: 1 } },
      model: { model: 'models/dear' },
    }
    for (const [name, member] of Object.entries(members)) {
      const told = await generate(says('Hello', member), { key: customer.secret })
      isGeminiFault(told, 400, 'INVALID_ARGUMENT', 'invalid_request')
      assert.match(String(errorOf(told).message), new RegExp(`"([^"]*\\.)?${name}"`))
    }
    assert.equal(await asked(), before)
    assert.equal((await chargesOf(pool, customer.accountId)).size, 0)
  })
})

describe('the model in the path', () => {
  const QUOTE = { 'x-farebox-cost-mode': 'quote' }

  it('QUOTE-6 is part of a quote, so that a quote for one model is not one for another', async () => {
    const key = await secretOf()
    const body = says('Hello', limited(100))
    const { json } = await generate(body, { key, headers: QUOTE })
    assert.equal(json.operation, 'generate_content')
    const headers = { 'x-farebox-quote-id': String(json.quote_id) }
    const other = await generate(body, { model: 'sandbox/text', key, headers })
    isGeminiFault(other, 400, 'INVALID_ARGUMENT', 'quote_invalid')
    const streamed = await ask(url, key, at('sandbox/echo', STREAM), { body, headers })
    isGeminiFault(streamed, 400, 'INVALID_ARGUMENT', 'quote_invalid')
    const told = await generate(body, { key, headers })
    assert.equal(told.status, 200, told.text)
    const { max } = json as { max: { usd: string } }
    assert.ok(Number(told.costUsd) <= Number(max.usd))
  })

  it('ERR-3 is part of what an idempotency key stands for', async () => {
    const key = await secretOf()
    const headers = { 'idempotency-key': 'one-of-a-kind' }
    assert.equal((await generate(says('Hello'), { key, headers })).status, 200)
    const other = await generate(says('Hello'), { model: 'sandbox/text', key, headers })
    isGeminiFault(other, 422, 'INVALID_ARGUMENT', 'idempotency_mismatch')
    isGeminiFault(await generate(says('Hello'), { key, headers }), 409, 'ABORTED', 'idempotency_completed')
  })
})

describe('the limit of the endpoints', () => {
  it('LIMIT-3 is 30 requests a minute for whole answers and streams together, whatever the tier allows', async () => {
    const key = await secretOf()
    const statuses: number[] = []
    for (let turn = 0; turn < 15; turn += 1) {
      statuses.push((await generate(says('Hello'), { key })).status)
      statuses.push((await stream(says('Hello'), { key })).response.status)
    }
    assert.deepEqual(new Set(statuses), new Set([200]))
    const told = await generate(says('Hello'), { key })
    isGeminiFault(told, 429, 'RESOURCE_EXHAUSTED', 'rate_limit_exceeded')
    const retry = (errorOf(told).details as Record<string, unknown>[]).find(
      ({ retryDelay }) => retryDelay !== undefined,
    )
    assert.equal(retry?.retryDelay, `${told.headers.get('retry-after')}s`)
    const streamed = await ask(url, key, at('sandbox/echo', STREAM), { body: says('Hello') })
    isGeminiFault(streamed, 429, 'RESOURCE_EXHAUSTED', 'rate_limit_exceeded')
    const counted = await ask(url, key, at('sandbox/echo', 'countTokens'), { body: says('Hello') })
    assert.equal(counted.status, 200)
  })
})

it('leaves a ledger that is right', async () => {
  assert.deepEqual(await verifyLedger(pool), [])
})
