import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ASK, assertMembers, startTestSandbox, type TestSandbox } from '../test-sandbox.ts'

let sandbox: TestSandbox
before(async () => {
  sandbox = await startTestSandbox()
})
after(() => sandbox.stop())

describe('rerank', () => {
  const rank = async (change: object) =>
    (await sandbox.ask({ ...ASK.rerank, body: { ...ASK.rerank.body, ...change } })).json()

  it('answers model, usage and results, the most relevant first, each with index, score and text', async () => {
    const { documents } = ASK.rerank.body
    const answer = await rank({})
    assertMembers(answer, { model: 'string', object: 'string', usage: 'object', results: 'array' })
    assert.equal(answer.model, 'm')
    assert.equal(answer.results.length, 3)
    for (const result of answer.results) {
      assertMembers(result, { index: 'integer', relevance_score: 'number', document: 'object' })
      assert.deepEqual(result.document, { text: documents[result.index] })
    }
    const scores = answer.results.map((result: { relevance_score: number }) => result.relevance_score)
    assert.deepEqual(
      scores,
      scores.toSorted((one: number, other: number) => other - one),
    )
    assert.equal(answer.results[0].index, 1)
  })

  it('counts a token for every 4 bytes of UTF-8, rounded up, query and documents each by itself', async () => {
    // 5 bytes, 4 bytes, 1 byte, 9 bytes (three characters of three bytes), nothing.
    const { usage } = await rank({ query: 'abcde', documents: ['abcd', 'a', '请求成', ''] })
    assert.deepEqual(usage, { total_tokens: 2 + 1 + 1 + 3 + 0, prompt_tokens: 7 })
  })

  it('returns at most top_n, and counts all documents all the same', async () => {
    const [all, top] = [await rank({}), await rank({ top_n: 2 })]
    assert.deepEqual(top.results, all.results.slice(0, 2))
    assert.deepEqual(top.usage, all.usage)
  })

  it('leaves documents out on return_documents false, takes them as objects with text, and model is optional', async () => {
    const { results } = await rank({ return_documents: false, documents: [{ text: 'a' }, 'b'] })
    for (const result of results) assertMembers(result, { index: 'integer', relevance_score: 'number' })
    assert.equal((await rank({ model: undefined })).model, 'sandbox-rerank')
  })

  it('scores a document by query, text and seed alone', async () => {
    const { documents } = ASK.rerank.body
    const scores = async (texts: readonly string[]) => {
      const results: { document: { text: string }; relevance_score: number }[] = (await rank({ documents: texts }))
        .results
      return new Map(results.map(({ document, relevance_score }) => [document.text, relevance_score]))
    }
    const [forwards, backwards] = [await scores(documents), await scores(['more', ...documents.toReversed()])]
    for (const text of documents) assert.equal(forwards.get(text), backwards.get(text))
  })

  for (const [what, body] of [
    ['no query', { documents: ['a'] }],
    ['an empty query', { query: '', documents: ['a'] }],
    ['no documents', { query: 'a' }],
    ['too many documents', { query: 'a', documents: Array(10_001).fill('a') }],
    ['empty documents', { query: 'a', documents: [] }],
    ['a document that is a number', { query: 'a', documents: [1] }],
    ['top_n 0', { query: 'a', documents: ['a'], top_n: 0 }],
    ['a body that is no JSON', '{'],
    ['a body that is no object', []],
  ] as const) {
    it(`refuses ${what} with 422`, async () => {
      const refused = await sandbox.ask({ ...ASK.rerank, body })
      assert.equal(refused.status, 422)
      assert.ok(Array.isArray(refused.json().detail))
    })
  }
})
