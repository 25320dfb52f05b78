import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import { createIds } from '../../kernel/ids.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../../protocols/route-profile.ts'
import { takersOf } from '../routing.ts'

const ids = createIds({ clock: systemClock })

function target(slot: string, unknown: RouteProfile['unknown']) {
  const profile = { ...PLAIN_PROFILE, unknown }
  const route = {
    id: ids.next(),
    slot,
    protocol: 'openai' as const,
    upstreamModel: 'm',
    priority: 0,
    weight: 1,
    profile,
  }
  const binding = {
    ...{
      id: ids.next(),
      slot,
      name: slot,
      mode: 'test' as const,
      baseUrl: 'https://a',
      kind: 'native' as const,
      credential: null,
    },
    ...{ segments: {}, weight: 1, requestsPerMinute: null, enabled: true, client: null },
  }
  return { route, binding }
}

const strict = target('strict', 'refuse')
const lenient = target('lenient', 'pass')

describe('who may get a request', () => {
  it('is everybody, where all of it is known', () => {
    assert.deepEqual(takersOf([strict, lenient], [], 'live'), [strict, lenient])
  })

  it('is those alone whose route passes on what is not known', () => {
    assert.deepEqual(takersOf([strict, lenient], ['extra'], 'live'), [lenient])
  })

  it('is nobody where no route does, which names what is not known', () => {
    assert.throws(
      () => takersOf([strict], ['extra', 'messages[0].more'], 'live'),
      (error) =>
        error instanceof Fault &&
        error.status === 400 &&
        /Unknown parameter "extra" \(also "messages\[0\]\.more"\)\. Remove it/.test(error.message),
    )
  })

  it('is nobody where nobody is there, whatever is asked', () => {
    for (const unknown of [[], ['extra']])
      assert.throws(
        () => takersOf([], unknown, 'live'),
        (error) => error instanceof Fault && error.code === 'not_configured',
      )
  })
})
