import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { LoggedCalls } from '../../server/src/telemetry/call-lines.ts'
import { ask, call, makeCustomer, startInstallation, type Told } from './installation.ts'

type Line = Readonly<Record<string, unknown>>

async function startLogging(calls: LoggedCalls) {
  const database = await freshDatabase()
  const lines: Line[] = []
  const installation = await startInstallation(database.url, {
    env: { FAREBOX_LOG_LEVEL: 'info', FAREBOX_LOG_CALLS: calls },
    onLine: (line) => line.startsWith('{') && lines.push(JSON.parse(line)),
  })
  const of = (told: Told) =>
    lines.filter(({ request_id: id, msg }) => id === told.id && /^(call|request failed)/.test(String(msg)))
  const one = async (told: Told) => {
    await until(() => of(told).length > 0, PATIENCE_MS, `a line of ${told.id}`)
    const [line = {}, ...others] = of(told)
    assert.deepEqual(others, [])
    return line
  }
  return { ...installation, lines, of, one, customer: await makeCustomer(installation.pool) }
}

const all = await startLogging('all')
after(all.stop)
const failed = await startLogging('failed')
after(failed.stop)
const none = await startLogging('none')
after(none.stop)

const word = 'a very private word'
const chat = { body: { model: 'sandbox/text', max_tokens: 20, messages: [{ role: 'user', content: word }] } }

describe('the log of calls', () => {
  it('has a line for each with who called, what, whom, how long and what it cost, and nothing of what was said', async () => {
    const { url, customer, one, lines } = all
    const told = await ask(url, customer.secret, '/v1/chat/completions', chat)
    assert.equal(told.status, 200, told.text)
    const { time, duration_ms: ms, upstream, ...line } = await one(told)
    assert.ok(typeof ms === 'number' && ms > 0 && !Number.isNaN(Date.parse(String(time))))
    assert.match(String(upstream), /^[\w-]+@127\.0\.0\.1:\d+#test$/)
    assert.deepEqual(line, {
      ...{ level: 'info', msg: 'call', request_id: told.id, account_id: customer.accountId, key_id: customer.keyId },
      ...{ operation: 'chat_completions', model: 'sandbox/text', status: 200, cost_usd: told.costUsd },
    })
    const refused = await call(url, customer.secret, 'rerank', '', { headers: { 'x-farebox-max-cost-usd': '0' } })
    const { msg, code, status } = await one(refused)
    assert.deepEqual([msg, code, status], ['call refused', 'cost_cap_exceeded', 402])
    for (const text of lines.map((each) => JSON.stringify(each)))
      assert.ok(!text.includes(word) && !text.includes(customer.secret), text)
  })

  it('has those that failed alone by default, once each and without a stack', async () => {
    const { url, customer, sandbox, one, of } = failed
    const fine = await call(url, customer.secret, 'tag_detail')
    await sandbox.fault('reseller', ['close-early'])
    const broken = await call(url, customer.secret, 'tag_detail')
    assert.ok(broken.status >= 500, `${broken.status} ${broken.text}`)
    const { msg, status, cost_usd: cost, upstream, stack, error } = await one(broken)
    assert.deepEqual(
      [msg, status, cost, stack, error],
      ['call failed', broken.status, '0.000000000', undefined, undefined],
    )
    assert.match(String(upstream), /^reseller@/)
    const refused = await call(url, customer.secret, 'rerank', '', { headers: { 'x-farebox-max-cost-usd': '0' } })
    assert.deepEqual([...of(fine), ...of(refused)], [])
  })

  it('has none where none are wanted', async () => {
    const { url, customer, sandbox, lines } = none
    await call(url, customer.secret, 'tag_detail')
    await sandbox.fault('reseller', ['status=500'])
    await call(url, customer.secret, 'tag_detail')
    assert.deepEqual(
      lines.filter(({ msg }) => String(msg).startsWith('call')),
      [],
    )
  })
})
