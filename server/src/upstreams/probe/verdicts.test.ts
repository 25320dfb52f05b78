import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProbedProtocol, RawCounts } from './dialects.ts'
import type { Observation } from './observe.ts'
import { limitVerdict, outputLimitOf, reasoningVerdict } from './verdicts.ts'

const NO_COUNTS: RawCounts = { input: undefined, output: undefined, reasoning: undefined, total: undefined }

function seen(change: Partial<Observation> & { readonly counted?: Partial<RawCounts> }): Observation {
  const { counted, ...rest } = change
  return {
    status: 200,
    isStream: false,
    bytes: 500,
    text: '',
    isReadable: true,
    stop: 'stop',
    isStoppedByLength: false,
    counts: counted && { ...NO_COUNTS, ...counted },
    reported: {},
    reply: { status: 200, headers: {}, pieces: [], end: 'complete' },
    ...rest,
  }
}

const LONG = 'one, two, three, '.repeat(30)
const cut = seen({ text: 'one, two, three', isStoppedByLength: true })

describe('the verdict on a limit', () => {
  it('is obeyed where a short answer says so, or where one without a limit is long', () => {
    assert.equal(limitVerdict('openai', cut), 'obeyed')
    const silent = seen({ text: 'one, two, three' })
    assert.equal(limitVerdict('openai', silent), 'unclear')
    assert.equal(limitVerdict('openai', silent, seen({ text: LONG })), 'obeyed')
    assert.equal(limitVerdict('openai', silent, seen({ text: 'No.' })), 'unclear')
  })

  it('is by what a vendor takes as its lowest limit, which is twice as high in one protocol', () => {
    const longer = seen({ text: 'one, two, three, '.repeat(10), isStoppedByLength: true })
    assert.equal(limitVerdict('openai', longer), 'ignored')
    assert.equal(limitVerdict('openai_responses', longer), 'obeyed')
  })

  it('is ignored where the text is long, whatever the vendor says of it or reports', () => {
    const counted = { output: 8 }
    assert.equal(limitVerdict('openai', seen({ text: LONG, isStoppedByLength: true, counted })), 'ignored')
    assert.equal(limitVerdict('openai', seen({ status: 400, isReadable: false })), 'refused')
    assert.equal(limitVerdict('openai', seen({ isReadable: false })), 'unclear')
  })

  it('names the one that works; what is not known leaves all as it is', () => {
    const of = (...verdicts: readonly ('obeyed' | 'ignored' | 'refused' | 'unclear' | undefined)[]) =>
      outputLimitOf(verdicts.map((verdict, at) => ({ member: `m${at}`, verdict })))
    assert.equal(of('ignored', 'obeyed'), 'm1')
    assert.equal(of('obeyed', 'refused'), 'm0')
    assert.equal(of('obeyed', 'obeyed'), null)
    assert.equal(of('ignored', 'refused'), null)
    assert.equal(of('obeyed', 'unclear'), undefined)
    assert.equal(of('obeyed', undefined), undefined)
  })
})

describe('the verdict on reasoning', () => {
  const verdict = (protocol: ProbedProtocol, counted: Partial<RawCounts>, isLimited = false) => {
    const one = seen({ counted })
    return reasoningVerdict(protocol, [one], isLimited ? [one] : [])?.counted
  }

  it('is apart where only the total has it, or where it is more than all output', () => {
    assert.equal(verdict('openai', { input: 9, output: 20, total: 29, reasoning: 10 }), 'within')
    assert.equal(verdict('openai', { input: 9, output: 20, total: 93 }), 'apart')
    assert.equal(verdict('openai', { input: 9, output: 20, reasoning: 64 }), 'apart')
    assert.equal(verdict('openai', {}), undefined)
  })

  it('is apart where it goes beyond a limit that the rest keeps to, in every protocol', () => {
    for (const protocol of ['openai', 'openai_responses', 'anthropic', 'gemini'] as const) {
      assert.equal(verdict(protocol, { input: 9, output: 300, reasoning: 292 }, true), 'apart')
      assert.equal(verdict(protocol, { input: 9, output: 8, reasoning: 8 }, true), 'within')
      assert.equal(verdict(protocol, { input: 9, output: 300, reasoning: 292 }), 'within')
    }
  })
})
