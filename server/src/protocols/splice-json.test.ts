import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { judge } from '../../../harness/figures.ts'
import { count, seed } from '../../../harness/proof.ts'
import { memberIn, spliceItems, spliceJson, withoutMembers } from './splice-json.ts'

const PROOF = 'splice-json'

const CASES = count({ full: 20_000, reduced: 1_000 })

/** JSON text of a value in which names and texts may be escaped, with space wherever space may stand. */
const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/)
const escaped = (text: string) =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
const written = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.boolean()).map(([plain, isEscaped]) => (isEscaped ? escaped(plain) : JSON.stringify(plain)))

const name = fc.oneof(fc.constantFrom('model', 'max_tokens', 'stream', 'a"b', 'a\\', ''), fc.string({ unit: 'binary' }))
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }).map((one) => JSON.stringify(one)),
  fc.jsonValue({ maxDepth: 3 }).map((one) => JSON.stringify(one, undefined, 2)),
  written(fc.string({ unit: 'binary' })),
  fc.constantFrom('"]}"', '"\\\\"', '"\\""', '{"model":"inner"}', '[{"model":["}"]}]', '-1.5e3', 'null'),
)

type Member = { readonly name: string; readonly before: string; readonly value: string; readonly after: string }
const member = fc
  .tuple(name, fc.boolean(), space, space, space, value, space)
  .map(([plain, isEscaped, a, b, c, text, after]): Member => {
    const key = isEscaped ? escaped(plain) : JSON.stringify(plain)
    return { name: plain, before: `${a}${key}${b}:${c}`, value: text, after }
  })
const members = fc
  .uniqueArray(member, { maxLength: 6, selector: (one) => one.name })
  .filter((list) => list.every((one) => one.name !== '__proto__'))

const textOf = (list: readonly Member[], [outer, inner]: readonly [string, string]) =>
  `${outer}{${list.length === 0 ? inner : list.map(({ before, value, after }) => before + value + after).join(',')}}${outer}`

const changes = fc
  .dictionary(name, value, { maxKeys: 3 })
  .filter((record) => !Object.hasOwn(record, '__proto__'))
  .map((record) => ({ ...record }))
const spaces = fc.tuple(space, space)

describe('members set in the bytes of a JSON object', () => {
  it('are what parsing gives, and nothing else is', () => {
    fc.assert(
      fc.property(members, changes, spaces, (list, set, around) => {
        const raw = Buffer.from(textOf(list, around))
        const parsed = Object.entries(set).map(([key, text]) => [key, JSON.parse(text)])
        assert.deepEqual(JSON.parse(spliceJson(raw, set).toString()), {
          ...JSON.parse(raw.toString()),
          ...Object.fromEntries(parsed),
        })
      }),
      { numRuns: CASES, seed },
    )
  })

  it('leave every other byte as it came', () => {
    fc.assert(
      fc.property(members, changes, spaces, (list, set, around) => {
        const replaced = list.map((one) => ({
          ...one,
          value: Object.hasOwn(set, one.name) ? (set[one.name] ?? '') : one.value,
        }))
        const added = Object.entries(set)
          .filter(([key]) => list.every((one) => one.name !== key))
          .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
        const last = replaced.at(-1)
        const expected =
          last === undefined
            ? `${around[0]}{${added.join(',')}${around[1]}}${around[0]}`
            : textOf([...replaced.slice(0, -1), { ...last, value: [last.value, ...added].join(',') }], around)
        assert.equal(spliceJson(Buffer.from(textOf(list, around)), set).toString(), expected)
      }),
      { numRuns: CASES, seed },
    )
  })

  it('are found by their names, however those are written', () => {
    fc.assert(
      fc.property(members, spaces, (list, around) => {
        const raw = Buffer.from(textOf(list, around))
        for (const one of list) assert.equal(memberIn(raw, one.name)?.toString(), one.value)
      }),
      { numRuns: CASES, seed },
    )
  })

  it('are not looked for inside of others', () => {
    const raw = Buffer.from('{"a":{"model":1},"b":"\\",\\"model\\":2"}')
    assert.equal(memberIn(raw, 'model'), undefined)
    assert.equal(spliceJson(raw, { model: '3' }).toString(), '{"a":{"model":1},"b":"\\",\\"model\\":2","model":3}')
  })

  it('take time in proportion to the bytes, whatever they are', () => {
    const tookMs: number[] = []
    for (const filler of ['\\\\', '\\"', '[', '{"a":[', ' ']) {
      const isText = filler.startsWith('\\')
      const inner = isText ? `"${filler.repeat(400_000)}"` : closed(filler, 200_000)
      const startedMs = performance.now()
      const raw = Buffer.from(`{"a":${inner}}`)
      assert.equal(spliceJson(raw, { b: '1' }).length, raw.length + 6)
      tookMs.push(performance.now() - startedMs)
    }
    judge(PROOF, 'a body of 400,000 escapes or levels', { unit: 'ms', atMost: 5_000 }, tookMs)
  })

  it('are refused in what is no object', () => {
    for (const text of ['[]', '"a"', '', '{"b":1', 'null']) {
      assert.throws(() => spliceJson(Buffer.from(text), { a: '1' }), RangeError, text)
    }
  })
})

describe('members taken out of the bytes of a JSON object', () => {
  it('are gone, and what is left is what it was', () => {
    fc.assert(
      fc.property(members, fc.array(fc.nat(5), { maxLength: 6 }), spaces, (list, places, around) => {
        const names = places.flatMap((place) => list[place]?.name ?? [])
        const kept = list.filter((one) => !names.includes(one.name))
        const raw = Buffer.from(textOf(list, around))
        const text = withoutMembers(raw, names).toString()
        assert.deepEqual(JSON.parse(text), JSON.parse(textOf(kept, around)))
        for (const { before, value } of kept) assert.ok(text.includes(before.trimStart() + value))
        const added = { added: '1' }
        assert.deepEqual(JSON.parse(spliceJson(Buffer.from(text), added).toString()), { ...JSON.parse(text), added: 1 })
      }),
      { numRuns: CASES, seed },
    )
  })

  it('leave the very bytes where none of them is there', () => {
    const text = '{ "a" : 1.0 }'
    assert.equal(withoutMembers(Buffer.from(text), ['b']).toString(), text)
    assert.equal(withoutMembers(Buffer.from('{"a":1 , "b" : [2] ,"c":3}'), ['b']).toString(), '{"a":1 , "c":3}')
    assert.equal(withoutMembers(Buffer.from('{"a":1 , "b" : [2]}'), ['b']).toString(), '{"a":1}')
  })
})

function closed(opening: string, times: number): string {
  const closing = [...opening]
    .reverse()
    .map((one) => ({ '[': ']', '{': '}' })[one] ?? '')
    .join('')
  return opening === ' ' ? `${' '.repeat(times)}1` : `${opening.repeat(times)}1${closing.repeat(times)}`
}

describe('the items of an array', () => {
  it('are changed one by one, and every other byte stays', () => {
    const list = ' [ {"a":"],[\\""} ,\t2,[3 , [4]]\n, "é"] '
    const seen: string[] = []
    const changed = spliceItems(Buffer.from(list), (item, at) => {
      seen.push(item.toString())
      return at === 1 ? Buffer.from('20') : item
    })
    assert.deepEqual(seen, ['{"a":"],[\\""}', '2', '[3 , [4]]', '"é"'])
    assert.equal(changed.toString(), list.replace('\t2', '\t20'))
  })

  it('are the array itself where none is changed, and none of an empty one', () => {
    for (const list of ['[]', ' [ ] ', '[1]']) {
      const raw = Buffer.from(list)
      assert.equal(
        spliceItems(raw, (item) => item),
        raw,
      )
    }
    assert.throws(() => spliceItems(Buffer.from('{}'), (item) => item), RangeError)
  })
})
