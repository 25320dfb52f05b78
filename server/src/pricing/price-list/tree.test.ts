import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PriceListError } from './problems.ts'
import { FILE_BYTES_MOST, lineAt, plainValue, readTree } from './tree.ts'

const read = (text: string) => readTree(Buffer.from(text))

function problemsOf(text: string | Uint8Array): readonly string[] {
  try {
    readTree(typeof text === 'string' ? Buffer.from(text) : text)
  } catch (error) {
    if (error instanceof PriceListError) return error.problems
    throw error
  }
  return assert.fail('it was taken')
}

describe('a file as a tree', () => {
  it('keeps every number as it was written, in YAML and in JSON', () => {
    const expected = { a: '1.10', b: ['2.5e-06', '0010'], c: { d: null, e: 'null', f: '12345678901234567890.123' } }
    assert.deepEqual(
      plainValue(read('a: 1.10\nb: [2.5e-06, 0010]\nc:\n  d: null\n  e: "null"\n  f: 12345678901234567890.123\n')),
      expected,
    )
    const json =
      '{"a": 1.10,\n\t"b": [2.5e-06, "0010"],\n\t"c": {"d": null, "e": "null", "f": 12345678901234567890.123}}'
    assert.deepEqual(plainValue(read(json)), expected)
  })

  it('knows the line of each member', () => {
    const tree = read('# a note\na:\n  b:\n    - 1\n    - 2\n  c: 3\n')
    assert.deepEqual(
      [[], ['a'], ['a', 'b', 1], ['a', 'c'], ['a', 'x'], ['y']].map((path) => lineAt(tree, path)),
      [2, 2, 5, 6, 2, 2],
    )
  })

  it('refuses one that is too long before it is parsed', () => {
    const [problem = ''] = problemsOf(Buffer.alloc(FILE_BYTES_MOST + 1, 'a'))
    assert.match(problem, /^it has 8388609 bytes; the limit is 8388608: split it$/)
  })

  for (const [what, text, says] of [
    ['a duplicate member', 'a: 1\nb: 2\na: 3\n', /^line 3: duplicate member "a": keep one of them$/],
    ['a duplicate member in JSON', '{"a": {"b": 1,\n"b": 2}}', /^line 2: duplicate member "b"/],
    ['a duplicate member by an escape', '{"ab": 1, "\\u0061b": 2}', /duplicate member "ab"/],
    ['an alias', 'a: &x 1\nb: *x\n', /^line 1: anchors \(&name\) are not taken/],
    ['an anchor of a member', '&x a: 1\n', /^line 1: /],
    ['a bomb of aliases', bomb(), /anchors \(&name\) are not taken/],
    ['a merge', 'a:\n  <<: *x\n', /line 2: /],
    ['a tag', 'a: !!binary aGk=\n', /line 1: /],
    ['a tag of code', 'a: !!js/function "x"\n', /line 1: /],
    ['the prototype', '{"a": {"__proto__": {"b": 1}}}', /^line 1: the name __proto__ is not allowed$/],
    ['the constructor', 'constructor: 1\n', /^line 1: the name constructor is not allowed$/],
    ['a list for a name', '? [a, b]\n: 1\n', /^line 1: a name must be a short text$/],
    ['a name without end', `${'a'.repeat(300)}: 1\n`, /^line 1: a name must be a short text$/],
    ['two documents', 'a: 1\n---\nb: 2\n', /line 2: /],
    ['what is cut off', '{"a": 1', /line 1: /],
    ['nothing', '', /^it is empty$/],
    ['too many levels', `${'['.repeat(17)}1${']'.repeat(17)}`, /nested too deeply; the limit is 16 levels/],
    ['members without end', `[${'1,'.repeat(2_000_000)}1]`, /^line 1: it has too many members: split it$/],
    ['levels without end', '['.repeat(8_000_000), /^line 1: it is nested too deeply/],
    ['levels without end of names', '? '.repeat(4_000_000), /^line 1: it is nested too deeply/],
    [
      'levels by indentation',
      Array.from({ length: 2_000 }, (_, n) => `${' '.repeat(n)}a:\n`).join(''),
      /nested too deeply/,
    ],
    ['levels without end of a block', '- '.repeat(4_000_000), /^line 1: it is nested too deeply/],
    ['levels without end in JSON', `${'{"a":'.repeat(500_000)}1${'}'.repeat(500_000)}`, /nested too deeply/],
  ] as const)
    it(`refuses ${what}, and says where`, () => {
      const [problem = ''] = problemsOf(text)
      assert.match(problem, says)
    })

  it('refuses what is not UTF-8', () => {
    assert.deepEqual(problemsOf(Buffer.from([0x61, 0x3a, 0xff])), ['it is not UTF-8: save it as that'])
  })

  it('says the first twenty problems, and shows nothing that a terminal would obey', () => {
    const error = new PriceListError(Array.from({ length: 25 }, (_, n) => `\u001b[2J${n}`))
    assert.equal(error.problems.length, 21)
    assert.deepEqual([error.problems[0], error.problems[20]], ['?[2J0', 'and 5 more'])
    assert.match(error.of('a.yaml').problems[0] ?? '', /^a\.yaml: /)
  })
})

/** Nine levels of nine: a billion, were they expanded. */
function bomb(): string {
  const levels = Array.from(
    { length: 9 },
    (_, n) =>
      `${'abcdefghi'[n]}: &${'abcdefghi'[n]} [${
        n === 0
          ? 'x'
          : Array(9)
              .fill(`*${'abcdefghi'[n - 1]}`)
              .join(', ')
      }]`,
  )
  return `${levels.join('\n')}\n`
}
