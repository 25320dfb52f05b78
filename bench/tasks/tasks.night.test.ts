import assert from 'node:assert/strict'
import { it } from 'node:test'
import { measureTasks } from './index.ts'

/** What a slower machine may miss, or a shorter run by chance. */
const ABOUT = ['claim_ratio_bare', 'quota_used', 'claim_of_nothing', 'young_share', 'old_share']

it('keeps the pace of each upstream, asks in order for tasks of both ages, and loses none', async (t) => {
  const metrics = await measureTasks({ tasks: 6_000, rounds: 2, seconds: 3 }, (line) => t.diagnostic(line))
  for (const { name, value } of metrics) t.diagnostic(`${name} ${value}`)
  assert.deepEqual(
    metrics.filter(({ name, ok }) => !ok && !ABOUT.includes(name)),
    [],
  )
  for (const name of ABOUT) assert.ok(metrics.some((metric) => metric.name === name && metric.value > 0))
})
