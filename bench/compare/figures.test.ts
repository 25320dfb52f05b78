import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LoadReport } from '../load/load.ts'
import { metricsOf, type Reports, type Round } from './figures.ts'

const NONE_REPEATED = { windows: 12, repeated: 2, disturbed: 1 }

type Given = {
  readonly gatewayUs: number
  readonly postgresUs: number
  readonly p50Ms?: number
  readonly perSecond?: number
}

/** Ten calls, each of which took so much. */
function report({ gatewayUs, postgresUs, p50Ms = 1, perSecond = 1_000 }: Given): LoadReport {
  return {
    ...{ answered: 10, refused: 0, statuses: { 200: 10 }, broken: 0, bytes: 1, bytesOfOne: 1, measuredMs: 1 },
    ...{ p99Ms: 1, servedP50Ms: 1, servedP99Ms: 1, refusedP50Ms: 0, refusedP99Ms: 0, seconds: [], perSecond, p50Ms },
    ...{ cpuUs: { server: 10 * gatewayUs, postgres: 10 * postgresUs }, generatorShare: 0.1, othersCores: 0 },
  }
}

function reports(ours: Given, old: Given, bare: Given): Reports {
  return { new: report(ours), old: report(old), bare: report(bare) }
}

const BARE = { gatewayUs: 100, postgresUs: 0, p50Ms: 0.5 }

function roundOf(c50: Reports, r500: Reports, apart: Reports): Round {
  return new Map([
    ['c50', c50],
    ['c200', c50],
    ['r500', r500],
    ['apart', apart],
  ])
}

function figuresOf(rounds: readonly Round[]) {
  const all = metricsOf(rounds, NONE_REPEATED)
  return new Map(all.map(({ name, value, baseline }) => [name, { value, baseline }]))
}

describe('the figures of a comparison', () => {
  it('are medians of ratios within a round, not ratios of medians, with their whole range for a few rounds', () => {
    const rounds = [
      { ours: 150, old: 300 },
      { ours: 400, old: 500 },
      { ours: 600, old: 800 },
    ].map(({ ours, old }) => {
      const one = reports({ gatewayUs: 240, postgresUs: ours }, { gatewayUs: 200, postgresUs: old }, BARE)
      return roundOf(one, one, one)
    })
    const figures = figuresOf(rounds)
    assert.deepEqual(figures.get('pg_ratio_c50'), { value: 0.75, baseline: 500 })
    assert.equal(figures.get('pg_ratio_c50_low')?.value, 0.5)
    assert.equal(figures.get('pg_ratio_c50_high')?.value, 0.8)
    assert.deepEqual(figures.get('gateway_ratio_c200'), { value: 1.2, baseline: 200 })
    assert.deepEqual(figures.get('cpu_ratio_bare'), { value: 2.4, baseline: 100 })
    assert.deepEqual(figures.get('cpu_ratio_bare_c200'), { value: 2.4, baseline: 100 })
    assert.deepEqual(figures.get('postgres_us_c50'), { value: 400, baseline: 500 })
  })

  it('tell what each version adds to the bare proxy, by layout and beside the other layout', () => {
    const cost = { gatewayUs: 1, postgresUs: 1 }
    const shared = reports({ ...cost, p50Ms: 6 }, { ...cost, p50Ms: 9.5 }, BARE)
    const apart = reports({ ...cost, p50Ms: 3 }, { ...cost, p50Ms: 5.5 }, BARE)
    const figures = figuresOf([roundOf(shared, shared, apart)])
    assert.deepEqual(figures.get('added_p50_us'), { value: 2_500, baseline: 5_500 })
    assert.deepEqual(figures.get('added_p50_us_shared'), { value: 5_500, baseline: 2_500 })
    assert.deepEqual(figures.get('added_p50_us_old'), { value: 5_000, baseline: 9_000 })
    assert.deepEqual(figures.get('added_p50_us_shared_old'), { value: 9_000, baseline: 5_000 })
  })

  it('leave out a rung of the ladder that a version did not keep up with, and count it', () => {
    const cost = { gatewayUs: 1, postgresUs: 1 }
    const kept = reports({ ...cost, postgresUs: 2, perSecond: 480 }, { ...cost, perSecond: 500 }, BARE)
    const missed = reports({ ...cost, postgresUs: 9, perSecond: 500 }, { ...cost, perSecond: 470 }, BARE)
    const figures = figuresOf([roundOf(kept, missed, kept), roundOf(kept, kept, kept)])
    assert.equal(figures.get('pg_ratio_r500')?.value, 2)
    assert.deepEqual(figures.get('steps_below_rate'), { value: 1, baseline: 6 })
    assert.equal(figuresOf([roundOf(kept, missed, kept)]).has('pg_ratio_r500'), false)
  })

  it('say how many windows were repeated and how many were disturbed all the same', () => {
    const one = reports({ gatewayUs: 1, postgresUs: 1 }, { gatewayUs: 1, postgresUs: 1 }, BARE)
    const figures = figuresOf([roundOf(one, one, one)])
    assert.deepEqual(figures.get('windows_repeated'), { value: 2, baseline: 12 })
    assert.deepEqual(figures.get('windows_disturbed'), { value: 1, baseline: 12 })
  })
})
