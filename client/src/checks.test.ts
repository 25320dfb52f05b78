import assert from 'node:assert/strict'
import { it } from 'node:test'
import { baseUrlOf, newKey, requireIdempotencyKey } from './checks.ts'
import { wireOf } from './wire.ts'

it('makes keys that are new also where there is no randomUUID, as on pages that came by plain http', (test) => {
  const make = () => Array.from({ length: 1_000 }, newKey)
  const usual = make()
  test.mock.property(Crypto.prototype, 'randomUUID', undefined)
  const keys = [...usual, ...make()]
  assert.equal(new Set(keys).size, 2_000)
  keys.forEach(requireIdempotencyKey)
})

it('refuses an address of plain http on another machine, where a key could be read on the way', () => {
  for (const address of [
    'http://gateway.example.com',
    'http://127.0.0.1.example.com',
    'http://10.0.0.1:8700',
    'http://localhost.example.com',
  ])
    assert.throws(() => baseUrlOf(address), /must be https/, address)
  for (const address of [
    'https://gateway.example.com',
    'http://127.0.0.1:8700',
    'http://localhost:8700',
    'http://[::1]:8700',
  ])
    assert.equal(baseUrlOf(`${address}/`), address)
})

it('refuses an id that would lead a path elsewhere', () => {
  const route = { method: 'GET', path: '/v1/tasks/{task_id}', isTask: false }
  const place = { baseUrl: 'https://gateway.example.com', names: {} }
  for (const id of ['.', '..']) assert.throws(() => wireOf(route, { task_id: id }, place, {}), /task_id must not be/)
  assert.equal(wireOf(route, { task_id: '../x' }, place, {}).url, 'https://gateway.example.com/v1/tasks/..%2Fx')
})
