import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTurns } from './turns.ts'

const [ANN, BEN, CAL] = ['ann', 'ben', 'cal'] as const

/** Work that ends when it is told to. */
function started() {
  const running: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => () => {
    running.push(name)
    return new Promise<void>((resolve) => ends.push(resolve))
  }
  return { running, work, endNext: () => ends.shift()?.() }
}

const tick = () => new Promise((resolve) => setImmediate(resolve))
const clock = (at = { ms: 0 }) => ({ at, monotonicMs: () => at.ms })

describe('turns of members', () => {
  it('run two of a person at once, in order, and those of all together within the bound', async () => {
    const turns = createTurns({ clock: clock(), together: 3 })
    const { running, work, endNext } = started()
    const sent = ['a1', 'a2', 'a3'].map((name) => turns.take(ANN, {}, work(name)))
    sent.push(turns.take(BEN, {}, work('b1')), turns.take(CAL, {}, work('c1')))
    await tick()
    assert.deepEqual(running, ['a1', 'a2', 'b1'])
    // What asks others keeps no connection, and does not wait for one.
    sent.push(turns.take(CAL, { isOutside: true }, work('c2')))
    await tick()
    assert.deepEqual(running, ['a1', 'a2', 'b1', 'c2'])
    for (let at = 0; at < sent.length; at += 1) {
      endNext()
      await tick()
    }
    await Promise.all(sent)
    assert.deepEqual(running, ['a1', 'a2', 'b1', 'c2', 'c1', 'a3'])
  })

  it('refuse who has too many that wait, and let them again when those have ended, however they ended', async () => {
    const turns = createTurns({ clock: clock(), together: 8, ofPerson: 1, waiting: 1 })
    const { work, endNext } = started()
    const failing = turns.take(ANN, {}, () => Promise.reject(new Error('no')))
    const second = turns.take(ANN, {}, work('second'))
    await assert.rejects(turns.take(ANN, {}, work('third')), { code: 'rate_limit_exceeded' })
    await assert.rejects(failing, /no/)
    await tick()
    endNext()
    await second
    assert.equal(await turns.take(ANN, {}, async () => 'in'), 'in')
  })

  it('let a page of a download wait where a request is refused', async () => {
    const turns = createTurns({ clock: clock(), together: 8, ofPerson: 1, waiting: 1 })
    const { running, work, endNext } = started()
    const sent = [turns.take(ANN, {}, work('first')), turns.take(ANN, {}, work('second'))]
    await assert.rejects(turns.take(ANN, {}, work('third')), { code: 'rate_limit_exceeded' })
    sent.push(turns.take(ANN, { isPage: true }, work('page')))
    for (let at = 0; at < sent.length; at += 1) {
      await tick()
      endNext()
    }
    await Promise.all(sent)
    assert.deepEqual(running, ['first', 'second', 'page'])
  })

  it('allow two downloads of a person and 16 of all, and one more when one has ended, however often that is said', () => {
    const turns = createTurns({ clock: clock(), together: 8 })
    const end = turns.startDownload(ANN)
    turns.startDownload(ANN)
    const refusal = { code: 'rate_limit_exceeded', retryAfterSeconds: 30 }
    assert.throws(() => turns.startDownload(ANN), { ...refusal, message: /2 of 2 of your downloads/ })
    end()
    end()
    turns.startDownload(ANN)
    assert.throws(() => turns.startDownload(ANN), refusal)
    for (let at = 2; at < 16; at += 1) turns.startDownload(`person ${at}`)
    assert.throws(() => turns.startDownload(BEN), { ...refusal, message: /16 of 16 downloads of all members/ })
  })

  it('count changes of a person by the minute', () => {
    const time = clock()
    const turns = createTurns({ clock: time, together: 8, writesPerMinute: 2 })
    turns.countWrite(ANN)
    turns.countWrite(ANN)
    assert.throws(() => turns.countWrite(ANN), { code: 'rate_limit_exceeded', retryAfterSeconds: 60 })
    turns.countWrite(BEN)
    time.at.ms = 60_000
    turns.countWrite(ANN)
  })
})
