import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { ROOT } from '../../harness/root.ts'

const form = z.strictObject({
  name: z.literal('overhead'),
  ok: z.boolean(),
  metrics: z.array(
    z.strictObject({
      name: z.string(),
      // Nothing, where a machine is too busy for a single request in a round of a moment.
      value: z.number().nullable(),
      unit: z.string(),
      baseline: z.number().nullable(),
      goal: z.string().nullable(),
      ok: z.boolean(),
    }),
  ),
})

describe('the benchmark of a metered call', () => {
  it('runs the real service and tells its figures as JSON in its last line', async () => {
    const args = [path.join(ROOT, 'scripts/bench.ts'), 'overhead', '--reduced', '--json']
    // In seconds no goal is met, and then it fails: what it told is what counts here.
    const { told, errors } = await new Promise<{ told: string; errors: string }>((resolve) => {
      execFile(process.execPath, args, { cwd: ROOT }, (_error, told, errors) => resolve({ told, errors }))
    })
    assert.notEqual(told, '', errors)
    const { metrics } = form.parse(JSON.parse(told.trim().split('\n').at(-1) ?? ''))
    const figures = new Map(metrics.map(({ name, value }) => [name, value]))
    for (const name of ['cpu_ratio_bare', 'cpu_ratio_bare_c200', 'gateway_us_c50', 'postgres_us_c50', 'requests_c50'])
      assert.ok(figures.has(name), `${name} is missing`)
    assert.ok(figures.has('added_p50_us'))
  })
})
