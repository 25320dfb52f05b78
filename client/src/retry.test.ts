import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createBackoff, retryAfterOf } from './retry.ts'

it('reads Retry-After as seconds or as a date, and nothing else', () => {
  const read = (text: string) => retryAfterOf(new Headers({ 'retry-after': text }), Date.UTC(2026, 0, 1))
  assert.equal(read('7'), 7_000)
  assert.equal(read('0'), 0)
  assert.equal(read('Thu, 01 Jan 2026 00:00:30 GMT'), 30_000)
  assert.equal(read('Wed, 31 Dec 2025 00:00:00 GMT'), 0)
  for (const text of ['soon', '']) assert.equal(read(text), undefined, text)
  assert.equal(retryAfterOf(new Headers()), undefined)
})

it('CLIENT-1 doubles with each further 429, up to 30 s, and never below Retry-After', () => {
  const { nextMs } = createBackoff(() => 0.5)
  const waits = [2, 2, 2, 2, 2, 2, 45, 0].map((seconds) => nextMs('limited', seconds * 1_000))
  assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 45_000, 30_000])
  for (const [chance, part] of [
    [0, 0.75],
    [1, 1.25],
  ] as const)
    assert.equal(createBackoff(() => chance).nextMs('limited', undefined), 1_000 * part)
})

it('CLIENT-5 backs off from transient failures within bounds', () => {
  const { nextMs } = createBackoff(() => 0.5)
  const waits = [0, 0, 0, 0, 0, 0, 20].map((seconds) => nextMs('transient', seconds * 1_000))
  assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 20_000])
})
