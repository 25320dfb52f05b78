import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { writePriceList } from './file.ts'
import { readPriceList } from './format.ts'
import { type Choice, convertCommunityList } from './litellm.ts'

/** Of the community list's shape, written by hand. */
const LIST = `{
  "sample_spec": { "max_tokens": "LEGACY parameter", "input_cost_per_token": 0.0, "mode": "one of: chat, embedding" },
  "gpt-sample": {
    "cache_read_input_token_cost": 1.25e-07, "cache_read_input_token_cost_flex": 6.25e-08,
    "cache_read_input_token_cost_priority": 2.5e-07,
    "input_cost_per_token": 1.25e-06, "input_cost_per_token_batches": 6.25e-07,
    "input_cost_per_token_ultrafast": 9e-06, "input_cost_per_token_above_272k_tokens_batch": 1e-06,
    "input_cost_per_token_flex": 6.25e-07, "input_cost_per_token_priority": 2.5e-06,
    "litellm_provider": "openai", "max_input_tokens": 272000, "max_output_tokens": 128000, "max_tokens": 128000,
    "mode": "chat", "output_cost_per_token": 1e-05, "output_cost_per_token_flex": 5e-06,
    "output_cost_per_token_priority": 2e-05, "output_cost_per_reasoning_token": 1e-05,
    "file_search_cost_per_1k_calls": 2.5,
    "search_context_cost_per_query": {
      "search_context_size_low": 0.01, "search_context_size_medium": 0.01, "search_context_size_high": 0.01 },
    "supported_endpoints": ["/v1/chat/completions"], "supports_vision": true, "deprecation_date": "2027-01-31"
  },
  "claude-sample": {
    "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
    "cache_creation_input_token_cost_above_200k_tokens": 7.5e-06,
    "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.2e-05,
    "cache_read_input_token_cost": 3e-07, "cache_read_input_token_cost_above_200k_tokens": 6e-07,
    "input_cost_per_token": 3e-06, "input_cost_per_token_above_200k_tokens": 6e-06,
    "output_cost_per_token": 1.5e-05, "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "litellm_provider": "anthropic", "max_input_tokens": 200000, "max_output_tokens": 64000, "mode": "chat",
    "provider_specific_entry": { "us": 1.1, "fast": 6.0 },
    "search_context_cost_per_query": { "search_context_size_low": 0.01, "search_context_size_high": 0.02 },
    "tool_use_system_prompt_tokens": 159
  },
  "gemini/gemini-sample": {
    "input_cost_per_audio_token": 1e-06, "input_cost_per_token": 3e-07, "output_cost_per_token": 2.5e-06,
    "cache_read_input_token_cost": 3e-08,
    "litellm_provider": "gemini", "max_input_tokens": 1048576, "max_output_tokens": 65535, "mode": "chat", "rpm": 10
  },
  "text-embedding-sample": {
    "input_cost_per_token": 2e-08, "output_cost_per_token": 0.0, "litellm_provider": "openai",
    "max_input_tokens": 8191, "max_tokens": 8191, "mode": "embedding", "output_vector_size": 1536
  },
  "image-sample": { "litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.04 },
  "step-without-cache": {
    "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 1e-07,
    "input_cost_per_token_above_128k_tokens": 2e-06, "output_cost_per_token_above_128k_tokens": 4e-06, "mode": "chat"
  },
  "dear-reasoning": {
    "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "output_cost_per_reasoning_token": 4e-06, "mode": "chat"
  },
  "per-request": { "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "input_cost_per_request": 0.005 },
  "tiered": {
    "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
    "tiered_pricing": [{ "input_cost_per_token": 5e-08, "range": [0, 256000.0] }]
  },
  "steps-of-a-tier": {
    "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
    "input_cost_per_token_above_272k_tokens": 2e-06, "output_cost_per_token_above_272k_tokens": 3e-06,
    "input_cost_per_token_priority": 2e-06, "output_cost_per_token_priority": 4e-06,
    "input_cost_per_token_above_272k_tokens_priority": 4e-06, "output_cost_per_token_priority_above_272k_tokens": 6e-06,
    "input_cost_per_token_flex": 5e-07, "output_cost_per_token_flex": 1e-06, "max_tokens": 4096
  },
  "half-a-tier": {
    "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "input_cost_per_token_flex": 5e-07,
    "max_tokens": 4096, "max_input_tokens": 1000, "max_output_tokens": 4096
  },
  "without-price": { "mode": "chat", "max_input_tokens": 5 },
  "negative": { "input_cost_per_token": -1e-06, "output_cost_per_token": 2e-06 },
  "a name with spaces": { "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06 }
}`

const ALL: Choice = { isWanted: () => true, prefixes: new Map(), withCost: false }
const convert = (choice: Partial<Choice> = {}, text = LIST) =>
  convertCommunityList(Buffer.from(text), { ...ALL, ...choice })

describe('the community list', () => {
  it('gives exact prices for a million tokens, by class, tier and tool', () => {
    assert.deepEqual(convert().models['gpt-sample'], {
      ...{ context_window: 272_000, output_most: 128_000 },
      price: {
        ...{ input: '1.25', output: '10', cache_read: '0.125' },
        classes: {
          tiers: {
            flex: { rates: { cache_read: '0.0625', input: '0.625', output: '5' } },
            priority: { rates: { cache_read: '0.25', input: '2.5', output: '20' } },
          },
          tools: { file_search: '0.0025', web_search: '0.01' },
        },
      },
    })
  })

  it('gives steps of long input with every class', () => {
    const { models, notes } = convert()
    assert.deepEqual(models['claude-sample']?.price, {
      ...{ input: '3', output: '15', cache_read: '0.3', cache_write: '3.75' },
      classes: {
        rates: { cache_write_1h: '6' },
        above: [
          {
            tokens: 200_000,
            rates: { cache_write: '7.5', cache_write_1h: '12', cache_read: '0.6', input: '6', output: '22.5' },
          },
        ],
      },
    })
    assert.deepEqual(
      notes.filter(({ name }) => name === 'claude-sample').map(({ text }) => text.split(':')[0]),
      ['provider_specific_entry', 'search_context_cost_per_query'],
    )
  })

  it('gives a tier the steps of the standard price, and leaves out one that lacks them', () => {
    const { models, notes } = convert({ isWanted: (name) => name === 'steps-of-a-tier' })
    assert.deepEqual(models['steps-of-a-tier']?.price.classes, {
      above: [{ tokens: 272_000, rates: { input: '2', output: '3' } }],
      tiers: {
        priority: {
          rates: { input: '2', output: '4' },
          above: [{ tokens: 272_000, rates: { input: '4', output: '6' } }],
        },
      },
    })
    assert.deepEqual(
      notes.map(({ text }) => text),
      ['the tier flex has no price of input above 272000, output above 272000, and is not sold'],
    )
  })

  it('gives audio its own price, and an embedding no output', () => {
    const { models } = convert()
    assert.deepEqual(models['gemini/gemini-sample']?.price.classes, { rates: { input_audio: '1' } })
    assert.deepEqual(models['text-embedding-sample'], {
      ...{ context_window: 8_191, output_most: 1 },
      price: { input: '0.02', output: '0' },
    })
  })

  it('leaves out, and names, each model whose price would be wrong', () => {
    const { models, leftOut } = convert()
    assert.deepEqual(
      leftOut.map(({ name, text }) => [name, text]),
      [
        ['image-sample', 'its mode is image_generation: only models that are sold per token are converted'],
        ['step-without-cache', 'classes: above 128000 needs a price of cache_read too.'],
        ['dear-reasoning', 'its reasoning has another price than its output'],
        ['per-request', 'input_cost_per_request is not understood, and may be a price'],
        ['tiered', 'tiered_pricing is not understood, and may be a price'],
        ['without-price', 'it has no price for input and output tokens'],
        ['negative', 'input_cost_per_token: not a number of at least 0: "-1e-06"'],
        ['a name with spaces', '"a name with spaces" cannot be the name of a model here'],
      ],
    )
    for (const { name } of leftOut) assert.ok(!Object.hasOwn(models, name))
    assert.ok(!Object.hasOwn(models, 'sample_spec'))
  })

  it('says what is not sold of a model that stays', () => {
    const { models, notes } = convert({ isWanted: (name) => name === 'half-a-tier' })
    assert.deepEqual(models['half-a-tier'], {
      ...{ context_window: 5_096, output_most: 4_096 },
      price: { input: '1', output: '2' },
    })
    assert.deepEqual(
      notes.map(({ text }) => text),
      [
        'the tier flex has no price of output, and is not sold',
        'its output may be longer than its input: context_window is both together, 5096',
      ],
    )
  })

  it('names models by their provider as it is told, and refuses two of one name', () => {
    const prefixes = new Map([
      ['openai', 'openai/'],
      ['gemini', 'google/'],
    ])
    const { models } = convert({ prefixes, isWanted: (name) => name.includes('sample') })
    assert.deepEqual(Object.keys(models), [
      ...['openai/gpt-sample', 'claude-sample', 'google/gemini-sample', 'openai/text-embedding-sample'],
    ])
    const entry = '{ "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "litellm_provider": "maker" }'
    const twice = convert({ prefixes: new Map([['maker', 'maker/']]) }, `{"a": ${entry}, "maker/a": ${entry}}`)
    assert.deepEqual(twice.leftOut, [{ name: 'maker/a', text: 'it would be maker/a, as a is: choose one with --only' }])
  })

  it('says of a price that it looks like a rounded float, and carries it over as it is', () => {
    const { models, notes } = convert(
      {},
      '{"a": {"input_cost_per_token": 1.0000000000000002e-07, "output_cost_per_token": 1e-06, "max_tokens": 5}}',
    )
    assert.equal(models.a?.price.input, '0.10000000000000002')
    assert.match(notes[0]?.text ?? '', /^input_cost_per_token is 0\.10000000000000002 .* looks like a rounded float/)
  })

  it('becomes a file that is read as what was converted', () => {
    const { models } = convert({ withCost: true })
    const read = readPriceList(Buffer.from(writePriceList(models)))
    assert.equal(read.models.length, 6)
    for (const { settings, price } of read.models) {
      const expected = models[settings.id] ?? assert.fail(settings.id)
      assert.deepEqual([settings.contextWindow, settings.outputMost], [expected.context_window, expected.output_most])
      assert.deepEqual([price?.input, price?.output], [expected.price.input, expected.price.output])
      assert.deepEqual([price?.cacheRead, price?.cacheWrite], [expected.price.cache_read, expected.price.cache_write])
      assert.deepEqual(price?.classes, expected.price.classes)
      assert.deepEqual(price?.providerClasses, expected.price.classes)
      assert.equal(price?.providerInput, expected.price.input)
    }
  })

  it('is refused where it is of another shape', () => {
    assert.throws(() => convert({}, '[1]'), /it must be an object with a member for each model/)
    assert.deepEqual(convert({}, '{"a": 1}').leftOut, [{ name: 'a', text: 'it is not an object' }])
    assert.throws(() => convert({}, '{"a": {}, "a": {}}'), /duplicate member "a"/)
    assert.throws(() => convert({}, '{"__proto__": {}}'), /the name __proto__ is not allowed/)
  })
})
