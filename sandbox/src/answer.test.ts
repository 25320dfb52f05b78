import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Answer, vendorOf, withAnswers } from './answer.ts'
import type { Asked } from './upstream.ts'

const tides: Answer = {
  upstream: 'harbours',
  method: 'GET',
  path: '/v1/{harbour}/tides',
  credential: 'authorization',
  needs: ['day'],
  body: ({ day }, random) => ({ data: { day, metres: random.decimal(0, 9, 2) } }),
}
const booking: Answer = { ...tides, method: 'POST', body: ({ day }) => ({ data: { booked: day } }) }

const asked = (path: string, given: Partial<Asked> = {}) =>
  ({ method: 'GET', path, parameters: new URLSearchParams('day=monday'), seed: 1, ...given }) as Asked

describe('a vendor made of answers', () => {
  const harbours = vendorOf('harbours', [tides, booking])

  it('has the paths of its answers, with any word in the place of a name, and no others', () => {
    assert.ok(harbours.has('/v1/any-word/tides'))
    for (const path of ['/v1/tides', '/v1/a/b/tides', '/v1/a/tides/b', '/v1/{harbour}', ''])
      assert.equal(harbours.has(path), false, path)
  })

  it('answers each method by itself where two stand at one path', () => {
    assert.equal(harbours.methodOf('/v1/a/tides'), 'either')
    assert.equal(vendorOf('harbours', [tides]).methodOf('/v1/a/tides'), 'GET')
    const { data } = harbours.answer(asked('/v1/a/tides')).body
    assert.equal(Object(data).day, 'monday')
    const posted = harbours.answer(asked('/v1/a/tides', { method: 'POST', body: { day: 'friday' } }))
    assert.deepEqual([posted.status, posted.isBilled, posted.body], [200, true, { data: { booked: 'friday' } }])
  })

  it('takes its key as its answers say, and refuses what lacks a parameter, unbilled', () => {
    assert.deepEqual(harbours.credentials, [{ header: 'authorization', scheme: 'bearer' }])
    const refused = harbours.answer(asked('/v1/a/tides', { parameters: new URLSearchParams('day=') }))
    assert.deepEqual([refused.status, refused.isBilled], [400, false])
    assert.match(String(refused.body.error), /day must be given/)
  })

  it('leaves a vendor that has a file of its own as it was, and adds to it', () => {
    const both = withAnswers({ ...vendorOf('docks', [booking]), errorBody: () => ({ fault: 'ours' }) }, [
      { ...tides, path: '/v2/tides' },
    ])
    assert.deepEqual([both.has('/v1/a/tides'), both.has('/v2/tides'), both.name], [true, true, 'docks'])
    assert.equal(both.methodOf('/v1/a/tides'), 'POST')
    const refused = both.answer(asked('/v2/tides', { parameters: new URLSearchParams() }))
    assert.deepEqual(refused.body, { fault: 'ours' })
    const own = both.answer(asked('/v1/a/tides', { method: 'POST', body: { day: 'friday' } }))
    assert.deepEqual(own.body, { data: { booked: 'friday' } })
  })
})
