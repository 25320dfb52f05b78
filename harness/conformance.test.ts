import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judge, parseIds } from './conformance.ts'
import type { Outcome, Result } from './run-tests.ts'

const ids = parseIds('# List\n\n- USAGE-1 One.\n- USAGE-2 Two.\nnot - USAGE-9 this\n- ERR-1 Three.\n')

function test(title: string, outcome: Outcome = 'passed', suite = 'a suite'): Result {
  return { titles: [suite, title], outcome, file: 'x.test.ts', durationMs: 1 }
}

describe('conformance', () => {
  it('reads the ids of the list', () => {
    assert.deepEqual(ids, ['USAGE-1', 'USAGE-2', 'ERR-1'])
  })

  it('counts an id as passing when a test that names it passes', () => {
    const verdict = judge({
      ids,
      passedBefore: [],
      results: [test('USAGE-1 has a scope'), test('about UTF-8 and SHA-256')],
    })
    assert.deepEqual(verdict.ids, { 'USAGE-1': 'pass', 'USAGE-2': 'none', 'ERR-1': 'none' })
    assert.ok(verdict.ok)
  })

  it('finds ids in the title of a suite, and several in one title', () => {
    const { passing } = judge({ ids, passedBefore: [], results: [test('a case', 'passed', 'USAGE-2 and ERR-1')] })
    assert.deepEqual(passing, ['USAGE-2', 'ERR-1'])
  })

  it('fails on one failing test among passing ones of the same id', () => {
    const verdict = judge({ ids, passedBefore: [], results: [test('USAGE-1 a'), test('USAGE-1 b', 'failed')] })
    assert.deepEqual([verdict.ok, verdict.failing], [false, ['USAGE-1']])
  })

  it('reports an id that passed before and has lost its test', () => {
    const verdict = judge({ ids, passedBefore: ['USAGE-1'], results: [test('ERR-1 is there')] })
    assert.deepEqual([verdict.ok, verdict.lost], [false, ['USAGE-1']])
  })

  it('takes a skipped test for none', () => {
    const verdict = judge({ ids, passedBefore: ['USAGE-1'], results: [test('USAGE-1 later', 'skipped')] })
    assert.deepEqual([verdict.ids['USAGE-1'], verdict.lost], ['none', ['USAGE-1']])
  })

  it('takes an id that a title calls proven in part for none, and the others of that title as they are', () => {
    const results = [test('USAGE-1 in part: for keys'), test('ERR-1 USAGE-2 in part: both', 'passed', 'some words')]
    const verdict = judge({ ids, passedBefore: [], results })
    assert.deepEqual(verdict.ids, { 'USAGE-1': 'none', 'USAGE-2': 'none', 'ERR-1': 'pass' })
    assert.deepEqual([verdict.ok, verdict.inPart], [true, ['USAGE-1', 'USAGE-2']])
  })

  it('takes it for none whatever other tests name it whole, and for failing where one of them fails', () => {
    const whole = judge({
      ids,
      passedBefore: [],
      results: [test('USAGE-1 a'), test('a case', 'passed', 'USAGE-1 in part')],
    })
    assert.deepEqual([whole.ids['USAGE-1'], whole.inPart], ['none', ['USAGE-1']])
    const broken = judge({ ids, passedBefore: [], results: [test('USAGE-1 in part', 'failed')] })
    assert.deepEqual([broken.ok, broken.failing, broken.inPart], [false, ['USAGE-1'], []])
  })

  it('reports an id as lost that passed before and is proven in part now', () => {
    const verdict = judge({ ids, passedBefore: ['USAGE-1'], results: [test('USAGE-1 in part: for keys')] })
    assert.deepEqual([verdict.ok, verdict.lost], [false, ['USAGE-1']])
  })

  it('fails on an id that no statement has', () => {
    const verdict = judge({ ids, passedBefore: [], results: [test('USAGE-7 does not exist')] })
    assert.deepEqual([verdict.ok, verdict.unknown], [false, ['USAGE-7']])
  })
})
