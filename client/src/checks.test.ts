import assert from 'node:assert/strict'
import { it } from 'node:test'
import { newKey, requireIdempotencyKey } from './checks.ts'

it('makes keys that are new also where there is no randomUUID, as on pages that came by plain http', (test) => {
  const make = () => Array.from({ length: 1_000 }, newKey)
  const usual = make()
  test.mock.property(Crypto.prototype, 'randomUUID', undefined)
  const keys = [...usual, ...make()]
  assert.equal(new Set(keys).size, 2_000)
  keys.forEach(requireIdempotencyKey)
})
