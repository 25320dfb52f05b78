import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { Fault } from '../kernel/fault.ts'
import { parseJson } from './json.ts'

const LIMITS = { jsonDepth: 64, jsonNodes: 30_000, jsonValues: 524_288 }
const parse = (text: string | Buffer) => parseJson(Buffer.from(text), LIMITS)
const refusedAs = (code: string, hint?: RegExp) => (error: unknown) =>
  error instanceof Fault && error.code === code && (hint === undefined || hint.test(error.message))

describe('a JSON body', () => {
  it('comes out as any parser would read it', () => {
    const names = fc.string({ unit: 'binary' }).filter((name) => name !== '__proto__')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.string({ unit: 'binary' }),
        fc.constantFrom('[[[[', '}{', '"', '\\"', '\\', '\\\\"', ':', '{"a":1,"a":2}'),
        fc.double({ noDefaultInfinity: true, noNaN: true }),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value')),
        fc.dictionary(names, tie('value')),
      ),
    }))
    fc.assert(
      fc.property(value, fc.constantFrom(0, 1, 2), (sent, indent) => {
        const text = JSON.stringify(sent, undefined, indent)
        fc.pre(text.isWellFormed())
        assert.deepEqual(parse(text), JSON.parse(text))
      }),
      { numRuns: 2_000, seed },
    )
  })

  it('is taken or refused as a whole, whatever bytes it is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          const value = parse(Buffer.from(bytes))
          assert.deepEqual(value, JSON.parse(Buffer.from(bytes).toString()))
        } catch (error) {
          assert.ok(error instanceof Fault && error.status === 400, String(error))
        }
      }),
      { numRuns: 2_000, seed },
    )
  })

  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
    [' [ { "b" : ', '}]'],
  ] as const) {
    const levels = open.includes('[ {') ? 2 : 1
    const nested = (depth: number) => `${open.repeat(depth / levels)}1${close.repeat(depth / levels)}`
    it(`is taken at 64 levels of ${open}…${close} and not beyond`, () => {
      assert.doesNotThrow(() => parse(nested(64)))
      assert.throws(() => parse(nested(64 + levels)), refusedAs('body_too_deep'))
    })
  }

  it('is refused at 10,000 levels, and at 500,000 that never close', () => {
    assert.throws(() => parse('['.repeat(10_000) + ']'.repeat(10_000)), refusedAs('body_too_deep'))
    assert.throws(() => parse('{"a":'.repeat(100_000)), refusedAs('body_too_deep'))
    assert.throws(() => parse('['.repeat(500_000)), refusedAs('body_too_deep'))
  })

  it('is refused with a number of more digits than a number has, and taken with many in a text', () => {
    const digits = '9'.repeat(4_300)
    for (const number of [digits, `-${digits}`, `0.${digits}`, `1e${digits}`])
      assert.throws(
        () => parseJson(Buffer.from(`{"a":[${number}]}`), LIMITS),
        /A number is too long: the limit is 32 characters/,
      )
    assert.deepEqual(parseJson(Buffer.from(`{"${digits}":"${digits}","b":-1.5e+300}`), LIMITS), {
      [digits]: digits,
      b: -1.5e300,
    })
  })

  it('does not count what stands in strings as depth', () => {
    const text = JSON.stringify({ content: '[{"\\'.repeat(1_000) })
    assert.deepEqual(parse(text), JSON.parse(text))
  })

  for (const text of [
    '{"__proto__":{"admin":true}}',
    '{"a":[{"b":{"__proto__":1}}]}',
    '{"\\u005f_proto__":1}',
    '{"__pr\\u006fto__":null}',
    '{"constructor":{"prototype":{"admin":true}}}',
    '{"a":{"constr\\u0075ctor":{"pr\\u006ftotype":1}}}',
  ]) {
    it(`${text} is refused, since it could reach a prototype`, () => {
      assert.throws(() => parse(text), refusedAs('invalid_request', /is not allowed/))
    })
  }

  for (const text of [
    '{"content":"what does __proto__ do?"}',
    '{"constructor":"Ferrari"}',
    '{"properties":{"constructor":{"type":"string"}}}',
    '{"prototype":1,"toString":2,"hasOwnProperty":3}',
  ]) {
    it(`${text} is an ordinary body`, () => assert.deepEqual(parse(text), JSON.parse(text)))
  }

  for (const text of [
    '{"model":"cheap","model":"dear"}',
    '{"a":1,"b":2,"\\u0061":3}',
    '{"a":{"max":1,"max":1}}',
    '[{"a":1},{"b":1,"b":1}]',
  ]) {
    it(`${text} is refused, since two readers could take different values from it`, () => {
      assert.throws(() => parse(text), refusedAs('invalid_json', /Duplicate JSON key "\w+"/))
    })
  }

  for (const [what, bytes] of Object.entries({
    'a lone continuation byte': [0x22, 0x80, 0x22],
    'an overlong slash': [0x22, 0xc0, 0xaf, 0x22],
    'a surrogate half': [0x22, 0xed, 0xa0, 0x80, 0x22],
    'beyond Unicode': [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    'a character cut short': [0x22, 0xe2, 0x82, 0x22],
    'UTF-16': [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00],
    'a NUL byte': [0x00],
  })) {
    it(`${what} is refused`, () => assert.throws(() => parse(Buffer.from(bytes)), refusedAs('invalid_json')))
  }

  for (const text of ['{', '{"a":}', "{'a':1}", '{"a":1,}', '01', 'NaN', '"\n"', '{"a":1}x', '\ufeff{}', ' ']) {
    it(`${JSON.stringify(text)} is refused without being quoted`, () => {
      assert.throws(() => parse(text), refusedAs('invalid_json', /^The body is not valid JSON in UTF-8\.[^{]*$/))
    })
  }

  it('is refused when it has too many names, objects and arrays to build quickly', () => {
    assert.doesNotThrow(() => parse(`[${'{},'.repeat(29_998)}1]`))
    assert.throws(() => parse(`[${'{},'.repeat(30_000)}1]`), refusedAs('invalid_request', /30000/))
    assert.throws(
      () => parse(`{${Array.from({ length: 30_000 }, (_, i) => `"${i}":0`)}}`),
      refusedAs('invalid_request', /30000/),
    )
  })
})
