import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ReachedCeiling } from '../calls/loss-sums.ts'
import { Fault } from '../kernel/fault.ts'
import { usd } from '../kernel/money.ts'
import { createLossGuard, lossRoute } from './loss-guard.ts'

const WANTED = { accountId: 'one', sold: 'gpt' }
const target = (slot: string) => ({ binding: { slot, mode: 'live' as const } })
const [first, second] = [target('first'), target('second')]

const reached = (slot: string, accountId: string | null): ReachedCeiling => ({
  ...{ route: `gpt@${slot}:live`, accountId, window: 'hour' },
  ...{ lost: usd('6'), ceiling: usd('5') },
})

function guardOf(...ceilings: readonly ReachedCeiling[]) {
  return createLossGuard({
    isQuiet: () => ceilings.length === 0,
    find: (accountId, route) =>
      ceilings.find((one) => one.route === route && (one.accountId ?? accountId) === accountId),
  })
}

function refusal(work: () => unknown): Fault {
  try {
    work()
  } catch (fault) {
    assert.ok(fault instanceof Fault)
    return fault
  }
  return assert.fail('nothing was refused')
}

describe('upstreams of a call', () => {
  it('are all asked while no ceiling is reached', () => {
    const targets = [first, second]
    assert.equal(guardOf()(targets, WANTED), targets)
  })

  it('are asked but for those whose ceiling is reached, for the account or for all', () => {
    assert.deepEqual(guardOf(reached('first', 'one'))([first, second], WANTED), [second])
    assert.deepEqual(guardOf(reached('first', null))([first, second], WANTED), [second])
    assert.deepEqual(guardOf(reached('first', 'other'))([first, second], WANTED), [first, second])
    assert.deepEqual(guardOf(reached('first', 'one'))([first, second], { ...WANTED, sold: 'other' }), [first, second])
  })

  it('are refused with a code of their own where the account has none left, and what to do', () => {
    const fault = refusal(() => guardOf(reached('first', null), reached('second', 'one'))([first, second], WANTED))
    assert.deepEqual([fault.code, fault.status, fault.retryable], ['loss_ceiling_account', 403, false])
    assert.match(fault.message, /The limit for gpt is 5 USD within 60 minutes\.$/)
  })

  it('are refused for a while where all are out for everybody', () => {
    const fault = refusal(() => guardOf(reached('first', null))([first], WANTED))
    assert.deepEqual([fault.code, fault.status, fault.retryAfterSeconds], ['loss_ceiling_route', 503, 60])
  })

  it('are none where none is configured, which is not told as a loss', () => {
    assert.deepEqual(guardOf(reached('first', null))([], WANTED), [])
  })
})

describe('the name of a route', () => {
  it('tells a test mode from a live one, which nobody can spend in the other', () => {
    assert.equal(lossRoute('gpt', { slot: 'openai', mode: 'live' }), 'gpt@openai:live')
    assert.equal(lossRoute('gpt', { slot: 'openai', mode: 'test' }), 'gpt@openai:test')
  })
})
