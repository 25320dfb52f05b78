import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { copyOfProject, runInCopy as run } from '../../harness/project-copy.ts'

describe('the gates of the project', () => {
  const copy = copyOfProject()

  it('npm run check fails on an import from the ledger to the edge, and on nothing else', () => {
    writeFileSync(path.join(copy, 'server/src/ledger/planted.ts'), "export type { Edge } from '../http/edge.ts'\n")
    // The types of everything take half a minute, and say nothing about who may import whom.
    const { code, output } = run(copy, 'scripts/check.ts', 'architecture', 'lint', 'contract')
    rmSync(path.join(copy, 'server/src/ledger/planted.ts'))
    assert.equal(code, 1, output)
    assert.match(output, /ledger may not import http/)
    assert.deepEqual(output.match(/^FAILED .*?(?= \()/gm), ['FAILED architecture'], output)
  })

  it('npm run check fails on every document that is not what its program writes, and passes as they are', () => {
    const documents = {
      'document of the catalogue': 'docs/catalogue.md',
      'document of the commands': 'docs/cli.md',
      'document of the errors': 'docs/errors.md',
      'document of the members': 'docs/members.md',
      'document of the metrics': 'docs/metrics.md',
      'document of the settings': 'docs/configuration.md',
    }
    const names = Object.keys(documents)
    const files = Object.values(documents).map((file) => path.join(copy, file))
    assert.deepEqual(run(copy, 'scripts/check.ts', ...names).code, 0)
    const texts = files.map((file) => readFileSync(file, 'utf8'))
    for (const [at, file] of files.entries()) writeFileSync(file, `${texts[at]}planted\n`)
    const { code, output } = run(copy, 'scripts/check.ts', ...names)
    for (const [at, file] of files.entries()) writeFileSync(file, texts[at] ?? '')
    assert.equal(code, 1, output)
    assert.deepEqual(
      output.match(/^FAILED .*?(?= \()/gm)?.toSorted(),
      names.map((name) => `FAILED ${name}`),
      output,
    )
  })

  it('npm run conformance shows a planted id, and reports it as lost when its test is gone', () => {
    const results = path.join(copy, 'results.json')
    const proven = (...titles: string[]) =>
      titles.map((title) => ({ titles: [title], outcome: 'passed', file: '', durationMs: 1 }))
    const judged = (...titles: string[]) => {
      writeFileSync(results, JSON.stringify(proven(...titles)))
      const { code, output } = run(copy, 'scripts/conformance.ts', '--json', '--results', results)
      return { code, ...JSON.parse(output.trim().split('\n').at(-1) ?? '') }
    }
    const record = path.join(copy, 'test/conformance/passing.json')
    const [id = '', ...recorded]: string[] = JSON.parse(readFileSync(record, 'utf8'))
    // As if nobody had shown it yet.
    writeFileSync(record, JSON.stringify(recorded))
    const all = recorded.map((one) => `${one} is shown`)
    const planted = judged(...all, `${id} planted`)
    assert.deepEqual([planted.code, planted.ok, planted.ids[id]], [0, true, 'pass'])
    const removed = judged(...all)
    assert.deepEqual([removed.code, removed.ok, removed.ids[id], removed.lost], [1, false, 'none', [id]])
  })
})
