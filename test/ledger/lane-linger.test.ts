import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { DEADLINE_MS, latenessOf, stage } from './lane-stage.ts'

describe('a lane', () => {
  it('collects for a moment longer after a batch of several', async () => {
    const { submit, batch, sent, pausing, resume } = stage()
    for (const item of ['a', 'b', 'c']) submit(item)
    const { answer } = await batch(0)
    submit('d')
    answer()
    await pausing()
    submit('e')
    await turn()
    assert.deepEqual(sent(), [['a', 'b', 'c']])
    resume()
    await batch(1)
    assert.deepEqual(sent()[1], ['d', 'e'])
  })

  it('does not where two were sent, or many wait already', async () => {
    const few = stage()
    for (const item of ['a', 'b']) few.submit(item)
    const { answer } = await few.batch(0)
    few.submit('c')
    answer()
    await few.batch(1)
    assert.deepEqual(few.sent()[1], ['c'])
    const many = stage({ batchLimit: 200, queueLimit: 200 })
    for (const item of ['a', 'b', 'c']) many.submit(item)
    const first = await many.batch(0)
    const waiting = Array.from({ length: 100 }, (_, at) => `${at}`)
    for (const item of waiting) many.submit(item)
    first.answer()
    await many.batch(1)
    assert.deepEqual(many.sent()[1], waiting)
  })

  it('does not where what waits is a whole batch', async () => {
    const { submit, batch, sent } = stage({ batchLimit: 3 })
    for (const item of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) submit(item)
    const { answer } = await batch(0)
    answer()
    await batch(1)
    assert.deepEqual(sent()[1], ['d', 'e', 'f'])
  })

  it('lets deadlines pass meanwhile: who is late was never sent, and never is', async () => {
    const { submit, batch, sent, pass, pausing, resume } = stage()
    for (const item of ['a', 'b', 'c']) submit(item, 10 * DEADLINE_MS)
    const { answer } = await batch(0)
    const late = submit('d')
    submit('e', 10 * DEADLINE_MS)
    answer()
    await pausing()
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(late), { sent: false })
    resume()
    await batch(1)
    assert.deepEqual(sent()[1], ['e'])
  })
})
