import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { breachOf, requireSchema, schemasIn } from '../../../harness/json-schema.ts'
import { CALLS, LINKED } from '../../../test/acceptance/installation.ts'
import { catalogue } from '../catalogue/catalogue.ts'
import type { JsonSchema, Table } from '../catalogue/member-table.ts'
import { inSnakeCase } from '../catalogue/member-table.ts'
import { isSoldByUnit, type ModelProtocol, type Operation } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import { shapesOf } from './members-document.ts'
import type { ModelLimits } from './protocol.ts'
import { SPOKEN } from './protocols.ts'
import { requestSchemaOf, TABLES } from './request-schema.ts'

const { operations } = catalogue
const schemaOf = (id: string): JsonSchema => requestSchemaOf(catalogue.find(id) ?? assert.fail(id))

/** What is counted stands in one of two places, so that neither is required. */
const LOOSEST: ReadonlySet<string> = new Set(['generate_content_count_tokens'])

/** The body of a call, or its query. */
function requestOf({ id }: Operation): unknown {
  const { body, path } = CALLS[id]?.('') ?? assert.fail(`nobody has written a call of ${id}`)
  return body ?? Object.fromEntries(new URL(path, 'http://localhost').searchParams)
}

/** Names by the table under whose title they stand. */
function namesByTitle(schema: JsonSchema): ReadonlyMap<unknown, readonly Record<string, unknown>[]> {
  const byTitle = new Map<unknown, Record<string, unknown>[]>()
  for (const one of schemasIn(schema))
    if (one.properties !== undefined)
      byTitle.set(one.title, [...(byTitle.get(one.title) ?? []), Object(one.properties)])
  return byTitle
}

describe('the schema of a request', () => {
  for (const operation of operations)
    it(`is a JSON Schema that takes what is asked for everywhere: ${operation.id}`, () => {
      const schema = requestSchemaOf(operation)
      requireSchema(schema)
      assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema)
      assert.equal(schema.type, 'object')
      assert.equal(breachOf(requestOf(operation), schema), undefined)
      assert.equal(typeof breachOf([], schema), 'string')
      if (!isSoldByUnit(operation) && !LOOSEST.has(operation.id)) assert.equal(typeof breachOf({}, schema), 'string')
    })

  it('has every member of every table, under each spelling, with what becomes of it', () => {
    let count = 0
    for (const [protocol, root] of Object.entries(TABLES)) {
      const operation = operations.find((one) => one.protocol === protocol) ?? assert.fail(protocol)
      const schema = requestSchemaOf(operation)
      const byTitle = namesByTitle({ ...schema, title: root.title })
      for (const shape of shapesOf(root)) {
        if ('kinds' in shape) continue
        const found = byTitle.get(shape.title) ?? assert.fail(`${protocol} ${shape.title}`)
        for (const name of namesIn(shape)) {
          count += 1
          assert.ok(
            found.some((properties) => says(properties[name], shape, name)),
            `${shape.title}.${name}`,
          )
        }
      }
    }
    assert.ok(count > 700, `${count} members`)
  })

  it('has every kind of every choice, those that are refused too', () => {
    let count = 0
    for (const [protocol, root] of Object.entries(TABLES)) {
      const operation = operations.find((one) => one.protocol === protocol) ?? assert.fail(protocol)
      const titles = new Set(schemasIn(requestSchemaOf(operation)).map(({ title }) => title))
      for (const shape of shapesOf(root))
        if ('kinds' in shape)
          for (const kind of Object.keys(shape.kinds)) {
            count += 1
            assert.ok(titles.has(kind), `${shape.title} ${kind}`)
          }
    }
    assert.ok(count > 80, `${count} kinds`)
  })

  it('refuses no linked or data operation what its own schema takes, and names what it refuses', () => {
    assert.ok(LINKED.size > 0)
    for (const operation of operations.filter(isSoldByUnit)) {
      const schema = requestSchemaOf(operation)
      for (const name of Object.keys(operation.refuses ?? {}))
        assert.match(breachOf({ ...Object(requestOf(operation)), [name]: 'x' }, schema) ?? '', /properties/, name)
    }
    const rerank = { query: 'a', documents: ['b'] }
    assert.equal(breachOf(rerank, schemaOf('rerank')), undefined)
    for (const wrong of [{ max_chunks_per_doc: 1 }, { something: 1 }, { documents: [] }, { top_n: 0 }])
      assert.equal(typeof breachOf({ ...rerank, ...wrong }, schemaOf('rerank')), 'string', JSON.stringify(wrong))
  })
})

function namesIn({ members, spelling }: Table): readonly string[] {
  return Object.keys(members).flatMap((name) => (spelling === 'exact' ? [name] : [name, inSnakeCase(name)]))
}

/** Whether a schema says of a member what its table does. */
function says(schema: unknown, { bySpelling }: Table, name: string): boolean {
  const member = bySpelling.get(name)?.member
  if (schema === undefined || member === undefined) return false
  const { description, not, enum: values, anyOf } = Object(schema)
  switch (member.is) {
    case 'refused':
      return not !== undefined && description === `Refused: ${member.why}`
    case 'needing':
      return (
        not !== undefined && description === `Refused: unless the model has a price of ${member.need}: ${member.why}`
      )
    case 'limited':
      return (values ?? anyOf) !== undefined && String(description).endsWith(`Limited: ${member.why}`)
    case 'priced':
      return String(description).endsWith(`Priced: ${member.how}.`)
    case 'neutral':
      return true
  }
}

const LIMITS: ModelLimits = { contextWindow: 200_000, outputCap: 4_096, outputMost: 64_000, partTokens: { image: 256 } }
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const content = (...parts: readonly unknown[]) => ({ messages: [{ role: 'user', content: parts }] })

type Body = Readonly<Record<string, unknown>>
type Case = readonly [protocol: ModelProtocol, members: Body, isTaken: boolean]

const PICTURE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const BASE: Readonly<Record<ModelProtocol, Body>> = {
  openai: { model: 'm', messages: MESSAGES },
  openai_responses: { model: 'm', input: 'Hello' },
  anthropic: { model: 'm', max_tokens: 10, messages: MESSAGES },
  anthropic_count_tokens: { model: 'm', messages: MESSAGES },
  gemini: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_stream: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_count_tokens: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_embeddings: { content: { parts: [{ text: 'Hello' }] } },
  gemini_batch_embeddings: { requests: [{ content: { parts: [{ text: 'Hello' }] } }] },
  openai_embeddings: { model: 'm', input: 'Hello' },
  openai_images: { model: 'm', prompt: 'Hello' },
}

/** What is taken and what is refused, by whoever parses it and by the schema alike. */
const CASES: readonly Case[] = [
  ['openai', {}, true],
  [
    'openai',
    {
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
      ],
    },
    true,
  ],
  [
    'openai',
    content({ type: 'text', text: 'a' }, { type: 'image_url', image_url: { url: 'https://a.invalid' } }),
    true,
  ],
  ['openai', content({ type: 'input_audio', input_audio: {} }), false],
  ['openai', { n: 128, stream: true, max_tokens: 5, temperature: null }, true],
  ['openai', { n: null, stream: null, max_tokens: null, service_tier: null, tools: null }, true],
  ['openai', { n: 129 }, false],
  ['openai', { n: 1.5 }, false],
  ['openai', { stream: 'yes' }, false],
  ['openai', { max_completion_tokens: 0 }, false],
  ['openai', { messages: [] }, false],
  ['openai', { messages: 'hello' }, false],
  ['openai', { model: '' }, false],
  ['openai', { model: 'm'.repeat(201) }, false],
  ['openai', { best_of: 2 }, false],
  ['openai', { service_tier: 'priority' }, false],
  ['openai', { service_tier: 'auto' }, true],
  ['openai', { modalities: ['text'] }, true],
  ['openai', { modalities: ['text', 'audio'] }, false],
  ['openai', { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }, true],
  ['openai', { tools: [{ type: 'web_search' }] }, false],
  ['openai', { tools: {} }, false],
  ['openai', { stream_options: [] }, false],
  ['openai', { web_search_options: {} }, false],
  ['openai_responses', { instructions: 'Be brief.', store: false, include: ['reasoning.encrypted_content'] }, true],
  ['openai_responses', { input: [{ role: 'user', content: 'a' }], max_output_tokens: 5 }, true],
  [
    'openai_responses',
    { input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a' }] }] },
    true,
  ],
  ['openai_responses', { input: [] }, false],
  ['openai_responses', { input: 5 }, false],
  ['openai_responses', { input: [{ type: 'item_reference', id: 'a' }] }, false],
  ['openai_responses', { max_output_tokens: 0 }, false],
  ['openai_responses', { max_tokens: 5 }, false],
  ['openai_responses', { store: true }, false],
  ['openai_responses', { background: true }, false],
  ['openai_responses', { background: false }, true],
  ['openai_responses', { previous_response_id: 'resp_1' }, false],
  ['openai_responses', { conversation: 'conv_1' }, false],
  ['openai_responses', { prompt: { id: 'pmpt_1' } }, false],
  ['openai_responses', { tools: [{ type: 'function', name: 'f', parameters: {} }] }, true],
  ['openai_responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'custom', name: 'c' }] }] }, true],
  ['openai_responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'mcp' }] }] }, false],
  ['openai_responses', { tools: [{ type: 'web_search' }] }, false],
  ['openai_responses', { tools: [{ type: 'local_shell' }] }, false],
  ['openai_responses', { tool_choice: { type: 'file_search' } }, false],
  ['openai_responses', { tool_choice: { type: 'function', name: 'f' } }, true],
  [
    'openai_responses',
    { input: [{ type: 'agent_message', author: '/root', recipient: '/root/a', content: [] }] },
    true,
  ],
  ['openai_embeddings', { input: ['a', 'b'], encoding_format: 'float' }, true],
  ['openai_embeddings', { input: [1, 2] }, true],
  ['openai_embeddings', { input: [] }, false],
  ['openai_embeddings', { input: 5 }, false],
  ['openai_embeddings', { stream: true }, false],
  ['gemini_embeddings', { task_type: 'CLUSTERING', outputDimensionality: 8 }, true],
  ['gemini_embeddings', { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }] } }, false],
  ['gemini_embeddings', { content: 'Hello' }, false],
  ['gemini_embeddings', { embedContentConfig: { documentOcr: true } }, false],
  ['gemini_batch_embeddings', { requests: [{ content: { parts: [{ fileData: { fileUri: 'a' } }] } }] }, false],
  ['gemini_batch_embeddings', { requests: {} }, false],
  ['openai_images', { n: 10, size: '1024x1024' }, true],
  ['openai_images', { n: 11 }, false],
  ['openai_images', { size: '' }, false],
  ['openai_images', { something: 1 }, false],
  ['openai_images', { prompt: '' }, false],
  ['anthropic', content({ type: 'text', text: 'a' }, PICTURE), true],
  ['anthropic', { system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }] }, false],
  ['anthropic', content({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'compaction' }] }), false],
  ['anthropic', content({ type: 'container_upload' }), false],
  ['anthropic', content({ type: 'image', source: { type: 'text', data: 'a' } }), false],
  [
    'anthropic',
    {
      tools: [
        { name: 'f', input_schema: {} },
        { type: 'bash_20250124', name: 'bash' },
      ],
    },
    true,
  ],
  ['anthropic', { tools: [{ type: null, name: 'f' }] }, true],
  ['anthropic', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, false],
  ['anthropic', { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }, true],
  ['anthropic', { context_management: { edits: [{ type: 'compact_20260112' }] } }, false],
  ['anthropic_count_tokens', { mcp_servers: [] }, false],
  ['gemini', { generationConfig: { maxOutputTokens: 5, candidateCount: 8 } }, true],
  ['gemini', { generation_config: { max_output_tokens: 5 } }, true],
  ['gemini', { generation_config: { max_output_tokens: 0 } }, false],
  ['gemini', { generationConfig: { candidateCount: 9 } }, false],
  ['gemini', { contents: [] }, false],
  ['gemini', { contents: 'Hello' }, true],
  ['gemini', { tools: [{ functionDeclarations: [{ name: 'f' }] }] }, true],
  ['gemini', { tools: [{ google_search: {} }] }, false],
  ['gemini', { tools: { something: 1 } }, false],
  ['gemini_stream', { cachedContent: 'a' }, false],
  ['gemini_count_tokens', { contents: undefined, generateContentRequest: { model: 'm', contents: 'a' } }, true],
  [
    'gemini_count_tokens',
    { contents: undefined, generateContentRequest: { contents: 'a', cached_content: 'b' } },
    false,
  ],
]

describe('whoever parses a request and its schema', () => {
  for (const [protocol, members, isTaken] of CASES)
    it(`${isTaken ? 'take' : 'refuse'} alike: ${protocol} ${JSON.stringify(members).slice(0, 100)}`, () => {
      const text = JSON.stringify({ ...BASE[protocol], ...members })
      const body = JSON.parse(text)
      const parse = () => SPOKEN[protocol].protocol.ask({ body, rawBody: Buffer.from(text), headers: {} }, LIMITS)
      if (isTaken) parse()
      else assert.throws(parse, Fault)
      const operation = operations.find((one) => one.protocol === protocol) ?? assert.fail(protocol)
      assert.equal(typeof breachOf(body, requestSchemaOf(operation)), isTaken ? 'undefined' : 'string')
    })
})
