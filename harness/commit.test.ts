import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { commitHere, commitNamed } from './commit.ts'
import { ROOT } from './root.ts'

describe('the name of a commit', () => {
  it('is what git knows: HEAD, or a beginning of its hash', () => {
    const here = commitHere() ?? assert.fail('this is no checkout')
    assert.equal(commitNamed('HEAD'), here)
    assert.equal(commitNamed(here.slice(0, 10)), here)
  })

  it('is a release, by its record', (test) => {
    const { commit } = JSON.parse(readFileSync(path.join(ROOT, 'docs/releases/0.1.0.json'), 'utf8'))
    // A shallow clone may not have it.
    if (commitNamed(commit) === undefined) return test.skip('the commit of the release is not in this clone')
    assert.equal(commitNamed('0.1.0'), commit)
  })

  it('is neither a file, nor an option, nor what is not there', () => {
    for (const name of ['package.json', '--all', '0.0.0', '../releases/0.1.0', '0'.repeat(40)])
      assert.equal(commitNamed(name), undefined, name)
  })
})
