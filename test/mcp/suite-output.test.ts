import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judgeOutput } from '../../harness/mcp-checks.ts'

const output = (failed: readonly (readonly [check: string, why: string])[], passed = 4) =>
  [
    'Failed Checks:',
    ...failed.map(([check, why]) => `  - ${check}: what it looks at\n    Error: ${why}`),
    `Passed: ${passed}/${passed + failed.length}, ${failed.length} failed, 0 warnings`,
  ].join('\n')
const PROMPTS = ['PromptsListCachingHints', 'Method not found'] as const
const OWN_TOOL = ['MissingCapabilityHttp400', 'Not testable: server does not list the test_x tool'] as const

describe('a scenario of the official suite', () => {
  it('passes where every check that failed does not apply, each with its reason', () => {
    const { passed, checks_that_do_not_apply: checks } = judgeOutput(output([PROMPTS, OWN_TOOL]), true)
    assert.equal(passed, true)
    assert.deepEqual(
      checks.map(({ check }) => check),
      ['PromptsListCachingHints', 'MissingCapabilityHttp400'],
    )
    assert.ok(checks.every(({ reason }) => reason.length > 10))
  })

  it('fails where one of them applies, also by a name with a hyphen', () => {
    for (const check of ['ToolsListHints', 'tools-list-hints', 'sep-2575:header'])
      assert.equal(judgeOutput(output([PROMPTS, [check, 'it is wrong']]), true).passed, false, check)
  })

  it('fails where the suite counts one that can not be read', () => {
    const text = output([PROMPTS]).replace('1 failed', '2 failed')
    assert.equal(judgeOutput(text, true).passed, false)
    assert.equal(judgeOutput('it broke', true).passed, false)
    assert.equal(judgeOutput('it broke', false).passed, false)
    assert.equal(judgeOutput(output([]), false).passed, true)
  })
})
