import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { idsOfContract, problemsWith, type Wanted } from './new-operation.ts'
import { ROOT } from './root.ts'

const TIDES: Wanted = {
  id: 'harbour_tides',
  summary: 'High and low water of a harbour',
  asks: 'harbour tides',
  price: '0.004',
  category: 'traffic',
  method: 'GET',
  path: '/apis/v1/harbour/tides',
  parameters: ['harbour'],
  slot: 'harbours',
  upstreamPath: '/v1/tides',
  credential: undefined,
}

const PROJECT = { root: ROOT, ids: idsOfContract() }

describe('what can not be made as a new operation', () => {
  it('has no problem where all is well, with a new provider, with names in its paths, and beside another operation', () => {
    for (const change of [
      {},
      { path: '/apis/v1/{social_a}/tides', upstreamPath: '/v2/{social_a}/tides.json', method: 'POST' },
      { slot: 'financial', credential: 'x-api-key' },
      { slot: 'financial', upstreamPath: '/financial-metrics/snapshot', method: 'POST' },
      { credential: 'authorization', price: '12', parameters: ['harbour', 'inDays', 'class'] },
    ])
      assert.deepEqual(problemsWith({ ...TIDES, ...change }, PROJECT), [], JSON.stringify(change))
  })

  const wrong: Readonly<Record<string, readonly [change: Partial<Wanted>, sentence: RegExp]>> = {
    'an id of one word': [{ id: 'tides' }, /^The id "tides" must be two or more lower-case words/],
    'an id in capitals': [{ id: 'Harbour_tides' }, /^The id "Harbour_tides" must be/],
    'an id that is sold': [{ id: 'tag_detail' }, /^There is an operation tag_detail already\. Choose another id\.$/],
    'an id of what is free': [{ id: 'get_usage' }, /^There is an operation get_usage already/],
    'a file of that name': [{ id: 'website_traffic' }, /operations\/website-traffic\.ts is there already\.$/],
    'a path that begins with a word of a setting': [
      { path: '/apis/v1/social_a/tides' },
      /^The word "social_a" in the path is what a setting spells/,
    ],
    'no summary': [{ summary: '' }, /^Give --summary "what it does"/],
    'a summary with a full stop': [{ summary: 'High and low water.' }, /^Give --summary .* without a full stop\.$/],
    'no words': [{ asks: ' ' }, /^Give --asks /],
    'no price': [{ price: '' }, /^Give --price, in USD for a call, such as 0\.004/],
    'a price of nothing': [{ price: '0' }, /^Give --price/],
    'a price finer than a nano': [{ price: '0.0000000001' }, /^Give --price/],
    'a category that is not one of data': [
      { category: 'models' },
      /^Give --category: one of social, finance, traffic\.$/,
    ],
    'a parameter that is no name': [{ parameters: ['a-b'] }, /^The parameter "a-b" must be letters/],
    'a parameter twice': [{ parameters: ['a', 'a'] }, /^Name each parameter once\.$/],
    'another method': [{ method: 'PUT' }, /^The method is GET or POST, not PUT\.$/],
    'a path elsewhere': [{ path: '/v1/tides' }, /^The path "\/v1\/tides" must begin with \/apis\/v1\//],
    'a path that is taken': [
      { path: '/apis/v1/financial/financial-metrics/snapshot' },
      /^GET .* is financial_metrics_snapshot already\. Choose another --path\.$/,
    ],
    'a name that nothing spells': [
      { path: '/apis/v1/{sea}/tides' },
      /^Nothing spells \{sea\}\. These names are configured: .*social_a/,
    ],
    'a path of the provider with a query': [
      { upstreamPath: '/tides?a=1' },
      /^The path of the upstream "\/tides\?a=1" must begin/,
    ],
    'a provider of models': [{ slot: 'openai' }, /^The upstream openai is not one of data\. Choose another/],
    'a provider that acts for users': [{ slot: 'social_a_account' }, /acts for users who linked an account/],
    'what another operation asks of it': [
      { slot: 'financial', upstreamPath: '/financial-metrics/snapshot' },
      /^financial_metrics_snapshot asks GET \/financial-metrics\/snapshot of financial already\.$/,
    ],
    'a header that is none of ours': [
      { credential: 'cookie' },
      /^The credential is sent in one of x-api-key, api-key, authorization\.$/,
    ],
    'another header than its provider has': [
      { slot: 'traffic', credential: 'x-api-key' },
      /^The upstream traffic takes its credential in api-key: leave --credential out\.$/,
    ],
  }
  for (const [what, [change, sentence]] of Object.entries(wrong))
    it(`is told in a sentence: ${what}`, () => {
      const problems = problemsWith({ ...TIDES, ...change }, PROJECT)
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', sentence)
    })
})
