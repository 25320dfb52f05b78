import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readPriceList } from './format.ts'
import { PriceListError } from './problems.ts'

const read = (text: string) => readPriceList(Buffer.from(text))

function problemsOf(text: string): readonly string[] {
  try {
    read(text)
  } catch (error) {
    if (error instanceof PriceListError) return error.problems
    throw error
  }
  return assert.fail('it was taken')
}

const WHOLE = `
format: farebox-prices/1
models:
  maker/one:
    display_name: The One
    owned_by: Maker Ltd
    context_window: 200000
    output_cap: 4096
    output_most: 64000
    image_tokens: 1600
    file_tokens: none
    tokenizer: o200k
    price:
      input: 3.00
      output: 15
      cache_read: 0.30
      cache_write: 3.75
      classes:
        rates: { cache_write_1h: 6 }
        above:
          - tokens: 200000
            rates: { input: 6, output: 22.5, cache_read: 0.6, cache_write: 7.5, cache_write_1h: 12 }
        tiers:
          flex: { times: 0.5 }
        tools: { web_search: 0.01 }
        tool_calls: 5
        tool_input: 20000
    cost:
      input: 2.10
  maker/painter:
    price:
      images: { 1024x1024/high: 0.167, auto/auto: "0.042" }
  maker/film:
    price: { videos: { 720P: 0.10 } }
  maker/limits: { output_cap: 10 }
`

const one = (members: string) => `format: farebox-prices/1\nmodels:\n  maker/one:\n${members}`

describe('a price list', () => {
  it('has limits and prices of every kind, as they were written', () => {
    const [first, painter, film, limits] = read(WHOLE).models
    assert.deepEqual(first?.settings, {
      ...{ id: 'maker/one', displayName: 'The One', ownedBy: 'Maker Ltd', tokenizer: 'o200k' },
      ...{ contextWindow: 200_000, outputCap: 4_096, outputMost: 64_000 },
      partTokens: { image: 1_600, audio: undefined, file: null },
    })
    assert.deepEqual(first?.price, {
      ...{ model: 'maker/one', input: '3.00', output: '15', cacheRead: '0.30', cacheWrite: '3.75' },
      classes: {
        rates: { cache_write_1h: '6' },
        above: [
          {
            tokens: 200_000,
            rates: { input: '6', output: '22.5', cache_read: '0.6', cache_write: '7.5', cache_write_1h: '12' },
          },
        ],
        tiers: { flex: { times: '0.5' } },
        tools: { web_search: '0.01' },
        ...{ tool_calls: 5, tool_input: 20_000 },
      },
      providerInput: '2.10',
    })
    assert.deepEqual(painter?.price, {
      model: 'maker/painter',
      images: { '1024x1024/high': '0.167', 'auto/auto': '0.042' },
    })
    assert.deepEqual(film?.price, { model: 'maker/film', videos: { '720P': '0.10' } })
    assert.equal(limits?.price, undefined)
  })

  it('is the same in JSON', () => {
    const json = {
      format: 'farebox-prices/1',
      models: { 'a/b': { output_cap: 10, price: { input: 1.5, output: '2' } } },
    }
    const [model] = read(JSON.stringify(json)).models
    assert.deepEqual([model?.settings.outputCap, model?.price], [10, { model: 'a/b', input: '1.5', output: '2' }])
  })

  for (const [what, text, says] of [
    ['another format', 'format: 2\nmodels: {}', 'line 1: format: must be farebox-prices/1'],
    ['no format', 'models: {}', 'line 1: format: must be farebox-prices/1'],
    [
      'a mistyped member',
      one('    contxt_window: 5\n'),
      'line 4: maker/one: contxt_window: is not a member here (did you mean context_window?)',
    ],
    [
      'a mistyped class',
      one('    price:\n      input: 1\n      output: 1\n      cache_reed: 1\n'),
      'line 7: maker/one: price.cache_reed: is not a member here (did you mean cache_read?)',
    ],
    ['a route', one('    routes: []\n'), 'line 4: maker/one: routes: is not a member here'],
    [
      'a price that is none',
      one('    price:\n      input: cheap\n      output: 1\n'),
      'line 5: maker/one: price.input: not a plain decimal number: "cheap"',
    ],
    [
      'a negative price',
      one('    price:\n      input: 1\n      output: -1\n'),
      'line 6: maker/one: price.output: a price is not negative',
    ],
    ['an exponent', one('    price: { input: 1e-3, output: 1 }\n'), /line 4: .* not a plain decimal number: "1e-3"/],
    [
      'half of a price',
      one('    price:\n      input: 1\n'),
      /^line 4: maker\/one: price: A model needs a price for input and one for output/,
    ],
    [
      'two ways to sell',
      one('    price:\n      input: 1\n      output: 1\n      images: { a/b: 1 }\n'),
      /^line 4: maker\/one: price: A model is sold per token, per image or per second/,
    ],
    [
      'a step that lacks a class',
      one(
        '    price:\n      input: 1\n      output: 1\n      classes:\n        above: [{ tokens: 5, rates: { input: 2 } }]\n',
      ),
      /^line 4: maker\/one: price: classes: above 5 needs a price of output too/,
    ],
    [
      'an unknown class',
      one('    price:\n      input: 1\n      output: 1\n      classes:\n        rates:\n          smell: 1\n'),
      /^line [789]: maker\/one: price\.classes\.rates/,
    ],
    [
      'a picture without a quality',
      one('    price:\n      images: { big: 1 }\n'),
      /^line 4: maker\/one: price: images: "big" must be size\/quality/,
    ],
    [
      'tokens that are none',
      one('    output_cap: 4k\n'),
      /^line 4: maker\/one: output_cap: must be a whole number above 0/,
    ],
    ['no tokens', one('    output_cap: 0\n'), /output_cap: must be a whole number above 0/],
    ['nothing for a member', one('    output_cap:\n'), /^line 4: maker\/one: output_cap: must be a single value/],
    [
      'an unknown tokenizer',
      one('    tokenizer: x\n'),
      'line 4: maker/one: tokenizer: must be one of o200k, cl100k, bytes_3',
    ],
    ['a cost without a price', one('    cost: { input: 1 }\n'), /^line 4: maker\/one: cost: needs a price beside it/],
    ['a name that is none', 'format: farebox-prices/1\nmodels:\n  a b: {}\n', /^line 3: "a b": is no name of a model/],
    ['a list of models', 'format: farebox-prices/1\nmodels: []\n', /^line 2: models: /],
    ['a text', 'hello', /^line 1: /],
  ] as const)
    it(`says line, model and member of ${what}`, () => {
      const [problem = ''] = problemsOf(text)
      if (typeof says === 'string') assert.equal(problem, says)
      else assert.match(problem, says)
    })

  it('says all problems at once', () => {
    assert.equal(problemsOf(one('    a: 1\n    b: 2\n    output_cap: x\n')).length, 3)
  })

  it('has no more than a thousand models', () => {
    const models = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, {}]))
    const list = (count: number) => JSON.stringify({ format: 'farebox-prices/1', models: models(count) })
    assert.equal(read(list(1_000)).models.length, 1_000)
    assert.match(problemsOf(list(1_001))[0] ?? '', /models: has more than 1000 models: split it/)
  })
})
