import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rerank } from '../catalogue/operations/rerank.ts'
import { Fault } from '../kernel/fault.ts'
import { nanos, ZERO } from '../kernel/money.ts'
import { createFirstCall, IDEMPOTENCY, idempotencyClaim, isKey } from './idempotency.ts'

describe('an idempotency key', () => {
  for (const [what, text, is] of [
    ['one character', 'a', true],
    ['255 characters', 'k'.repeat(255), true],
    ['the first and the last visible one', '!~', true],
    ['none', '', false],
    ['256 characters', 'k'.repeat(256), false],
    ['a space', 'a b', false],
    ['a line of its own after it', 'a\n', false],
    ['something before what is visible', '\u0000a', false],
    ['what is no ASCII', 'schlüssel', false],
    ['nothing sent', undefined, false],
  ] as const)
    it(`has 1 to 255 visible characters of ASCII: ${what}`, () => assert.equal(isKey(text), is))
})

describe('the claim of a key', () => {
  it('lets one call have it, known by its request, for a day after the call, whoever ran it', () => {
    assert.deepEqual(idempotencyClaim('mine', rerank, 'digest'), [
      {
        scope: IDEMPOTENCY,
        key: 'rerank mine',
        limit: 1,
        fingerprint: 'digest',
        keepSeconds: 86_400,
        endsWithOwner: false,
      },
    ])
    assert.equal(IDEMPOTENCY, 'idempotency')
  })

  it('is none without a key', () => assert.deepEqual(idempotencyClaim(undefined, rerank, 'digest'), []))

  it('is refused for what is no key, and says what one is', () => {
    assert.throws(
      () => idempotencyClaim('', rerank, 'digest'),
      (fault) => fault instanceof Fault && fault.code === 'invalid_request' && fault.message.includes('1 to 255'),
    )
  })
})

type Parts = Parameters<typeof createFirstCall>[0]
type Open = Awaited<ReturnType<Parts['findOpen']>>
type Ended = Awaited<ReturnType<Parts['findEnded']>>

const DETAIL = {
  model: null,
  status: 200,
  price_version: null,
  formula: null,
  evidence: {},
  upstream: [],
  hold: [],
  balance_after: null,
  timeline: {},
  first_byte_ms: null,
  routing: null,
}
const charged = { amount: nanos(1_500n), given_back: ZERO, detail: DETAIL }
const unwritten = { ...charged, detail: null }

type Found = { readonly open?: Open; readonly ended?: readonly Ended[]; readonly isTask?: boolean }

/** What is told of a call that is open or has ended, as each look at it finds it; the last one is found from then on. */
async function faultOf({ open, ended = [], isTask = false }: Found) {
  const waits: number[] = []
  const asked: unknown[] = []
  const firstCall = createFirstCall({
    async findOpen(...who) {
      asked.push(who)
      return open
    },
    async findEnded(...who) {
      asked.push(who)
      return ended[Math.min(waits.length, ended.length - 1)]
    },
    clock: { sleep: async (durationMs) => void waits.push(durationMs) },
  })
  const fault = await firstCall('credential', { id: 'first', isTask })
  for (const who of asked) assert.deepEqual(who, ['credential', 'first'])
  return { fault, waits }
}

async function told(found: Found) {
  const { fault, waits } = await faultOf(found)
  const { code, members, retryAfterSeconds } = fault
  return { code, members, retryAfterSeconds, waits }
}

const MEMBERS = { first_request_id: 'first' }

describe('what is told of the call that has the key already', () => {
  it('is how it went and what it cost, if it was charged', async () => {
    assert.deepEqual(await told({ ended: [charged] }), {
      code: 'idempotency_completed',
      members: { ...MEMBERS, status: 200, cost_usd: '0.000001500' },
      retryAfterSeconds: undefined,
      waits: [],
    })
  })

  it('is what is left of its cost where some was given back: it has completed even if that is nothing', async () => {
    for (const [givenBack, cost] of [
      [500n, '0.000001000'],
      [1_500n, '0.000000000'],
    ] as const) {
      const { code, members } = await told({ ended: [{ ...charged, given_back: nanos(givenBack) }] })
      assert.deepEqual([code, members.cost_usd], ['idempotency_completed', cost])
    }
  })

  it('is that it runs, to be asked again in a second, as long as it is neither lost nor charged', async () => {
    const running = { code: 'idempotency_running', members: MEMBERS, retryAfterSeconds: 1, waits: [] }
    assert.deepEqual(await told({}), running)
    assert.deepEqual(await told({ open: { unsettled_at: null } }), running)
    // It has just ended uncharged, which frees its key.
    assert.deepEqual(await told({ ended: [{ ...unwritten, amount: ZERO }] }), running)
  })

  it('is the task as well, where it created one, to be polled in five seconds', async () => {
    const members = { ...MEMBERS, task_id: 'first' }
    const running = { code: 'idempotency_running', members, retryAfterSeconds: 5, waits: [] }
    assert.deepEqual(await told({ isTask: true }), running)
    assert.match((await faultOf({ isTask: true })).fault.message, /Poll the task first\./)
    assert.doesNotMatch((await faultOf({})).fault.message, /Poll/)
    assert.deepEqual((await told({ isTask: true, open: { unsettled_at: new Date() } })).members, members)
    assert.equal((await told({ isTask: true, ended: [charged] })).members.task_id, 'first')
  })

  it('is that nobody knows, where it was interrupted', async () => {
    const { code, members, retryAfterSeconds } = await told({ open: { unsettled_at: new Date() } })
    assert.deepEqual([code, members, retryAfterSeconds], ['outcome_unknown', MEMBERS, undefined])
  })

  it('waits a moment, twice at the most, for how it went to be written after its charge', async () => {
    const look = async (...ended: Ended[]) => {
      const { code, members, waits } = await told({ ended })
      assert.equal(code, 'idempotency_completed')
      return [members.status, waits]
    }
    assert.deepEqual(await look(unwritten, charged), [200, [150]])
    assert.deepEqual(await look(unwritten, unwritten, charged), [200, [150, 350]])
    assert.deepEqual(await look(unwritten, unwritten, unwritten, charged), [null, [150, 350]])
  })

  it('has no status where what was kept of it has none', async () => {
    const { members } = await told({ ended: [{ ...charged, detail: { ...DETAIL, status: null } }] })
    assert.equal(members.status, null)
  })

  it('is that PostgreSQL can not be asked, where that is so', async () => {
    const cause = new Error('no connection')
    const firstCall = createFirstCall({
      findOpen: () => Promise.reject(cause),
      findEnded: async () => undefined,
      clock: { sleep: async () => undefined },
    })
    await assert.rejects(firstCall('credential', { id: 'first', isTask: false }), {
      code: 'billing_dependency_timeout',
      cause,
    })
  })
})
