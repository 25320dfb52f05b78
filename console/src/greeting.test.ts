import assert from 'node:assert/strict'
import { it } from 'node:test'
import { greeting } from './greeting.ts'

it('says plainly that the console is not built yet', () => {
  assert.match(greeting(), /not built yet/)
})
