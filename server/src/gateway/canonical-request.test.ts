import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SHOWN_CHARACTERS } from '../wording/shown-text.ts'
import { CANONICAL_BYTES, canonicalOf } from './canonical-request.ts'

type Given = { readonly body?: string; readonly query?: string; readonly model?: string; readonly beta?: string }

function of({ body, query = '', model, beta }: Given) {
  return canonicalOf({
    operation: { id: 'an_operation' },
    ...(model !== undefined && { model }),
    query,
    rawBody: body === undefined ? null : Buffer.from(body),
    headers: (names): Record<string, string> =>
      beta !== undefined && names.includes('openai-beta') ? { 'openai-beta': beta } : {},
  })
}

const isSame = (one: Given, other: Given) => of(one).digest.equals(of(other).digest)

describe('what a person approves', () => {
  it('is the same call in another order and spacing, and no other', () => {
    assert.ok(isSame({ body: '{"a":1,"b":[2,"x"]}' }, { body: ' { "b" : [2, "x"], "a" : 1 }' }))
    assert.ok(isSame({ query: 'a=1&b=2&a=3' }, { query: 'b=2&a=1&a=3' }))
    for (const [one, other] of [
      [{ body: '{"a":[1,2]}' }, { body: '{"a":[2,1]}' }],
      [
        { body: '{"from":9007199254740993,"to":9007199254740992}' },
        { body: '{"from":9007199254740992,"to":9007199254740993}' },
      ],
      [{ body: '{"a":"1"}' }, { body: '{"a":1}' }],
      [{ query: 'a=%FE' }, { query: 'a=%FF' }],
      [{ query: '?a=1' }, { query: 'a=1' }],
      [{ query: 'a' }, { query: 'a=' }],
      [{ query: 'a=1&a=2' }, { query: 'a=2&a=1' }],
      [
        { body: '{}', beta: 'one' },
        { body: '{}', beta: 'two' },
      ],
      [{ body: '{}', beta: 'one' }, { body: '{}' }],
      [{ model: 'one' }, { model: 'two' }],
      [{ body: '{}' }, {}],
    ] as const)
      assert.ok(!isSame(one, other), JSON.stringify([one, other]))
  })

  it('is byte for byte what is too large to be read again', () => {
    const large = `{"a":"${'x'.repeat(CANONICAL_BYTES)}"}`
    assert.ok(isSame({ body: large }, { body: large }))
    assert.ok(!isSame({ body: large }, { body: `${large} ` }))
    const { text, isWhole } = of({ body: large, model: 'the-model', query: 'q=1' }).show()
    assert.equal(isWhole, false)
    assert.match(text, /"model": "the-model"[\s\S]*"q": "1"[\s\S]*\{"a":"xxx/)
  })
})

describe('what a person is shown', () => {
  it('has every digit and no character that is not seen', () => {
    const hidden = '\u202e\u2066\u200b\u{e0041}\u00ad\u2028\u00a0\ufeff'
    const { text, isWhole } = of({
      body: JSON.stringify({ [`n${hidden}`]: hidden }).replace('}', ',"id":1790000000000000001}'),
    }).show()
    assert.ok(isWhole)
    assert.match(text, /1790000000000000001/)
    assert.doesNotMatch(text.replaceAll('\n', ''), /[^\x20-\x7e]/)
    assert.match(text, /\\u202e\\u2066\\u200b\\udb40\\udc41/)
    assert.match(of({ query: 'a=%E2%80%AEx' }).show().text, /"a": "\\u202ex"/)
  })

  it('has what is short first, and long texts by their beginning', () => {
    const { text, isWhole } = of({
      body: JSON.stringify({ padding: 'x'.repeat(16_000), to: 'somebody', list: [1] }),
    }).show()
    assert.equal(isWhole, false)
    assert.ok(text.indexOf('somebody') < text.indexOf('padding'))
    assert.match(text, /and 14000 characters more/)
    assert.match(text, /"list": \[\n {4}1\n {2}\]/)
  })

  it('is no more than can be shown, however it is nested', () => {
    const depth = 60
    const body = `{"x":${'['.repeat(depth)}${'1,'.repeat(15_000)}1${']'.repeat(depth)}}`
    assert.ok(body.length < CANONICAL_BYTES)
    const { text, isWhole } = of({ body }).show()
    assert.equal(isWhole, false)
    assert.ok(text.length <= SHOWN_CHARACTERS)
    assert.equal(
      of({ body: `{"x":${'['.repeat(depth)}${'1,'.repeat(500_000)}1${']'.repeat(depth)}}` }).show().text.length,
      SHOWN_CHARACTERS,
    )
  })

  it('is whole where it fits', () => {
    assert.deepEqual(of({ body: '{"a":{},"b":[],"c":null,"d":[true]}' }).show(), {
      text: '{\n  "c": null,\n  "a": {},\n  "b": [],\n  "d": [\n    true\n  ]\n}',
      isWhole: true,
    })
  })
})
