import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { inputFault } from './input-fault.ts'

describe('what is wrong with parameters', () => {
  it('names a few that nobody knows, and says how many more there are', () => {
    const given = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`name_${at}`, at]))
    const { error } = z.strictObject({}).safeParse(given)
    const fault = inputFault(error ?? assert.fail(), given)
    assert.match(fault.message, /Unknown parameter "name_0", "name_1", "name_2" and 4997 more\.$/)
  })

  it('names what is within a list as callers write it', () => {
    const given = { calls: [{ operation_id: 'a' }, { operation_id: 5, extra: 1 }] }
    const { error } = z.strictObject({ calls: z.array(z.strictObject({ operation_id: z.string() })) }).safeParse(given)
    const { message, members } = inputFault(error ?? assert.fail(), given)
    assert.equal(message, '"calls[1].operation_id" must be a text. Unknown parameter "calls[1].extra".')
    assert.equal(members.param, 'calls[1].operation_id')
  })
})
