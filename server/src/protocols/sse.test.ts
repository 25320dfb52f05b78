import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { createFrameSplitter, type Frame, MOST_FRAME_BYTES } from './sse.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })

function split(pieces: readonly (Buffer | string)[]): Frame[] {
  const splitter = createFrameSplitter()
  const frames: Frame[] = []
  for (const piece of pieces) {
    splitter.feed(Buffer.from(piece))
    for (let frame = splitter.next(); frame !== undefined; frame = splitter.next()) frames.push(frame)
  }
  const last = splitter.finish()
  return last === undefined ? frames : [...frames, last]
}

function texts(frames: readonly Frame[]): string[] {
  return frames.map(({ bytes }) => bytes.toString())
}

function plain(frames: readonly Frame[]) {
  return frames.map(({ bytes, ...rest }) => ({ bytes: bytes.toString('latin1'), ...rest }))
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other)
  return places.map((end, at) => bytes.subarray(places[at - 1] ?? 0, end))
}

/** What the standard says, without regard to pieces and bytes. */
function eventsOf(text: string): { event: string | undefined; data: string }[] {
  const events: { event: string | undefined; data: string }[] = []
  let event: string | undefined
  let data: string[] = []
  for (const line of [...text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/), '']) {
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'data') data.push(value)
    if (name === 'event') event = value
    if (line !== '') continue
    if (data.length > 0) events.push({ event, data: data.join('\n') })
    event = undefined
    data = []
  }
  return events
}

const stream = fc
  .array(
    fc.constantFrom(
      ...[
        '\n',
        '\r',
        '\r\n',
        '\n\n',
        '\r\n\r\n',
        '\r\r',
        'data: {"a":1}',
        'data:',
        'data',
        'data:  two',
        'database: no',
      ],
      ...['event: ping', 'event', ': comment', ':', 'id: 1', 'ä€😀', '\uFEFF', ' data: no', 'dat', 'a: b: c'],
    ),
    { maxLength: 40 },
  )
  .map((parts) => Buffer.from(parts.join('')))
const cuts = fc.array(fc.nat(500), { maxLength: 12 })

describe('a splitter of events', () => {
  it('ends a frame at a blank line, whatever ends the lines, and leaves its bytes as they came', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const first = `event: ping${end}data: {"a":1}${end}${end}`
      const second = `: comment${end}${end}`
      const third = `data: [DONE]${end}${end}`
      const frames = split([first + second + third])
      assert.deepEqual(texts(frames), [first, second, third])
      assert.deepEqual(
        frames.map(({ event, data, isTerminated }) => ({ event, data, isTerminated })),
        [
          { event: 'ping', data: '{"a":1}', isTerminated: true },
          { event: undefined, data: undefined, isTerminated: true },
          { event: undefined, data: '[DONE]', isTerminated: true },
        ],
      )
    }
  })

  it('gives the same frames however the stream is cut, and every byte once', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, places) => {
        const whole = split([bytes])
        assert.deepEqual(Buffer.concat(whole.map((frame) => frame.bytes)), bytes)
        assert.deepEqual(plain(split(cutAt(bytes, places))), plain(whole))
        const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
        assert.deepEqual(plain(split(single)), plain(whole))
      }),
      { numRuns: CASES, seed },
    )
  })

  it('reads event and data as the standard does', () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        const read = split([bytes]).flatMap(({ event, data }) => (data === undefined ? [] : [{ event, data }]))
        assert.deepEqual(read, eventsOf(bytes.toString()))
      }),
      { numRuns: CASES, seed },
    )
  })

  it('says where the data is, unless it is in several lines', () => {
    const [one, several] = split(['\uFEFFevent: a\r\ndata: {"ä":1}\r\n\r\ndata: 1\ndata: 2\n\n'])
    assert.equal(one?.bytes.toString('utf8', one.dataStart, one.dataEnd), '{"ä":1}')
    assert.equal(several?.data, '1\n2')
    assert.equal(several?.dataStart, -1)
  })

  it('gives what has no blank line when the body ends, and says so', () => {
    assert.deepEqual(plain(split(['data: 1\n\ndata: 2'])).at(-1), {
      bytes: 'data: 2',
      isTerminated: false,
      event: undefined,
      data: '2',
      dataStart: 6,
      dataEnd: 7,
    })
    assert.equal(split(['data: 1\n']).at(-1)?.isTerminated, false)
    assert.equal(split(['data: 1\r\r']).at(-1)?.isTerminated, true)
    assert.deepEqual(split(['']), [])
  })

  it('does not copy a frame that came in one piece', () => {
    const piece = Buffer.from('data: 1\n\ndata: 2\n\n')
    const splitter = createFrameSplitter()
    splitter.feed(piece)
    assert.equal(splitter.next()?.bytes.buffer, piece.buffer)
    assert.equal(splitter.next()?.bytes.buffer, piece.buffer)
    assert.equal(splitter.next(), undefined)
  })

  it('takes a frame of its bound, and refuses one of a byte more, in one piece or in many', () => {
    const frame = (bytes: number) => `data: ${'x'.repeat(bytes - 8)}\n\n`
    const [largest] = split([frame(MOST_FRAME_BYTES)])
    assert.equal(largest?.bytes.length, MOST_FRAME_BYTES)
    const larger = frame(MOST_FRAME_BYTES + 1)
    assert.throws(() => split([larger]), RangeError)
    assert.throws(() => split([larger.slice(0, 1_000), larger.slice(1_000)]), RangeError)
  })

  it('refuses a stream that never ends its frame', () => {
    const piece = 'x'.repeat(65_536)
    assert.throws(() => split(Array.from({ length: 17 }, () => piece)), RangeError)
    const lines = 'data: x\n'.repeat(8_192)
    assert.throws(() => split(Array.from({ length: 17 }, () => lines)), RangeError)
  })

  // Work that grew with the square of the size would take minutes here.
  it('takes time in proportion to the bytes, also where each comes alone or is a line', { timeout: 60_000 }, () => {
    const bytes = Buffer.from(`data: ${'x'.repeat(200_000)}\n\n`)
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    assert.equal(split(single).length, 1)
    assert.equal(split(['a\n'.repeat(200_000)]).length, 1)
    assert.equal(split(['\n'.repeat(200_000)]).length, 200_000)
    assert.equal(split(['\r'.repeat(200_000)]).length, 200_000)
    assert.equal(split(['data\n'.repeat(200_000)]).length, 1)
  })
})
