import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { asFault, FAULTS, Fault, type FaultCode } from './fault.ts'

describe('faults', () => {
  for (const code of Object.keys(FAULTS) as FaultCode[]) {
    it(`${code} has an error status and a text that ends as a sentence`, () => {
      const { status, text } = FAULTS[code]
      assert.ok(status >= 400 && status < 600)
      assert.ok(code === 'unsupported_uri' || /^[A-Z].*\.$/.test(text), text)
    })
  }

  it('keep the cause apart from the public text', () => {
    const fault = new Fault('internal_error', { cause: new Error('password is hunter2') })
    assert.ok(!fault.message.includes('hunter2'))
    assert.ok(fault.cause instanceof Error)
  })

  it('append the particulars to the public text', () => {
    const fault = new Fault('insufficient_balance', {
      detail: 'Needed 2 USD, left 1 USD.',
      members: { needed_usd: '2', left_usd: '1' },
    })
    assert.match(fault.message, /Add credit, or ask for less\. Needed 2 USD/)
    assert.equal(fault.status, 402)
  })

  it('stand for anything that was thrown', () => {
    const fault = new Fault('forbidden')
    assert.equal(asFault(fault), fault)
    assert.equal(asFault('a string').code, 'internal_error')
    assert.equal(asFault(undefined).status, 500)
  })
})
