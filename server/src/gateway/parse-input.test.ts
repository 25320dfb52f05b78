import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import fc from 'fast-check'
import { postComments } from '../catalogue/operations/post-comments.ts'
import { rerank } from '../catalogue/operations/rerank.ts'
import { tagDetail } from '../catalogue/operations/tag-detail.ts'
import { websiteTraffic } from '../catalogue/operations/website-traffic.ts'
import { Fault } from '../kernel/fault.ts'
import { ADAPTERS } from '../upstreams/adapters/adapters.ts'
import { parseInput } from './parse-input.ts'

const readNone = () => assert.fail('a GET has no body')
const read = (query: string, operation = websiteTraffic) => parseInput(operation, { query, readBody: readNone })
const posted = (body: unknown, query = '') =>
  parseInput({ ...websiteTraffic, method: 'POST' }, { query, readBody: () => body })

function refusal(parse: () => unknown): string | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === 'invalid_request', String(error))
    return error.message
  }
}

const PRICED = ['metrics', 'start_date', 'end_date']
const REFUSED = ['granularity', 'format']

describe('a name that sets the price', () => {
  for (const query of [
    'metrics=visits&metrics[]=page_views',
    'metrics[]=visits',
    'metrics%5B%5D=visits',
    'metrics[0]=visits',
    'metrics[a][b]=visits',
    '[metrics]=visits',
    'Metrics=visits',
    'METRICS',
    'm%65trics=visits',
    'm%2565trics=visits',
    '+metrics=visits',
    'metrics%20=visits',
    'metrics%00x=visits',
    'metrics%3Dvisits',
    '?metrics=visits',
    '%EF%BD%8Detrics=visits',
    'a=1;metrics=visits',
    'metrics=visits;metrics=page_views',
    'metrics=visits;page_views',
    'metrics;a=1',
    'a=1&amp;metrics=visits',
  ])
    it(`is refused as ${query}, with how to write it`, () => {
      assert.match(refusal(() => read(`domain=a&${query}`)) ?? '', /"metrics".*metrics=visits,page_views/)
      assert.match(refusal(() => read(query)) ?? '', /"metrics".*metrics=visits,page_views/)
    })

  it('is refused where it stands twice, and says how often', () => {
    assert.match(refusal(() => read('metrics=a&x=1&metrics=b')) ?? '', /"metrics" is given 2 times/)
    assert.match(refusal(() => read('start_date=2026-01&start_date=2026-01')) ?? '', /"start_date" is given 2 times/)
  })

  for (const name of [
    'start.date',
    'start-date',
    'start+date',
    'start%20date',
    'Start_Date',
    'start%5Fdate',
    'startDate',
    '_start_date',
  ])
    it(`is refused with another sign between its words: ${name}`, () => {
      const told = refusal(() => read(`${name}=2026-01`))
      assert.equal(
        told,
        `"${name}" can be read as "start_date", which sets the price. ` +
          'Give it once, written as in start_date=2026-01.',
      )
    })

  it('is taken as it is spelt, once', () => {
    assert.deepEqual(read('domain=a&metrics=visits,page_views&start_date=2026-01&end_date=2026-03'), {
      domain: 'a',
      metrics: 'visits,page_views',
      start_date: '2026-01',
      end_date: '2026-03',
    })
  })

  it('of a body stands there, once and as it is spelt, and not in the query', () => {
    assert.deepEqual(posted({ metrics: 'visits', other: { Metrics: 1 } }, 'a=1'), {
      metrics: 'visits',
      other: { Metrics: 1 },
    })
    for (const body of [{ Metrics: 'a' }, { metrics: 'a', 'metrics[]': ['b'] }, { 'start.date': '2026-01' }])
      assert.match(refusal(() => posted(body)) ?? '', /can be read as/)
    assert.match(refusal(() => posted({}, 'metrics=visits')) ?? '', /"metrics" sets the price and belongs in the body/)
    assert.match(refusal(() => posted({ metrics: 'a' }, 'metrics=b')) ?? '', /"metrics" is given 2 times/)
    assert.match(
      refusal(() => posted({ Format: 'csv' })) ?? '',
      /"Format" can be read as "format", which is not supported/,
    )
  })

  it('has a bound on how much of its spelling is told', () => {
    assert.ok((refusal(() => read(`metrics[${'x'.repeat(4_000)}]=1`)) ?? '').length < 400)
  })
})

describe('a name that is refused', () => {
  for (const name of [
    'include_replies',
    'include.replies',
    'include-replies',
    'include+replies',
    'Include_Replies',
    'include_replies[]',
    'includeReplies',
    'INCLUDEREPLIES',
    'include%5Freplies',
    'include%255Freplies',
    '[include_replies]',
    'a=1;include_replies',
    'a=1%3Binclude_replies',
    'a=1%253binclude_replies',
  ])
    it(`is refused as ${name}`, () => {
      assert.match(
        refusal(() => read(`${name}=true`, postComments)) ?? '',
        /"include_replies".* is not supported: replies/,
      )
    })
})

describe('a query beside a body that says everything', () => {
  const body = { query: 'a', documents: ['b'] }
  const reranked = (query: string) => parseInput(rerank, { query, readBody: () => body })

  it('is refused: nobody has priced what it says', () => {
    assert.deepEqual(reranked(''), body)
    for (const query of ['model=rerank-xl&instruction=zzz', 'a', '&'])
      assert.match(refusal(() => reranked(query)) ?? '', /takes no query parameters/)
  })

  it('is not sent', () => {
    const asked = { input: body, query: 'instruction=zzz', rawBody: null }
    assert.equal(ADAPTERS.rerank.ask(asked).query, '')
  })
})

describe('every other name', () => {
  it('passes, whatever it is and however often it stands', () => {
    for (const query of [
      'a=1&a=2&a[]=3&A=4&a.b=5&a;b=6',
      'metric=1&Metric[]=2&metrics_2=3&xmetrics=4',
      'replies=include_replies&a=metrics',
      'url=a%3Bmetrics%3D1&metrics=visits',
      'url=a%3Bmetrics=1%253bstart_date=x',
    ])
      assert.equal(
        refusal(() => read(query)),
        undefined,
        query,
      )
    assert.equal(
      refusal(() => read('Tag.Name=1&tag_name[]=2&metrics=1&metrics=2', tagDetail)),
      undefined,
    )
  })

  it('is read with the question mark that it begins with', () => {
    assert.deepEqual(read('?a=1'), { '?a': '1' })
  })

  it('stands in no query behind a #, where some servers do not look', () => {
    assert.match(refusal(() => read('domain=a#&metrics=visits', websiteTraffic)) ?? '', /percent-encoded/)
  })
})

describe('what is held for web traffic', () => {
  const held = (query: string) => websiteTraffic.price.most(read(query))
  const MONTH = 'start_date=2026-01&end_date=2026-01'

  it('is for every metric where the list may be one of other separators, or stand for all', () => {
    for (const [list, most] of [
      ['visits', 1n],
      ['visits,page_views', 2n],
      ['visits+page_views', 2n],
      ['visits%7Cpage_views', 12n],
      ['visits,*', 12n],
      ['ALL', 12n],
      [Array.from({ length: 14 }, (_, at) => `m.${at}`).join(','), 14n],
    ] as const)
      assert.equal(held(`metrics=${list}&${MONTH}`), most, list)
  })

  it('is for every month where a date is none, which an upstream may leave out of account', () => {
    for (const [start, end, most] of [
      ['2026-01', '2026-03', 3n],
      ['2026-01-01', '2026-03-31', 3n],
      ['2025-13', '2026-01', 37n],
      ['2026-00', '2026-01', 37n],
      ['2026-01-00', '2026-01', 37n],
      ['2026-01-32', '2026-01', 37n],
      ['2026-02-30', '2026-02-28', 37n],
      ['2026-02-01', '2026-02-29', 37n],
      ['2026-04-01', '2026-04-31', 37n],
      ['2024-02-01', '2024-02-29', 1n],
      ['0001-01-01', '0001-01-31', 1n],
    ] as const)
      assert.equal(held(`metrics=visits&start_date=${start}&end_date=${end}`), most, `${start} ${end}`)
  })
})

/** A server that takes everything for everything, written without a look at ours: what it finds under each name. */
function looseReading(query: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const part of query.split(/[&;]/)) {
    const at = part.indexOf('=')
    const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    let plain = name.replaceAll('+', ' ')
    plain = plain.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    plain = plain
      .trim()
      .toLowerCase()
      .replace(/\[.*$/, '')
      .replace(/[. _-]/g, '')
    found.set(plain, [...(found.get(plain) ?? []), decodeURIComponent(value.replaceAll('+', ' '))])
  }
  return found
}

const found = (loose: Map<string, string[]>, name: string) => loose.get(name.replaceAll('_', ''))
const encode = (letter: string) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`

/** A name with letters as somebody may write them who wants it to be read by one and not by another. */
const respelt = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.array(fc.constantFrom('as it is', 'as it is', 'as it is', 'upper', 'encoded', 'sign'), {
        minLength: name.length,
        maxLength: name.length,
      }),
      fc.constantFrom('', '', '', '+', '%20'),
      fc.constantFrom('', '', '', '[]', '[0]', '%5B%5d', '[a][b]', '+', '%20'),
      fc.constantFrom('.', '-', '+', '%20', '%2E', ''),
    )
    .map(([how, before, after, sign]) => {
      const letters = Array.from(name, (letter, at) => {
        if (how[at] === 'upper') return letter.toUpperCase()
        if (how[at] === 'encoded') return encode(letter)
        return how[at] === 'sign' && letter === '_' ? sign : letter
      })
      return before + letters.join('') + after
    })

const UNKNOWN = ['domain', 'country', 'metric', 'start', 'date', 'a']
const name = fc.oneof(
  fc.constantFrom(...PRICED, ...UNKNOWN),
  fc.constantFrom(...PRICED, ...REFUSED, ...UNKNOWN).chain(respelt),
)
const value = fc.constantFrom('', 'visits', 'visits,page_views', '2026-01', '2026-02', 'x%20y', 'a+b')
const part = fc.tuple(name, fc.option(value)).map(([one, given]) => (given === null ? one : `${one}=${given}`))
const query = fc
  .array(fc.tuple(part, fc.constantFrom('&', '&', '&', ';', '%3B', '&&')), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.map(([one, separator]) => one + separator).join(''))

describe('a query of very many names', () => {
  it('is read once, and not once for each of them', () => {
    const asked = mock.method(URLSearchParams.prototype, 'getAll')
    try {
      const names = Array.from({ length: 2_000 }, (_, at) => `a${at}`)
      const given = Object(read([...names, 'a1'].map((one) => `${one}=1`).join('&'), tagDetail))
      assert.deepEqual([given.a0, given.a1], ['1', ['1', '1']])
      assert.equal(asked.mock.callCount(), 0)
    } finally {
      asked.mock.restore()
    }
  })
})

describe('however a query is spelt', () => {
  it('it is refused, or the loosest server reads of it what we have priced', () => {
    let taken = 0
    fc.assert(
      fc.property(query, (text) => {
        const strict = Object(attempt(text))
        if (strict.isRefused === true) return
        taken += 1
        const loose = looseReading(text)
        for (const priced of PRICED) assert.deepEqual(found(loose, priced) ?? [], [strict[priced] ?? []].flat(), text)
        for (const refused of REFUSED) assert.equal(found(loose, refused), undefined, text)
      }),
      { numRuns: 20_000 },
    )
    assert.ok(taken > 1_000, `only ${taken} were taken`)
  })

  it('it passes where all that has a price or is refused is spelt as it is, once', () => {
    const unknown = fc.constantFrom(...UNKNOWN).chain(respelt)
    const once = fc.uniqueArray(fc.constantFrom(...PRICED))
    fc.assert(
      fc.property(fc.array(unknown), once, (others, priced) => {
        const text = [...others.map((one) => `${one}=1`), ...priced.map((one) => `${one}=2026-01`)].join('&')
        assert.equal(
          refusal(() => read(text)),
          undefined,
          text,
        )
      }),
    )
  })
})

function attempt(text: string): unknown {
  try {
    return read(text)
  } catch (error) {
    assert.ok(error instanceof Fault)
    return { isRefused: true }
  }
}
