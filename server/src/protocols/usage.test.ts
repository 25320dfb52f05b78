import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { createFrameSplitter, type Frame } from './sse.ts'
import { endOfMembers, endOfUsage, reportedOf, withoutNullUsage } from './usage.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })

function frameOf(text: string): Frame {
  const splitter = createFrameSplitter()
  splitter.feed(Buffer.from(text))
  const frame = splitter.next()
  assert.ok(frame)
  return frame
}

function withoutUsage(json: string): string {
  return withoutNullUsage(frameOf(`data: ${json}\n\n`))
    .toString()
    .slice('data: '.length, -2)
}

function withCost(text: string, endOf: (frame: Frame) => number = endOfUsage): string | undefined {
  const frame = frameOf(text)
  const at = endOf(frame)
  return at === -1 ? undefined : `${frame.bytes.toString('utf8', 0, at)},"c":1${frame.bytes.toString('utf8', at)}`
}

const words = fc.oneof(
  fc.string(),
  fc.constantFrom(',"usage":null', '\\', '\\"', '"', ',"usage":null}', '{', '}]', 'é€😀'),
)
/** Without a backslash: with one before, JSON.parse of this Node can take the name `"` for `\\`. */
const name = words.filter((text) => !text.includes('\\'))
const value = fc.letrec((tie) => ({
  any: fc.oneof({ maxDepth: 3 }, words, fc.constant(null), fc.integer(), tie('object'), tie('list')),
  object: fc.dictionary(fc.oneof(name, fc.constant('usage')), tie('any'), { maxKeys: 4 }),
  list: fc.array(tie('any'), { maxLength: 3 }),
})).any
const chunk = fc
  .array(fc.tuple(name, value), { maxLength: 4 })
  .chain((members) => fc.nat(members.length).map((at) => members.toSpliced(at, 0, ['usage', null])))
  .map((members) => `{${members.map(([key, member]) => `${JSON.stringify(key)}:${JSON.stringify(member)}`).join()}}`)

describe('a usage that is null', () => {
  it('is taken out, and everything else stays as it came', () => {
    assert.equal(withoutUsage('{"a":1,"usage":null}'), '{"a":1}')
    assert.equal(withoutUsage('{"a":1,"usage":null,"obfuscation":"}]\\""}'), '{"a":1,"obfuscation":"}]\\""}')
    assert.equal(withoutUsage('{ "a" : 1,"usage":null , "b":{"c":[{}]} }'), '{ "a" : 1 , "b":{"c":[{}]} }')
  })

  it('stays where it is not one of the chunk itself', () => {
    for (const json of [
      '{"usage":null,"a":{"b":1,"usage":null}}',
      '{"usage":null,"a":[{"b":1,"usage":null}],"c":{}}',
      '{"usage":null,"a":",\\"usage\\":null"}',
    ]) {
      assert.equal(withoutUsage(json), json)
    }
  })

  it('stays where it is written in a way that is not looked for', () => {
    for (const json of ['{"usage":null,"a":1}', '{"a":1, "usage": null}', '{"a":1,"us\\u0061ge":null}']) {
      assert.equal(withoutUsage(json), json)
    }
    const lines = 'data: {"a":1\ndata: ,"usage":null}\n\n'
    assert.equal(withoutNullUsage(frameOf(lines)).toString(), lines)
  })

  it('is all that ever goes, whatever stands around it', () => {
    fc.assert(
      fc.property(chunk, (json) => {
        const { usage, ...others } = JSON.parse(json)
        fc.pre(usage === null)
        const left = withoutUsage(json)
        if (left === json) return
        assert.equal(left.length, json.length - ',"usage":null'.length)
        assert.deepEqual({ ...JSON.parse(left), usage: null }, { ...others, usage: null })
      }),
      { numRuns: CASES, seed },
    )
  })
})

describe('a usage that takes the cost', () => {
  it('takes it as its last member', () => {
    assert.equal(
      withCost('event: x\ndata: {"usage":{"a":{"b":"}"}} ,"c":{}}\n\n'),
      'event: x\ndata: {"usage":{"a":{"b":"}"},"c":1} ,"c":{}}\n\n',
    )
    assert.equal(withCost('data: {"usage":{"a":1 }}\r\n\r\n'), 'data: {"usage":{"a":1 ,"c":1}}\r\n\r\n')
  })

  it('is the one of the frame itself, not one inside or in a text', () => {
    assert.equal(
      withCost('data: {"x":{"usage":{"a":1}},"t":"\\"usage\\":{\\"a\\":1}","usage":{"b":2}}\n\n'),
      'data: {"x":{"usage":{"a":1}},"t":"\\"usage\\":{\\"a\\":1}","usage":{"b":2,"c":1}}\n\n',
    )
  })

  it('is the last of several in one frame, as parsers read it', () => {
    const cost = withCost('data: {"usage":{"a":1},"b":2,"usage":{"a":3},"d":4}\n\n')
    assert.equal(cost, 'data: {"usage":{"a":1},"b":2,"usage":{"a":3,"c":1},"d":4}\n\n')
    assert.equal(JSON.parse(cost.slice('data: '.length)).usage.c, 1)
  })

  it('stays as it is where it is no object with members, or in several lines', () => {
    for (const text of [
      'data: {"usage":{}}\n\n',
      'data: {"usage":{  }}\n\n',
      'data: {"usage":[1,2]}\n\n',
      'data: {"usage":"a }"}\n\n',
      'data: {"a":{"usage":{"b":1}}}\n\n',
      'data: {"usage":\ndata: {"a":1}}\n\n',
      ': nothing\n\n',
    ]) {
      assert.equal(withCost(text), undefined, text)
    }
  })
})

describe('a frame that takes the cost beside its other members', () => {
  it('takes it as the last of them, whatever stands in them or behind', () => {
    for (const [before, behind] of [
      ['data: {"a":{"b":"}"}', '}\n\n'],
      ['data:{"a":[{}] ', '} \t\r\n\r\n'],
      ['event: x\ndata: {"a":1', '}\nid: }\n\n'],
      ['\uFEFFdata: {"é":"}"', '}\r\n\r\n'],
    ] as const)
      assert.equal(withCost(before + behind, endOfMembers), `${before},"c":1${behind}`)
  })

  it('stays as it is where it has no members, or its data is in several lines', () => {
    for (const text of ['data: {}\n\n', 'data: { }\n\n', 'data: {"a":1\ndata: }\n\n', ': nothing\n\n'])
      assert.equal(withCost(text, endOfMembers), undefined, text)
  })
})

describe('a report', () => {
  it('has a zero that was said, and no member that was not', () => {
    const report = reportedOf({ input: 0, output: undefined, cacheRead: 3, cacheWrite: undefined })
    assert.deepEqual(report, { input: 0, cacheRead: 3 })
    assert.deepEqual(Object.keys(report), ['input', 'cacheRead'])
  })
})
