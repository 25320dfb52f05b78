import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { toldAnswer, upstreamModelIn } from './told-answer.ts'

const told = { protocol: 'openai', model: 'maker/model', cost: '0.000001000' } as const
const tell = (text: string, more: Partial<Parameters<typeof toldAnswer>[2]> = {}) =>
  toldAnswer(Buffer.from(text), JSON.parse(text), { ...told, ...more }).toString()

describe('a whole answer as its caller is given it', () => {
  it('has the model as it was asked for, and what it cost in its usage; every other byte stays', () => {
    assert.equal(
      tell('{ "id":"a", "model" : "vendor-1", "usage": { "total": 3 } , "x": [1,  2] }\n'),
      '{ "id":"a", "model" : "maker/model", "usage": { "total": 3,"cost_usd":"0.000001000" } , "x": [1,  2] }\n',
    )
    assert.equal(
      tell('{"usageMetadata":{},"modelVersion":"v"}', { protocol: 'gemini' }),
      '{"usageMetadata":{"cost_usd":"0.000001000"},"modelVersion":"v"}',
    )
    // What an upstream says that it cost is not what we charge.
    assert.equal(tell('{"usage":{"cost_usd":"9"}}'), '{"usage":{"cost_usd":"0.000001000"}}')
  })

  it('stays as it came where it names no model and reports no usage, or has other things there', () => {
    for (const text of [
      '{}',
      '[]',
      '"a"',
      '{"model":7,"usage":null}',
      '{"usage":[]}',
      '{"usage":3}',
      '{"a":{"model":"x"}}',
    ])
      assert.equal(tell(text), text)
  })

  it('differs from what came in those two alone, whatever it is', () => {
    fc.assert(
      fc.property(fc.json(), fc.dictionary(fc.string(), fc.jsonValue()), (_, members) => {
        const before = { ...members, model: 'vendor', usage: { ...members } }
        const after = JSON.parse(tell(JSON.stringify(before)))
        assert.deepEqual(
          after,
          JSON.parse(JSON.stringify({ ...before, model: told.model, usage: { ...members, cost_usd: told.cost } })),
        )
      }),
      { seed },
    )
  })

  it('comes with the name that its upstream gives the model, if that can stand in a header', () => {
    assert.equal(upstreamModelIn({ model: 'vendor-1-0815' }, 'vendor-1'), 'vendor-1-0815')
    assert.equal(upstreamModelIn({ modelVersion: 'v7' }, 'vendor-1'), 'v7')
    assert.equal(upstreamModelIn({ model: 'a\r\nb' }, 'vendor-1'), 'vendor-1')
    assert.equal(upstreamModelIn(undefined, 'ä'), undefined)
  })
})
