import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Fault } from '../kernel/fault.ts'
import { askOfVideo, createdIn, reportIn } from './video.ts'

const LIMITS = { outputCap: 5, outputMost: 15 }
const asked = (parameters?: unknown, more: Record<string, unknown> = {}) => {
  const body = { model: 'm', input: { prompt: 'a fox' }, ...(parameters !== undefined && { parameters }), ...more }
  return askOfVideo(body, Buffer.from(JSON.stringify(body)), LIMITS)
}

describe('what a request for a video asks for', () => {
  it('is as long as it says, or as the model makes at the most', () => {
    assert.equal(asked({ duration: 5 }).secondsMost, 5)
    assert.equal(asked({}).secondsMost, 15)
    assert.equal(asked().secondsMost, 15)
    assert.equal(asked({ duration: 5, n: 2 }).videos, 2)
    // As a rule it is as long as the model makes it where nobody says.
    assert.deepEqual([asked({}).secondsUsual, asked({ duration: 9 }).secondsUsual], [5, 9])
  })

  it('has a resolution or a size, not both', () => {
    assert.equal(asked({ resolution: '1080p' }).resolution, '1080P')
    assert.equal(asked({ size: '1280*720' }).pixels, 921_600)
    assert.throws(() => asked({ size: '1280*720', resolution: '720P' }), Fault)
  })

  it('passes what the definition does not show in several spellings: nobody has priced it', () => {
    const more = { input: { prompt: 'a', media: [{ url: 'a', URL: 'b' }] }, Extra: { a_b: 1, ab: 2 } }
    asked({ 'a.b': 1, ab: 2, shot: { type: 'one', Type: 'many', duration: 3 } }, more)
  })

  it('passes what the definition does not show, in any spelling', () => {
    const { bodyFor } = asked({ Shot: { Type: 'multi' }, watermark: false, n: 1 }, { Extra: [{ a: 1 }, { A: 2 }] })
    assert.deepEqual(JSON.parse(bodyFor('m').toString()).parameters.Shot, { Type: 'multi' })
  })

  it('goes on as it came, but for the name of the model', () => {
    const { bodyFor } = asked({ seed: 12345678901234567890n.toString() })
    assert.equal(
      bodyFor('m').toString(),
      '{"model":"m","input":{"prompt":"a fox"},"parameters":{"seed":"12345678901234567890"}}',
    )
    assert.equal(JSON.parse(bodyFor('other').toString()).model, 'other')
  })

  for (const [what, parameters, more] of [
    ['a length that is none', { duration: 0 }, {}],
    ['one beyond the model', { duration: 16 }, {}],
    ['half a second', { duration: 0.5 }, {}],
    ['a text', { duration: '5' }, {}],
    ['no number', { duration: Number.NaN }, {}],
    ['too many videos', { n: 5 }, {}],
    ['a resolution that is none', { resolution: 720 }, {}],
    ['a size that is none', { size: '0*0' }, {}],
    ['parameters that are none', [], {}],
    ['no prompt', {}, { input: {} }],
    ['no input', {}, { input: null }],
    ['another case of a member', {}, { Parameters: { duration: 99 } }],
    ['another case of a length', { duration: 1, Duration: 15 }, {}],
    ['another case of a length alone', { DURATION: 15 }, {}],
    ['a length in brackets', { duration: 1, 'duration[]': 15 }, {}],
    ['a length with a space', { 'duration ': 15 }, {}],
    ['a number after a semicolon', { 'n;x': 4 }, {}],
    ['a length by its path', { duration: 1 }, { 'parameters.duration': 15 }],
    ['another case of the prompt', {}, { input: { prompt: 'a', Prompt: 'b' } }],
    ['a length with a sign in it', { duration: 1, dura_tion: 15 }, {}],
    ['a length with a dash in it', { 'dura-tion': 15 }, {}],
    ['a length in wide letters', { duration: 1, ｄuration: 15 }, {}],
    ['a length with a dot in it', { 'dura.tion': 15 }, {}],
    ['a length at the top', { duration: 1 }, { duration: 15 }],
    ['a length among the input', { duration: 1 }, { input: { prompt: 'a', duration: 15 } }],
    ['a number at the top, in another case', {}, { N: 4 }],
    ['a resolution among the input', {}, { input: { prompt: 'a', 'Resolution[]': '1080P' } }],
    ['a model among the parameters', { Model: 'dearer' }, {}],
  ] as const)
    it(`refuses ${what}`, () => {
      assert.throws(
        () => asked(parameters, more),
        (error) => error instanceof Fault && error.code === 'invalid_request',
      )
    })
})

describe('what an upstream says of a task', () => {
  it('has its name when it was created', () => {
    assert.deepEqual(createdIn({ output: { task_id: 'abc-1', task_status: 'RUNNING' } }), {
      name: 'abc-1',
      state: 'RUNNING',
    })
    assert.deepEqual(createdIn({ output: { task_id: 'a', task_status: 'WHATEVER' } }), { name: 'a', state: 'PENDING' })
    for (const id of ['', '../x', 'a b', 'a/b', 'x'.repeat(201), 5, null, undefined])
      assert.equal(createdIn({ output: { task_id: id } }), undefined)
    for (const json of [undefined, null, 'text', [], {}, { output: [] }]) assert.equal(createdIn(json), undefined)
  })

  const succeeded = (usage: unknown, output = {}) =>
    reportIn(
      { output: { task_id: 't', task_status: 'SUCCEEDED', video_url: 'https://x/v.mp4', ...output }, usage },
      't',
    )
  const usageOf = (usage: unknown) => {
    const report = succeeded(usage)
    assert.ok(report?.state === 'SUCCEEDED')
    return report.usage
  }

  it('has its usage in an object or in a text, under a name that has changed twice', () => {
    const whole = { seconds: 5, videos: 1, resolution: 720 }
    for (const usage of [
      { output_video_duration: 5, SR: 720, video_count: 1, duration: 9 },
      { video_duration: 5, SR: 720, video_count: 1 },
      { duration: 5, SR: '720', video_count: '1' },
      { duration: '5', SR: '720P' },
      JSON.stringify({ output_video_duration: 5, SR: 720 }),
    ])
      assert.deepEqual(usageOf(usage), whole)
    assert.deepEqual(usageOf({ output_video_duration: 4.5 }), { seconds: 4.5, videos: 1, resolution: undefined })
  })

  it('says nothing where what it says is no number that a video can have', () => {
    for (const duration of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e9, '-5', '1e5', {}, [5], true, null])
      assert.equal(usageOf({ output_video_duration: duration }).seconds, undefined)
    for (const usage of [undefined, null, '{"broken', '5', 5, []]) assert.equal(usageOf(usage).seconds, undefined)
  })

  it('is about another task where it names one', () => {
    assert.equal(reportIn({ output: { task_id: 'u', task_status: 'FAILED' } }, 't'), undefined)
  })

  it('is a success only with the address of a video', () => {
    for (const video_url of [undefined, '', 5]) assert.equal(succeeded({}, { video_url })?.state, 'FAILED')
    assert.equal(succeeded({}, { video_url: `https://x/${'x'.repeat(50_000)}` })?.state, 'SUCCEEDED')
  })

  it('gives a reason that PostgreSQL can keep', () => {
    const report = reportIn(
      { output: { task_status: 'FAILED', code: 'x'.repeat(999), message: `a\0b\uD800${'m'.repeat(9_999)}` } },
      't',
    )
    assert.ok(report?.state === 'FAILED')
    assert.equal(report.code.length, 200)
    assert.equal(report.message.length, 2_000)
    assert.ok(report.message.isWellFormed() && !report.message.includes('\0'))
  })

  it('never makes us fail, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 2 }), (output, usage) => {
        reportIn({ output, usage }, 't')
        reportIn(output, 't')
        createdIn({ output })
      }),
    )
  })
})
