import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { count, isFullProof, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { type Kind, LINK_KINDS, OUTAGES, planOf } from './plan.ts'
import { requireHeld, runAndRecord } from './prove.ts'
import type { RunResult } from './run.ts'

/**
 * A run of one seed, a minute with its start and its judgement, or of twenty at full counts, a minute each;
 * `npm run faults -- --seed N --seconds S` repeats one.
 */
const PROOF = 'faults'
const SEEDS = count({ full: 20, reduced: 1 })
const SECONDS = count({ full: 60, reduced: 30 })
/** Of faults, with a disk to fill. */
const KINDS = 41
const seeds = Array.from({ length: SEEDS }, (_, at) => (isFullProof ? at + 1 : seed))

describe('the plan of faults', () => {
  it('is the same for the same seed, and another one for another', () => {
    for (const one of seeds) {
      assert.deepEqual(planOf(one, SECONDS, { hasDisk: true }), planOf(one, SECONDS, { hasDisk: true }))
      assert.notDeepEqual(planOf(one, SECONDS, { hasDisk: true }), planOf(one + 1, SECONDS, { hasDisk: true }))
    }
  })

  it('has every kind of fault in a minute, and begins and ends within the time', () => {
    const plan = planOf(seed, 60, { hasDisk: true })
    const kinds = new Set(plan.map(({ kind }) => kind))
    for (const kind of [...LINK_KINDS, 'kill gateway', 'kill postgres', 'pause gateway', 'move clock', 'fill disk'])
      assert.ok(kinds.has(kind as never), `${kind} is planned`)
    for (const { atMs } of plan) assert.ok(atMs >= 0 && atMs < 60_000)
  })

  it('repeats every kind in half an hour, and never has two outages of everything in a row', () => {
    const plan = planOf(seed, 1_800, { hasDisk: true }).map(({ kind }) => kind)
    const times = [...Map.groupBy(plan, (kind) => kind).values()].map((own) => own.length)
    assert.deepEqual([times.length, Math.max(...times) - Math.min(...times) <= 1], [KINDS, true])
    const isOutage = (kind: Kind | undefined) => kind !== undefined && OUTAGES.has(kind)
    assert.ok(plan.every((kind, at) => !isOutage(kind) || !isOutage(plan[at + 1])))
  })

  it('fills no disk where there is none to fill', () => {
    assert.ok(planOf(seed, 60, { hasDisk: false }).every(({ kind }) => kind !== 'fill disk'))
  })
})

describe('the cluster under faults', () => {
  const results: RunResult[] = []

  for (const one of seeds) {
    it(`keeps every promise, and every fault of the plan hits something: seed ${one}`, async (test) => {
      const result = await runAndRecord(test, PROOF, { seed: one, seconds: SECONDS })
      results.push(result)
      requireHeld(PROOF, result)
    })
  }

  it('was hit by every kind of fault', () => {
    const hits: Record<string, number> = {}
    for (const { faults } of results)
      for (const [kind, more] of Object.entries(faults)) hits[kind] = (hits[kind] ?? 0) + more
    assert.ok(Object.keys(hits).length > 0)
    for (const kind of LINK_KINDS) sometimes((hits[kind] ?? 0) > 0, `the fault ${kind}`)
    recordProof(PROOF, 'hits by kind', { runs: results.length, held: results.filter(({ ok }) => ok).length, hits })
  })
})
