import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalogue } from '../catalogue/catalogue.ts'
import { refusalsOf } from '../contracts/refusals.ts'
import { FAULTS, Fault, type FaultCode } from '../kernel/fault.ts'
import { withFix } from './fix-page.ts'

type Who = Parameters<typeof withFix>[1]

const SITE = 'https://site.example'
const key: Who = { workspaceId: 'w', credentialId: 'k', mode: 'live', token: null }
const token: Who = {
  ...key,
  credentialId: 'g',
  token: {
    mayCall: true,
    mayReadAccount: false,
    mandate: { callLimit: null, asksHighCost: false, isPaused: false },
  } as unknown as NonNullable<Who['token']>,
}
const fixOf = (who: Who, code: FaultCode, members: Fault['members'] = {}) =>
  withFix(SITE, who, new Fault(code, { members })).members.fix_url

/** It is the limit of the operator's account with a provider: nobody who calls can mend it, and waiting does. */
const NOBODYS: readonly FaultCode[] = ['upstream_rate_limit']

describe('the page where a refusal is mended', () => {
  it('is there for every 402, 403 and 429 that a call can get', () => {
    const codes = new Set(catalogue.operations.flatMap((operation) => refusalsOf(operation).codes))
    const ofMoneyAndLimits = [...codes].filter((code) => [402, 403, 429].includes(FAULTS[code].status))
    assert.ok(ofMoneyAndLimits.length >= 15)
    for (const code of ofMoneyAndLimits)
      for (const who of [key, token]) {
        const fix = fixOf(who, code)
        if (NOBODYS.includes(code)) assert.equal(fix, undefined)
        else assert.match(String(fix), /^https:\/\/site\.example\//, code)
      }
    for (const code of ['invalid_request', 'model_not_found', 'overloaded', 'invalid_credential'] as const)
      assert.equal(fixOf(key, code), undefined)
  })

  it('is of the key or the mandate, of the workspace, or of words', () => {
    for (const [who, code, members, page] of [
      [key, 'forbidden', {}, '/console/w/live/keys/k'],
      [key, 'budget_exceeded', { budget_kind: 'key' }, '/console/w/live/keys/k'],
      [key, 'budget_exceeded', { budget_kind: 'tag' }, '/console/w/live'],
      [key, 'insufficient_balance', {}, '/console/w/live'],
      [key, 'rate_limit_exceeded', { limited_by: 'key' }, '/console/w/live/keys/k'],
      [key, 'rate_limit_exceeded', { limited_by: 'tier' }, '/docs/limits'],
      [key, 'cost_cap_exceeded', {}, '/docs/errors#cost_cap_exceeded'],
      [token, 'mandate_paused', {}, '/mandates/g'],
      [token, 'budget_exceeded', { budget_kind: 'mandate' }, '/mandates/g'],
      [token, 'budget_exceeded', { budget_kind: 'workspace' }, '/console/w/live'],
    ] as const)
      assert.equal(fixOf(who, code, members), SITE + page, code)
    const approval = { approval_url: `${SITE}/approvals/a` }
    assert.equal(fixOf(token, 'approval_required', approval), approval.approval_url)
  })

  it('is told beside the mandate, to who has one and can change it', () => {
    const mandateOf = (who: Who, members = {}) =>
      withFix(SITE, who, new Fault('budget_exceeded', { members })).members.mandate_url
    assert.equal(mandateOf(token), `${SITE}/mandates/g`)
    assert.equal(mandateOf(token, { budget_kind: 'workspace' }), undefined)
    assert.equal(mandateOf(key), undefined)
  })

  it('is absent where there is no website', () => {
    const fault = new Fault('insufficient_balance')
    assert.equal(withFix(undefined, key, fault), fault)
  })
})
