import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ownWordOf } from '../harness/new-operation.ts'
import { contractHere, defaultNames } from '../harness/recorded-contract.ts'
import { ROOT } from '../harness/root.ts'
import { financialMetricsSnapshot as answer } from '../sandbox/src/answers/financial-metrics-snapshot.ts'
import { ANSWERS } from '../sandbox/src/answers.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { financialMetricsSnapshot } from '../server/src/catalogue/operations/financial-metrics-snapshot.ts'
import { RESERVED_SEGMENTS } from '../server/src/config/reserved-segments.ts'
import {
  answerName,
  isAnswer,
  isOperation,
  type Listed,
  unanswered,
  unevenIn,
  unevenWords,
  unusedAnswers,
} from './lists.ts'

const OPERATIONS = {
  folder: 'server/src/catalogue/operations',
  list: 'server/src/catalogue/catalogue.ts',
  entries: catalogue.operations,
  isOne: isOperation,
  nameOf: ({ id }: { readonly id: string }) => id,
}

describe('the list of operations', () => {
  it('has every operation that has a file, and no other', async () => {
    assert.deepEqual(await unevenIn(ROOT, OPERATIONS), [])
  })

  it('is answered by the sandbox as far as it is sold by the unit', () => {
    assert.deepEqual(unanswered(catalogue.operations), [])
  })
})

describe('the list of words that no setting may spell', () => {
  const spelled = Object.values(defaultNames())
  // Of everything that is served, sold or not, without what a setting spells.
  const paths = Object.keys(Object(JSON.parse(contractHere().bytes.toString('utf8'))).paths).filter(
    (at) => !spelled.includes(ownWordOf(at) ?? ''),
  )

  it('has the first word of every path below /apis/v1 that no setting spells, and no other', () => {
    assert.deepEqual(unevenWords(paths, RESERVED_SEGMENTS), [])
  })

  it('would be told of a word that it forgets, and of one that it has for nothing', () => {
    assert.deepEqual(
      unevenWords(['/apis/v1/harbour/tides', '/apis/v1/{social_a}/tides', '/v1/rerank'], ['financial']),
      [
        'server/src/config/reserved-segments.ts does not have "harbour": add it',
        'server/src/config/reserved-segments.ts has "financial", which no path begins with',
      ],
    )
  })
})

describe("the list of the sandbox's answers", () => {
  it('has every answer that has a file, and no other', async () => {
    const answers = { folder: 'sandbox/src/answers', list: 'sandbox/src/answers.ts', entries: ANSWERS }
    assert.deepEqual(await unevenIn(ROOT, { ...answers, isOne: isAnswer, nameOf: answerName }), [])
  })

  it('has none that no operation asks for', () => {
    assert.deepEqual(unusedAnswers(ANSWERS, catalogue.operations), [])
  })
})

describe('the test of the lists', () => {
  it('names a file that its list forgets, and an entry that has no file', async () => {
    const root = mkdtempSync(path.join(tmpdir(), 'farebox-lists-'))
    try {
      mkdirSync(path.join(root, 'operations'))
      const made = (id: string) => `{ id: '${id}', method: 'GET', path: '/${id}', dialect: 'data' }`
      writeFileSync(path.join(root, 'operations/tides.ts'), `export const tides = ${made('tides')}\n`)
      writeFileSync(path.join(root, 'operations/tides.test.ts'), `export const test = ${made('test')}\n`)
      writeFileSync(path.join(root, 'operations/shared.ts'), "export const shared = { id: 'shared' }\n")
      const listed: Listed<(typeof catalogue.operations)[number]> = {
        ...OPERATIONS,
        folder: 'operations',
        list: 'list.ts',
        entries: [financialMetricsSnapshot],
      }
      assert.deepEqual(await unevenIn(root, listed), [
        'operations/tides.ts makes tides, which list.ts does not list: add it there',
        'list.ts lists financial_metrics_snapshot, which no file in operations/ makes: give it one',
      ])
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  it('names an answer that nobody asks for, by its upstream, its method and its path', () => {
    assert.deepEqual(unusedAnswers([answer], [financialMetricsSnapshot]), [])
    for (const change of [{ upstream: 'traffic' }, { method: 'POST' }, { path: '/elsewhere' }] as const)
      assert.match(
        unusedAnswers([{ ...answer, ...change }], [financialMetricsSnapshot]).join(),
        /^No operation asks for the answer to /,
      )
  })

  it('names an operation that the sandbox does not answer', () => {
    const { upstream } = financialMetricsSnapshot
    for (const change of [
      { upstream: { ...upstream, slot: 'nobody' } },
      { upstream: { ...upstream, path: '/elsewhere' } },
      { method: 'POST' },
    ] as const)
      assert.match(
        unanswered([{ ...financialMetricsSnapshot, ...change }]).join(),
        /^The sandbox does not answer financial_metrics_snapshot \(/,
      )
  })
})
