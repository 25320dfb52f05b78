import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { locked, lost, refused, stage } from './lane-stage.ts'

describe('a lock that somebody else holds', () => {
  it('sets the accounts of a batch apart when one of them is locked, with what waits for them already', async () => {
    const { submit, batch, sent } = stage()
    submit('a@locked')
    const free = submit('b@free')
    const first = await batch(0)
    submit('c@locked')
    const other = submit('d@other')
    first.fail(locked)
    await batch(3)
    const later = sent().slice(1)
    assert.deepEqual([...later].sort(), [['a@locked', 'c@locked'], ['b@free'], ['d@other']])
    for (const [at, items] of later.entries()) if (!items.includes('a@locked')) (await batch(at + 1)).answer()
    assert.deepEqual(await Promise.all([free, other]), ['b@free done', 'd@other done'])
  })

  it('sets only those accounts apart that were in the statement that waited', async () => {
    const { submit, batch, sent } = stage()
    const locked1 = submit('a@locked')
    const free = submit('b@free')
    const first = await batch(0)
    submit('c@free')
    first.failOf(locked, 'a@locked')
    assert.equal(await free, 'b@free done')
    await batch(2)
    assert.deepEqual(sent().slice(1).toSorted(), [['a@locked'], ['c@free']])
    for (const at of [1, 2]) (await batch(at)).answer()
    assert.equal(await locked1, 'a@locked done')
  })

  it('does not say of what a lock kept back that an earlier sending may have been carried out, but of what was lost before', async () => {
    const { submit, batch, pausing, resume, answeredLate } = stage()
    const refusals = [submit('a@locked'), submit('b@other')]
    ;(await batch(0)).failOf(lost, 'b@other')
    assert.equal(await refusals[0], 'a@locked done')
    await pausing()
    const third = submit('c@locked')
    resume()
    ;(await batch(1)).fail(locked)
    for (const at of [2, 3]) (await batch(at)).fail(refused)
    await assert.rejects(Promise.all([refusals[1], third]), refused)
    await assert.rejects(third, refused)
    assert.deepEqual(answeredLate, ['b@other: an error'])
  })

  it('sends what a lock kept back again, also what may be sent once only', async () => {
    const { submit, batch, pausing, resume } = stage()
    const answer = submit('once@locked')
    ;(await batch(0)).fail(locked)
    ;(await batch(1)).fail(locked)
    await pausing()
    resume()
    ;(await batch(2)).answer()
    assert.equal(await answer, 'once@locked done')
  })
})
