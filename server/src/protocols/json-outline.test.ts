import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { readOutline } from './json-outline.ts'
import { picturesIn } from './openai-images.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })
/** Nothing is too much, and there are many turns. */
const ALL = {
  keptBytes: 1e9,
  textBytes: 1e9,
  memberBytes: 1e9,
  numbersBytes: 1e9,
  stringBytes: 1e9,
  mostBytes: 1e9,
  depth: 1e9,
  turnSteps: 7,
}
const LITTLE = {
  keptBytes: 40,
  textBytes: 40,
  memberBytes: 20,
  numbersBytes: 20,
  stringBytes: 60,
  mostBytes: 1e9,
  depth: 1e9,
  turnSteps: 7,
}

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a"b', 'a\\', '[1,2', '\\"]', '…'))
const json = fc.oneof(fc.jsonValue({ maxDepth: 5 }), fc.dictionary(text, fc.array(text)))
/** Names are kept. */
const name = fc.string({ unit: 'binary', maxLength: 8 })
const long = fc.string({ unit: 'binary', minLength: 30, maxLength: 100 })
const layout = fc.constantFrom(undefined, 1, 3)

/** As escaped as JSON can be. */
const escaped = (value: string) =>
  `"${Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`

describe('the outline of a JSON text', () => {
  it('is all of it where nothing in it is long', async () => {
    await fc.assert(
      fc.asyncProperty(json, layout, async (value, indent) => {
        const written = JSON.stringify(value, undefined, indent)
        assert.deepEqual(await readOutline(Buffer.from(written), ALL), JSON.parse(written))
      }),
      { numRuns: CASES, seed },
    )
  })

  it('has every member of the outermost object, and short values as they are, however little is kept', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(name, fc.oneof(fc.jsonValue({ maxDepth: 4 }), long)),
        layout,
        async (members, indent) => {
          const written = JSON.stringify(members, undefined, indent)
          const outline = Object(await readOutline(Buffer.from(written), LITTLE))
          assert.deepEqual(Object.keys(outline), Object.keys(JSON.parse(written)))
          for (const [name, value] of Object.entries(JSON.parse(written))) {
            if (typeof value !== 'object' && typeof value !== 'string') assert.equal(outline[name], value)
            assert.equal(typeof outline[name], typeof value)
            assert.equal(Array.isArray(outline[name]), Array.isArray(value))
            if (typeof value === 'string') assert.equal(outline[name] === '', value === '')
            if (Buffer.byteLength(JSON.stringify({ [name]: value }, undefined, indent)) <= LITTLE.memberBytes)
              assert.deepEqual(outline[name], value)
          }
        },
      ),
      { numRuns: CASES, seed },
    )
  })

  it('cuts no character and no escape in two', async () => {
    for (const written of [
      '"é€𝄞é€𝄞é€𝄞é€𝄞é€𝄞"',
      escaped('é€𝄞é€𝄞é€𝄞'),
      '"\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"',
      '"\\"\\"\\"\\"\\"\\"\\"\\""',
    ])
      for (let textBytes = 0; textBytes < 60; textBytes += 1) {
        const { a, b } = Object(
          await readOutline(Buffer.from(`{"a":${written},"b":1}`), { ...LITTLE, stringBytes: 8, textBytes }),
        )
        const whole = JSON.parse(written)
        assert.ok(whole === a || (a.endsWith('…') && whole.startsWith(a.slice(0, -1))), `${written} ${textBytes}: ${a}`)
        assert.equal(b, 1)
      }
  })

  it('leaves one number of a list of numbers, and counts whatever they stand in', async () => {
    const vector = Array.from({ length: 300 }, (_, at) => (at - 150) / 7)
    for (const indent of [undefined, 2]) {
      const data = Array.from({ length: 500 }, (_, index) => ({ object: 'embedding', index, embedding: vector }))
      const written = JSON.stringify({ data, model: 'm', usage: { prompt_tokens: 7 } }, undefined, indent)
      const outline = Object(await readOutline(Buffer.from(written)))
      assert.deepEqual([outline.model, outline.usage], ['m', { prompt_tokens: 7 }])
      assert.deepEqual(
        outline.data,
        data.map((one) => ({ ...one, embedding: [0] })),
      )
    }
    const mixed = `{"a":[${'1,'.repeat(100)}"]"],"b":[${'1,'.repeat(100)}[2]],"c":[${'1,'.repeat(100)}{"d":3}]}`
    assert.deepEqual(await readOutline(Buffer.from(mixed)), JSON.parse(mixed))
  })

  it('has all of the usage, whatever was left out before it and wherever it stands', async () => {
    const top = Array.from({ length: 20 }, (_, at) => ({ token: `t${at}`, logprob: -at, bytes: [1, 2, 3] }))
    const content = Array.from({ length: 2_000 }, () => ({ token: 'a', logprob: -1, bytes: [97], top_logprobs: top }))
    const choices = [{ index: 0, message: { content: 'a' }, logprobs: { content }, finish_reason: 'stop' }]
    const usage = {
      ...{ prompt_tokens: 7, completion_tokens: 2_000, total_tokens: 2_007 },
      prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
    }
    for (const reply of [
      { choices, usage },
      { usage, choices },
      { choices, model: 'm', usage, id: 'i' },
    ])
      for (const indent of [undefined, 2]) {
        const written = JSON.stringify(reply, undefined, indent)
        assert.ok(written.length > 1_500_000)
        assert.deepEqual(Object(await readOutline(Buffer.from(written))).usage, usage)
      }
  })

  it('says that a picture is there, and how much was used, of pictures that are long', async () => {
    const picture = { b64_json: 'abcd'.repeat(500_000) }
    const written = JSON.stringify({ data: [picture, picture, picture], usage: { output_tokens: 9 } })
    const { data, usage } = Object(await readOutline(Buffer.from(written)))
    assert.equal(usage.output_tokens, 9)
    assert.deepEqual([data.length, picturesIn({ data })], [3, 3])
  })

  it('is nothing where the text is no JSON, ends too early, is too deep or has too many members', async () => {
    const long = 'x'.repeat(2_000_000)
    const members = Array.from({ length: 200_000 }, (_, at) => `"k${at}":1`).join(',')
    for (const written of [
      '',
      'nothing',
      '{"a":1',
      `{"a":"${long}`,
      `{"a":"${long}\\`,
      `{"a":["${long}","b","c",`,
      `${'['.repeat(600)}${']'.repeat(600)}`,
      `{${members}}`,
    ])
      assert.equal(await readOutline(Buffer.from(written)), undefined, written.slice(0, 50))
    assert.deepEqual(await readOutline(Buffer.from('\ufeff{"a":1}')), { a: 1 })
  })
})
