import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { ROOT } from '../../harness/root.ts'

const form = z.strictObject({
  name: z.string(),
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

type Ended = { readonly code: number; readonly told: string; readonly errors: string }

function bench(...words: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [path.join(ROOT, 'scripts/bench.ts'), ...words], { cwd: ROOT }, (error, told, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), told, errors }),
    )
  })
}

/** In seconds no goal is met, and then it fails: what it told is what counts here. */
async function reduced(name: string) {
  const { told, errors } = await bench(name, '--reduced', '--json')
  assert.notEqual(told, '', errors)
  const { metrics, ...result } = form.parse(JSON.parse(told.trim().split('\n').at(-1) ?? ''))
  assert.equal(result.name, name)
  return new Map(metrics.map((one) => [one.name, one]))
}

describe('the benchmark of a metered call', () => {
  it('runs the real service and tells its figures as JSON in its last line', async () => {
    const figures = await reduced('overhead')
    for (const name of ['cpu_ratio_bare', 'cpu_ratio_bare_c200', 'gateway_us_c50', 'postgres_us_c50', 'requests_c50'])
      assert.ok(figures.has(name), `${name} is missing`)
    assert.ok(figures.has('added_p50_us'))
    for (const load of ['alone', 'r100'])
      for (const name of ['added_p50_us', 'gateway_us', 'postgres_us', 'p50_ms'])
        assert.ok(figures.has(`${name}_${load}`), `${name}_${load} is missing`)
  })
})

describe('the benchmark that compares two versions', () => {
  it('runs both beside the bare proxy, and tells ratios with their intervals: here of this version to itself', async () => {
    const figures = await reduced('compare')
    for (const name of [
      ...['pg_ratio_c50', 'pg_ratio_c200', 'pg_ratio_single', 'cpu_ratio_bare', 'cpu_ratio_bare_c200'],
      ...['gateway_ratio_c50', 'gateway_ratio_c200', 'gateway_ratio_single', 'added_p50_us', 'added_p50_us_shared'],
    ])
      for (const one of [name, `${name}_low`, `${name}_high`]) assert.ok(figures.has(one), `${one} is missing`)
    // Each version has answered, in five steps of three windows, none of which was repeated.
    const requests = figures.get('requests_c50')
    assert.ok(Number(requests?.value) > 0 && Number(requests?.baseline) > 0)
    const repeated = figures.get('windows_repeated')
    assert.deepEqual([repeated?.value, repeated?.baseline], [0, 15])
  })

  it('refuses a version that is not here, before it starts anything', async () => {
    const { code, told, errors } = await bench('compare', '0.0.0', '--reduced')
    assert.deepEqual({ code, told }, { code: 1, told: '' })
    assert.match(errors, /There is no release, tag or commit 0\.0\.0 here\./)
  })

  it('alone takes the name of a version', async () => {
    const { code, errors } = await bench('overhead', '0.1.0', '--reduced')
    assert.equal(code, 1)
    assert.match(errors, /overhead takes no 0\.1\.0/)
  })
})
