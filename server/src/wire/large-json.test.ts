import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { digestHead, digestOf } from '../gateway/request-digest.ts'
import { Fault } from '../kernel/fault.ts'
import { parseJson } from './json.ts'
import { createLargeJson } from './large-json.ts'

const LIMITS = { jsonDepth: 64, jsonNodes: 1_000, jsonValues: 5_000 }
const largeJson = createLargeJson(LIMITS)
after(largeJson.close)

function faultOf(work: () => unknown): readonly [code: string, message: string] | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    assert.ok(error instanceof Fault)
    return [error.code, error.message]
  }
}

describe('a large body', () => {
  it('is what parsing it at once gives, in the order of asking', async () => {
    const values = [
      { text: 'ü'.repeat(2_000_000), list: [1, null, 'two', { three: 3 }] },
      ['a', { b: false }],
      'text',
      7,
    ]
    const bodies = values.map((value) => Buffer.from(JSON.stringify(value)))
    const read = await Promise.all(bodies.map((body) => largeJson.read(body)))
    assert.deepEqual(
      read.map(({ value }) => value()),
      values,
    )
    assert.equal(read[0]?.value(), read[0]?.value(), 'it is parsed once')
  })

  it('is refused for the same reasons, in the same words', async () => {
    const wrong = {
      'is no JSON': '{"a":',
      'is no UTF-8': Buffer.from([0x22, 0xff, 0x22]),
      'has a name twice': '{"a":1,"a":2}',
      'is too deep': '['.repeat(65) + ']'.repeat(65),
      'has too many nodes': `[${'[],'.repeat(1_000)}1]`,
      'has too many values': `[${'1,'.repeat(5_001)}1]`,
      'has a name that reaches a prototype': '{"__proto__":1}',
    }
    for (const [what, text] of Object.entries(wrong)) {
      const bytes = Buffer.from(text)
      const expected = faultOf(() => parseJson(bytes, LIMITS))
      assert.ok(expected !== undefined, what)
      assert.deepEqual(faultOf((await largeJson.read(bytes)).value), expected, what)
    }
  })

  it('has the digest that its request has, be it JSON or not', async () => {
    const asked = { operation: { id: 'chat' }, model: 'm', query: 'a=b' }
    for (const text of [`"${'ü'.repeat(1_000_000)}"`, '{"a":']) {
      const rawBody = Buffer.from(text)
      const { digest } = await largeJson.read(rawBody, digestHead(asked))
      assert.equal(digest, digestOf({ ...asked, rawBody }))
      assert.equal(digestOf({ ...asked, rawBody: null, digest }), digest, 'it is not worked out again')
    }
  })

  it('is not parsed by a thread that was ended, and nobody waits for it', async () => {
    const ended = createLargeJson(LIMITS)
    const waiting = [ended.read(Buffer.from('1')), ended.read(Buffer.from('2'))]
    await ended.close()
    for (const { value, digest } of [...(await Promise.all(waiting)), await ended.read(Buffer.from('3'))])
      assert.deepEqual([faultOf(value)?.[0], digest], ['overloaded', undefined])
  })
})
