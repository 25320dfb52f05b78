import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import type { Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { roomOfAnswer } from './pictures.ts'
import { tell } from './tell.ts'

const LEFT = { balance: undefined, budget: undefined }
const JSON_TYPE = { 'content-type': 'application/json' }

function told(body: string | Buffer) {
  const answer = { status: 200, headers: JSON_TYPE, body }
  const used = { id: 'r' as Id, operationId: 'o', answer, cost: usd('0.1'), held: undefined, balance: undefined }
  return tell(used, LEFT, roomOfAnswer())
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

describe('an answer that is nested', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

  it('is told as JSON as deep as anybody needs', () => {
    assert.deepEqual(told(nested(60)).structured.result, JSON.parse(nested(60)))
  })

  for (const depth of [65, 1_000, 3_000, 50_000])
    it(`is told as a text where it is nested too deep to stand within another: ${depth}`, () => {
      const { structured, isError } = told(nested(depth))
      assert.equal(isError, false)
      assert.ok(depthOf(structured) < 10)
      assert.equal(structured.cost_usd, '0.100000000')
      if (depth <= 3_000) assert.equal(structured.result_text, nested(depth))
      // What tells of it can be written.
      assert.ok(JSON.stringify(structured).length > 0)
    })
})

describe('a large answer', () => {
  const picture = `iVBORw0KGgo${'A'.repeat(2_000_000)}`
  const numbers = `[${'1,'.repeat(700_000)}1]`

  /** The longest text that was read as JSON on the way. */
  function read(act: () => void): number {
    const parse = mock.method(JSON, 'parse')
    try {
      act()
      return Math.max(0, ...parse.mock.calls.map(({ arguments: [one] }) => String(one).length))
    } finally {
      parse.mock.restore()
    }
  }

  for (const [title, body] of Object.entries<string | Buffer>({ 'a text': numbers, bytes: Buffer.from(numbers) }))
    it(`is not read: its beginning is shown, ${title}`, () => {
      const longest = read(() => {
        const { structured, isError } = told(body)
        assert.equal(isError, false)
        assert.equal(structured.result_text, numbers.slice(0, 100_000))
        assert.equal(Object(structured.truncated).total_characters, numbers.length)
      })
      assert.equal(longest, 0)
    })

  it('is shown whole where all that is large in it are pictures', () => {
    const longest = read(() => {
      const { structured, content } = told(JSON.stringify({ data: [{ b64_json: picture }], created: 1 }))
      assert.deepEqual(structured.result, { data: [{ b64_json: '[picture 1]' }], created: 1 })
      assert.deepEqual(content.filter(({ type }) => type === 'image').length, 1)
    })
    assert.ok(longest < 1_000, String(longest))
  })

  it('has its pictures where the rest of it is large too', () => {
    const { structured, content } = told(`{"b":"${picture}","a":${numbers}}`)
    assert.ok(String(structured.result_text).startsWith('{"b":"[picture 1]","a":[1,1'))
    assert.equal(content.filter(({ type }) => type === 'image').length, 1)
  })
})
