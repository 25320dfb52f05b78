import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DEADLINE_MS, latenessOf, lost, stage } from './lane-stage.ts'

describe('a deadline that passes', () => {
  it('while the item waits for its first batch says that it was never sent', async () => {
    const { submit, batch, pass, sent } = stage()
    submit('a', 10 * DEADLINE_MS)
    const { answer } = await batch(0)
    const late = submit('b')
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(late), { sent: false })
    answer()
    submit('c', 10 * DEADLINE_MS)
    await batch(1)
    assert.deepEqual(sent(), [['a'], ['c']], 'and it never is')
  })

  it('while the item is in flight says that it was sent, and its answer comes too late', async () => {
    const { lane, submit, batch, pass } = stage()
    const late = submit('a')
    const { answer } = await batch(0)
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(late), { sent: true })
    answer()
    await lane.idle()
  })

  it('while the item waits to be sent again says that it was sent: PostgreSQL may have carried it out', async () => {
    const { submit, batch, pausing, pass, resume, sent } = stage()
    const late = submit('a')
    ;(await batch(0)).fail(lost)
    await pausing()
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(late), { sent: true })
    resume()
    submit('b')
    await batch(1)
    assert.deepEqual(sent(), [['a'], ['b']], 'and it is not sent again')
  })

  it('while the item waits behind others to be sent again says that it was sent', async () => {
    const { submit, batch, pausing, pass, resume } = stage({ batchLimit: 1 })
    const [first, second] = [submit('a'), submit('b', 2 * DEADLINE_MS)]
    ;(await batch(0)).fail(lost)
    await pausing()
    resume()
    ;(await batch(1)).fail(lost)
    await pausing(1)
    pass(2 * DEADLINE_MS)
    assert.deepEqual(await latenessOf(first), { sent: true })
    assert.deepEqual(await latenessOf(second), { sent: false })
  })

  it('before an answer that comes in time for nobody leaves the others of its batch alone', async () => {
    const { submit, batch, pass } = stage()
    const [impatient, patient] = [submit('a'), submit('b', 10 * DEADLINE_MS)]
    const { answer } = await batch(0)
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(impatient), { sent: true })
    answer()
    assert.equal(await patient, 'b done')
  })
})
