import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { DEADLINE_MS, latenessOf, locked, lost, refused, stage } from './lane-stage.ts'

describe('a lane', () => {
  it('sends what arrives together as one batch, and collects the next while one is in flight', async () => {
    const { submit, batch, sent } = stage()
    const first = [submit('a'), submit('b')]
    const { answer } = await batch(0)
    const second = [submit('c'), submit('d'), submit('e')]
    await turn()
    assert.deepEqual(sent(), [['a', 'b']])
    answer()
    assert.deepEqual(await Promise.all(first), ['a done', 'b done'])
    ;(await batch(1)).answer()
    assert.deepEqual(await Promise.all(second), ['c done', 'd done', 'e done'])
    assert.deepEqual(sent()[1], ['c', 'd', 'e'])
  })

  it('does not wait for the end of a turn that takes long', async () => {
    const { submit, pass, sent } = stage()
    submit('a')
    pass(5)
    submit('b')
    assert.deepEqual(sent(), [])
    pass(1)
    submit('c')
    submit('d')
    assert.deepEqual(sent(), [['a', 'b', 'c']])
    await turn()
    assert.deepEqual(sent(), [['a', 'b', 'c']], 'and starts once')
  })

  it('keeps a batch within its limit, in the order of arrival', async () => {
    const { submit, batch, sent } = stage({ batchLimit: 2 })
    for (const item of ['a', 'b', 'c', 'd', 'e']) submit(item)
    for (const nth of [0, 1, 2]) (await batch(nth)).answer()
    assert.deepEqual(sent(), [['a', 'b'], ['c', 'd'], ['e']])
  })

  it('never puts an id into a batch twice', async () => {
    const { submit, batch, sent } = stage()
    const all = [submit('a 1'), submit('a 2'), submit('b 1'), submit('a 3')]
    for (const nth of [0, 1, 2]) (await batch(nth)).answer()
    assert.deepEqual(sent(), [['a 1', 'b 1'], ['a 2'], ['a 3']])
    assert.deepEqual(await Promise.all(all), ['a 1 done', 'a 2 done', 'b 1 done', 'a 3 done'])
  })

  it('refuses at once what comes when the queue is full', async () => {
    const { submit, batch } = stage({ queueLimit: 2 })
    submit('a')
    await batch(0)
    submit('b')
    submit('c')
    await assert.rejects(submit('d'), { message: 'overload' })
  })

  it('tells how long the first has waited, of those that are not in flight', async () => {
    const { lane, submit, batch, pass } = stage()
    submit('a')
    await batch(0)
    pass(100)
    assert.equal(lane.lagMs(), 0)
    submit('b')
    pass(200)
    submit('c')
    pass(50)
    assert.equal(lane.lagMs(), 250)
  })

  it('tells of no wait while PostgreSQL does not answer', async () => {
    const { lane, submit, batch, pass, pausing } = stage()
    submit('a')
    ;(await batch(0)).fail(lost)
    await pausing()
    submit('b')
    pass(500)
    assert.equal(lane.lagMs(), 0)
  })

  it('tells how long the first has waited while PostgreSQL answers something, whatever it fails with always', async () => {
    const { lane, submit, batch, pass, pausing, resume } = stage({ batchLimit: 2 })
    const [, answered] = [submit('bad', 10 * DEADLINE_MS), submit('a')]
    ;(await batch(0)).failOf(lost, 'bad')
    assert.equal(await answered, 'a done')
    await pausing()
    pass(300)
    assert.equal(lane.lagMs(), 0, 'what was sent already does not say how long others wait')
    for (const item of ['b', 'c', 'd', 'e']) submit(item, 10 * DEADLINE_MS)
    pass(500)
    assert.equal(lane.lagMs(), 500)
    assert.equal(lane.waitMs(), 250)
    resume()
    await batch(1)
    assert.equal(lane.lagMs(), 500)
  })

  it('waits twice as long after each attempt of which nothing is answered, also where some may not be sent again', async () => {
    const { submit, batch, pausing, resume, paused } = stage()
    submit('a', 100 * DEADLINE_MS)
    for (let nth = 0; nth < 6; nth += 1) {
      const once = submit(`once ${nth}`)
      const { fail } = await batch(nth)
      fail(lost)
      await assert.rejects(once)
      await pausing(nth)
      if (nth < 5) resume()
    }
    assert.deepEqual(paused, [40, 80, 160, 320, 500, 500])
    resume()
    submit('b')
    ;(await batch(6)).failOf(lost, 'a')
    await pausing(6)
    assert.deepEqual(paused.slice(6), [40], 'it answers something again')
  })

  it('tells of no wait while PostgreSQL does not answer, also where nothing may be sent again', async () => {
    const { lane, submit, batch, pass } = stage({ batchLimit: 1 })
    for (const item of ['once a', 'once b', 'once c']) submit(item, 10 * DEADLINE_MS)
    ;(await batch(0)).fail(lost)
    await batch(1)
    pass(500)
    assert.deepEqual([lane.lagMs(), lane.waitMs()], [0, 0])
    ;(await batch(1)).answer()
    await batch(2)
    submit('d')
    pass(200)
    assert.equal(lane.lagMs(), 200)
  })

  it('tells how long one more would wait, by the faster of the last two full batches', async () => {
    const { lane, submit, batch, pass } = stage({ batchLimit: 2 })
    for (const item of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) submit(item, 10 * DEADLINE_MS)
    const seen = async (nth: number) => {
      await batch(nth)
      return lane.waitMs()
    }
    assert.equal(await seen(0), 350, 'its pace is a guess yet')
    pass(60)
    ;(await batch(0)).answer()
    assert.equal(await seen(1), 150)
    pass(900)
    ;(await batch(1)).answer()
    assert.equal(await seen(2), 90)
    pass(300)
    ;(await batch(2)).answer()
    assert.equal(await seen(3), 0, 'the next batch has room')
    pass(300)
    ;(await batch(3)).answer()
    await batch(4)
    pass(1)
    ;(await batch(4)).answer()
    for (const item of ['j', 'k', 'l', 'm']) submit(item, 10 * DEADLINE_MS)
    assert.equal(lane.waitMs(), 600, 'a batch that was not full says nothing')
  })

  it('tells of nobody who waits while PostgreSQL does not answer', async () => {
    const { lane, submit, batch, pausing } = stage({ batchLimit: 1 })
    for (const item of ['a', 'b', 'c']) submit(item)
    ;(await batch(0)).fail(lost)
    await pausing()
    assert.equal(lane.waitMs(), 0)
  })

  it('sends a batch that got no answer again, ahead of what came later', async () => {
    const { submit, batch, pausing, resume, sent } = stage()
    const result = submit('a')
    const { fail } = await batch(0)
    submit('b')
    fail(lost)
    await pausing()
    resume()
    ;(await batch(1)).answer()
    assert.equal(await result, 'a done')
    assert.deepEqual(sent(), [['a'], ['a', 'b']])
  })

  it('answers those whose statement did not fail, and sends only the others again', async () => {
    const { submit, batch, pausing, resume, sent } = stage()
    const [a, once, c] = [submit('a'), submit('once'), submit('c')]
    ;(await batch(0)).failOf(lost, 'c')
    assert.deepEqual(await Promise.all([a, once]), ['a done', 'once done'])
    await pausing()
    resume()
    ;(await batch(1)).answer()
    assert.equal(await c, 'c done')
    assert.deepEqual(sent(), [['a', 'once', 'c'], ['c']])
  })

  it('does not let one item that is refused take its neighbours with it', async () => {
    const { submit, batch, sent } = stage()
    const [a, bad, c] = [submit('a'), submit('bad'), submit('c')]
    ;(await batch(0)).fail(refused)
    ;(await batch(1)).answer()
    ;(await batch(2)).fail(refused)
    ;(await batch(3)).answer()
    assert.equal(await a, 'a done')
    await assert.rejects(bad, refused)
    assert.equal(await c, 'c done')
    assert.deepEqual(sent(), [['a', 'bad', 'c'], ['a'], ['bad'], ['c']])
  })

  it('answers whom PostgreSQL answered before it sends those again that it refused together', async () => {
    const { submit, batch, sent } = stage()
    const [bad, worse, good] = [submit('bad'), submit('worse'), submit('good')]
    ;(await batch(0)).failOf(refused, 'bad', 'worse')
    assert.equal(await good, 'good done')
    ;(await batch(1)).fail(refused)
    await assert.rejects(bad, refused)
    ;(await batch(2)).answer()
    assert.equal(await worse, 'worse done')
    assert.deepEqual(sent(), [['bad', 'worse', 'good'], ['bad'], ['worse']])
  })

  it('does not send again what was refused together and is late by then', async () => {
    const { submit, batch, sent, pass } = stage()
    const [patient, late, third] = [submit('a', 10 * DEADLINE_MS), submit('b'), submit('c', 10 * DEADLINE_MS)]
    const first = await batch(0)
    pass(DEADLINE_MS)
    assert.deepEqual(await latenessOf(late), { sent: true })
    first.fail(refused)
    for (const at of [1, 2]) (await batch(at)).answer()
    assert.deepEqual(await Promise.all([patient, third]), ['a done', 'c done'])
    assert.deepEqual(sent().slice(1), [['a'], ['c']])
  })

  for (const error of [locked, lost]) {
    it(`keeps the order of an account whose batch is taken apart, where the first then meets ${error.message}`, async () => {
      const { submit, batch, sent, pausing, resume } = stage()
      const all = [submit('a@one'), submit('b@one'), submit('c@other')]
      ;(await batch(0)).fail(refused)
      ;(await batch(1)).fail(error)
      if (error === lost) {
        ;(await batch(2)).answer()
        await pausing()
        resume()
      }
      await until(() => sent().some((items) => items.length === 2), PATIENCE_MS, 'the two of the account')
      for (let at = 2; at < sent().length; at += 1) (await batch(at)).answer()
      assert.deepEqual(await Promise.all(all), ['a@one done', 'b@one done', 'c@other done'])
      assert.deepEqual(sent().slice(1).toSorted(), [['a@one'], ['a@one', 'b@one'], ['c@other']])
    })
  }

  it('keeps the order of an account whose batch is taken apart while more of it waits, where the first then meets a lock', async () => {
    const { submit, batch, sent } = stage()
    const [first, second, bad] = [submit('a@one'), submit('b@one'), submit('bad')]
    const whole = await batch(0)
    const third = submit('c@one')
    whole.fail(refused)
    ;(await batch(1)).fail(locked)
    await batch(3)
    assert.deepEqual(sent().slice(2).toSorted(), [['a@one', 'b@one', 'c@one'], ['bad']])
    for (const nth of [2, 3]) (await batch(nth)).answer()
    assert.deepEqual(await Promise.all([first, second, third, bad]), [
      'a@one done',
      'b@one done',
      'c@one done',
      'bad done',
    ])
  })

  it('sends again only those that got no answer, where a batch was taken apart', async () => {
    const { submit, batch, pausing, resume, sent } = stage()
    const [a, b] = [submit('a'), submit('b')]
    ;(await batch(0)).fail(refused)
    ;(await batch(1)).answer()
    ;(await batch(2)).fail(lost)
    await pausing()
    resume()
    ;(await batch(3)).answer()
    assert.deepEqual(await Promise.all([a, b]), ['a done', 'b done'])
    assert.deepEqual(sent()[3], ['b'])
  })

  it('is idle once everything has been answered, and not before', async () => {
    const { lane, submit, batch } = stage()
    await lane.idle()
    submit('a')
    let isIdle = false
    const idle = lane.idle().then(() => {
      isIdle = true
    })
    const { answer } = await batch(0)
    assert.equal(isIdle, false)
    assert.equal(lane.size(), 1)
    answer()
    await idle
    assert.equal(lane.size(), 0)
  })
})
