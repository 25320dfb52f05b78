import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { ask, askToCount } from './anthropic-request.ts'
import { OVERHEAD } from './bound.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'

const LIMITS: ModelLimits = {
  contextWindow: 200_000,
  outputCap: 4_096,
  outputMost: 64_000,
  partTokens: { image: 1_600, file: 3_000 },
}
const BODY = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }

type Sent = { readonly headers?: Readonly<Record<string, string>>; readonly limits?: ModelLimits }

function asked(members: Record<string, unknown> = {}, { headers = {}, limits = LIMITS }: Sent = {}): ModelAsk {
  const text = JSON.stringify({ ...BODY, ...members })
  return ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers }, limits)
}

function refuses(members: Record<string, unknown>, expected: RegExp, sent: Sent = {}): void {
  assert.throws(
    () => asked(members, sent),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(members),
  )
}

const content = (...blocks: readonly unknown[]) => ({ messages: [{ role: 'user', content: blocks }] })

describe('what a message asks for', () => {
  it('has a model and a message at least', () => {
    refuses({ model: undefined }, /"model"/)
    for (const messages of [undefined, [], {}]) refuses({ messages }, /"messages"/)
  })

  it('MODEL-5 has the default cap of the model where it names no limit, and sends it', () => {
    const { outputLimit, isDefaultLimit, bodyFor } = asked({ max_tokens: undefined })
    assert.deepEqual({ outputLimit, isDefaultLimit }, { outputLimit: 4_096, isDefaultLimit: true })
    assert.equal(JSON.parse(bodyFor('m').toString()).max_tokens, 4_096)
    assert.equal(asked().isDefaultLimit, false)
  })

  it('MODEL-5 is refused with the maximum of the model where its limit is above', () => {
    assert.equal(asked({ max_tokens: 64_000 }).outputLimit, 64_000)
    refuses({ max_tokens: 64_001 }, /"max_tokens" is 64001; the limit of this model is 64000 tokens/)
    for (const limit of [0, -1, 0.5, '5']) refuses({ max_tokens: limit }, /"max_tokens" must be/)
  })

  it('has one choice, and always wants the usage', () => {
    const { choices, wantsUsage, isStream } = asked({ stream: true })
    assert.deepEqual({ choices, wantsUsage, isStream }, { choices: 1, wantsUsage: true, isStream: true })
  })

  it('goes on as it came, but for the model', () => {
    const rawBody = Buffer.from('{"model": "m" ,"max_tokens":1,"messages":[ {"role":"user","content":"\\u00e9"} ]}')
    const read = ask({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.equal(read.bodyFor('m'), rawBody)
    assert.equal(read.bodyFor('other').toString(), rawBody.toString().replace('"m"', '"other"'))
  })
})

describe('what a count of tokens asks for', () => {
  it('has no output, and goes on without a limit', () => {
    const rawBody = Buffer.from('{"model":"m","messages":[{"role":"user","content":"a"}]}')
    const read = askToCount({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.deepEqual([read.outputLimit, read.isStream, read.isDefaultLimit, read.choices], [0, false, false, 1])
    assert.equal(read.bodyFor('m'), rawBody)
    assert.equal(read.bodyFor('n').toString(), rawBody.toString().replace('"m"', '"n"'))
  })
})

describe('MODEL-6 what costs money beyond tokens', () => {
  const refused: Readonly<Record<string, readonly unknown[]>> = {
    service_tier: ['priority', 'batch', 1],
    speed: ['fast'],
    inference_geo: ['us', 'eu'],
    container: ['container_1', { id: 'c' }],
    mcp_servers: [[], [{ type: 'url', url: 'https://a' }]],
    fallbacks: [[{ model: 'other' }]],
    fallback_credit_token: ['t'],
    compaction: [{}],
    thread: [{ id: 't' }],
    context_management: [{ edits: [{ type: 'compact_20260112' }] }, 'all'],
    cache_control: [{ type: 'ephemeral', ttl: '1h' }, { ttl: 3600 }, 'long'],
    tools: [
      [{ type: 'web_search_20250305', name: 'web_search' }],
      [{ type: 'code_execution_20250825' }],
      [{ type: 'web_fetch_20250910' }],
      [{ type: 'mcp_toolset' }],
      [{ type: 'advisor_20260301' }],
      [{ type: 'bash_code_execution_20250825' }],
      [{ type: 1 }],
      {},
      ['web_search'],
    ],
  }
  for (const [name, values] of Object.entries(refused)) {
    it(`is refused by the name of ${name}`, () => {
      for (const value of values) refuses({ [name]: value }, new RegExp(`"${name}`))
    })
  }

  it('is refused wherever a long cache is asked for', () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' }
    const text = { type: 'text', text: 'a', cache_control }
    const reference = { type: 'tool_reference', tool_name: 'n', cache_control }
    const within = (block: object) => ({ type: 'content', content: [block] })
    const fetched = (more: object) => ({
      ...{ type: 'web_fetch_result', url: 'https://a', retrieved_at: null },
      content: { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a' }, ...more },
    })
    const places = [
      { system: [text] },
      content(text),
      content({ type: 'tool_use', id: 't', name: 'n', input: {}, cache_control }),
      content({ type: 'tool_result', tool_use_id: 't', content: [text] }),
      content({ type: 'tool_result', tool_use_id: 't', cache_control }),
      content({ type: 'document', source: { type: 'content', content: [text] } }),
      content({ type: 'image', source: { type: 'url', url: 'https://a' }, cache_control }),
      content({ type: 'web_search_tool_result', tool_use_id: 't', content: [], cache_control }),
      content({ type: 'mcp_tool_result', tool_use_id: 't', content: [text] }),
      content({ type: 'web_fetch_tool_result', tool_use_id: 't', content: fetched({ cache_control }) }),
      content({ type: 'web_fetch_tool_result', tool_use_id: 't', content: fetched({ source: within(text) }) }),
      content({ type: 'tool_search_tool_result', tool_use_id: 't', content: { tool_references: [reference] } }),
      { tools: [{ name: 'f', input_schema: {}, cache_control }] },
    ]
    for (const place of places) refuses(place, /cache_control\.ttl" must be "5m"/)
  })

  it('is refused where tools come in the midst of a conversation', () => {
    refuses(content({ type: 'tool_addition', tool: { type: 'web_search_20250305' } }), /"tool_addition"/)
  })

  const betas = [
    'context-1m-2025-08-07',
    'fast-mode-2026-02-01',
    'server-side-fallback-2026-07-01',
    'compact-2026-01-12',
  ]
  for (const beta of [...betas, 'message-threads-2026-08-12', 'fallback-credit-2026-06-01']) {
    it(`is refused by the name of the beta ${beta}`, () => {
      for (const header of [beta, `files-api-2025-04-14, ${beta.toUpperCase()}`]) {
        refuses({}, new RegExp(`anthropic-beta.*"${beta}"`), { headers: { 'anthropic-beta': header } })
      }
    })
  }

  it('is not what is said at its standard', () => {
    asked({ service_tier: 'auto', speed: 'standard', inference_geo: 'global', container: null, cache_control: null })
    asked({ service_tier: 'standard_only', cache_control: { type: 'ephemeral', ttl: '5m' } })
    asked({ context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] }, thinking: { type: 'adaptive' } })
    asked({}, { headers: { 'anthropic-beta': 'interleaved-thinking-2025-05-14,context-management-2025-06-27' } })
    asked({
      tools: [
        { name: 'f', input_schema: {} },
        { type: 'custom', name: 'g' },
        { type: null, name: 'h' },
      ],
    })
  })
})

describe('the bound of the input', () => {
  it('has what is declared for tools that the upstream defines and the caller runs', () => {
    for (const type of ['bash_20250124', 'text_editor_20250728', 'computer_20251124', 'memory_20250818']) {
      const grown = asked({ tools: [{ type, name: 'n' }] }).inputMost - asked().inputMost
      assert.ok(grown >= 2_000 + OVERHEAD.anyTools + OVERHEAD.tool, type)
    }
  })

  it('counts the text of a document as text, and a file as it is declared', () => {
    const document = (source: unknown) => asked(content({ type: 'document', title: 't', source })).inputMost
    const text = (data: string) => document({ type: 'text', media_type: 'text/plain', data })
    assert.equal(text('a'.repeat(5_000)) - text(''), 5_000)
    const held = (inner: string) => document({ type: 'content', content: [{ type: 'text', text: inner }] })
    assert.equal(held('a'.repeat(5_000)) - held(''), 5_000)
    const file = (data: string) => document({ type: 'base64', media_type: 'application/pdf', data })
    assert.equal(file('A'.repeat(90_000)), file('A'))
    assert.ok(file('A') >= 3_000)
    assert.ok(document({ type: 'url', url: 'https://a' }) >= 3_000)
    assert.equal(document({ type: 'of_tomorrow' }), LIMITS.contextWindow)
  })

  it('finds pictures inside of results and documents', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(9_000) } }
    const places = [
      [image],
      [{ type: 'tool_result', tool_use_id: 't', content: [image] }],
      [{ type: 'document', source: { type: 'content', content: [image] } }],
    ]
    for (const blocks of places) {
      const { inputMost } = asked(content(...blocks))
      assert.ok(inputMost >= 1_600 && inputMost < 4_000, `${inputMost}`)
    }
  })

  it('is the context window for blocks that we do not know, and for kinds without a declared size', () => {
    const unknown = { type: 'web_search_tool_result', content: [{ encrypted_content: 'x' }] }
    assert.equal(asked(content(unknown)).inputMost, LIMITS.contextWindow)
    const image = { type: 'image', source: { type: 'url', url: 'https://a' } }
    assert.equal(asked(content(image), { limits: { ...LIMITS, partTokens: {} } }).inputMost, LIMITS.contextWindow)
  })

  it('counts the system prompt, thoughts and calls', () => {
    assert.equal(asked({ system: 'a'.repeat(1_004) }).inputMost - asked({ system: 'a' }).inputMost, 1_003)
    const thought = { type: 'thinking', thinking: 'a'.repeat(1_000), signature: 'b'.repeat(1_000) }
    assert.ok(asked(content(thought)).inputMost > 2_000)
    assert.ok(asked(content({ type: 'tool_use', id: 't', name: 'n', input: { a: 'b'.repeat(900) } })).inputMost > 900)
  })
})

describe('the text of the input', () => {
  it('has system, texts, results and tools, and no data', () => {
    const text = asked({
      system: [{ type: 'text', text: 'Be brief.' }],
      ...content(
        { type: 'tool_result', tool_use_id: 't', content: 'It rains.' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'SECRET' } },
      ),
      tools: [{ name: 'weather', input_schema: {} }],
    }).inputText()
    for (const part of ['Be brief.', 'It rains.', 'weather']) assert.ok(text.includes(part), part)
    for (const part of ['SECRET', 'max_tokens']) assert.ok(!text.includes(part), part)
  })
})
