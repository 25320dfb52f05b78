import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { LOGGED_CALLS, type LoggedCalls } from './call-lines.ts'
import { createLog } from './log.ts'

const LINE = {
  ...{ request_id: 'r', account_id: 'a', key_id: 'k', operation: 'chat_completions', model: 'vendor/small' },
  ...{ upstream: 'vendor@api.vendor.example', status: 200, duration_ms: 12.5, cost_usd: '0.001000000' },
}

async function written(calls: LoggedCalls, use: (log: ReturnType<typeof createLog>) => void, level = 'info' as const) {
  const writes: string[] = []
  use(createLog({ level, calls, secrets: [], write: (text) => writes.push(text) }))
  await turn()
  return writes
}

describe('lines of calls', () => {
  it('are one JSON object each, those of a turn of the event loop in one write', async () => {
    const writes = await written('all', ({ calls }) => {
      calls.ended(LINE)
      calls.refused({ request_id: 's', account_id: 'a', operation: 'rerank', status: 402, code: 'budget_exceeded' })
    })
    assert.equal(writes.length, 1)
    const [first, second, end] = (writes[0] ?? '').split('\n')
    const { time, ...rest } = JSON.parse(first ?? '')
    assert.ok(!Number.isNaN(Date.parse(time)))
    assert.deepEqual(rest, { level: 'info', ...LINE, msg: 'call' })
    assert.equal(JSON.parse(second ?? '').msg, 'call refused')
    assert.equal(end, '')
  })

  it('say what went wrong in the end, in a sentence without a stack or a credential', async () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.7:443 with Bearer abc.def')
    const error = new Error('outer', { cause: new Error('between', { cause }) })
    const [text = ''] = await written('failed', ({ calls }) => calls.failed({ ...LINE, status: 502 }, error))
    const line = JSON.parse(text)
    assert.equal(line.cause, 'connect ECONNREFUSED 10.0.0.7:443 with [redacted]')
    assert.doesNotMatch(text, /stack|at .*\.ts/)
  })

  it('are asked for by the calls that have them, and are none where the log has no lines of information', () => {
    const tells = (calls: LoggedCalls, level: 'info' | 'warn' = 'info') => {
      const { tellsAll, tellsFailures } = createLog({ level, calls, secrets: [], write: () => {} }).calls
      return [tellsAll, tellsFailures]
    }
    assert.deepEqual(
      LOGGED_CALLS.map((calls) => tells(calls)),
      [
        [true, true],
        [false, true],
        [false, false],
      ],
    )
    assert.deepEqual(tells('all', 'warn'), [false, false])
  })
})
