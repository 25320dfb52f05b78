import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AccountInactive } from '../gateway/begin.ts'
import { Fault } from '../kernel/fault.ts'
import { ZERO } from '../kernel/money.ts'
import { OpenTransaction } from '../storage/transaction.ts'
import { createAdmitToTasks } from './admit-to-tasks.ts'

const CALLER = { workspaceId: 'w', accountId: 'a', credentialId: 'c', limits: { requestsPerMinute: 600 } }

type Said = {
  readonly refusal: Fault | null
  readonly isClosing: boolean
  readonly isCredentialActive?: boolean
  readonly caller?: typeof CALLER
}

/** Of an account about which BEGIN and PostgreSQL say this. */
function createAdmission({ refusal, isClosing, isCredentialActive = true, caller = CALLER }: Said) {
  const time = { now: 0, nowMs: () => time.now }
  const asked: (readonly unknown[])[] = []
  const pool = new OpenTransaction(async (_, values = []) => {
    asked.push(values)
    const rows = isClosing ? [{ isCredentialActive }] : []
    return { rows, rowCount: rows.length, command: 'SELECT', oid: 0, fields: [] }
  })
  const begin = async () => {
    if (refusal !== null) throw refusal
    return { rates: { requests: null, tokens: null }, free: ZERO, judgedAt: '' }
  }
  const admitted = createAdmitToTasks({ begin, pool, time })
  return { time, asked, admit: () => admitted(Object({ id: 'r', caller })) }
}

describe('who looks after tasks', () => {
  it('is admitted as everybody is, and not looked up', async () => {
    const { admit, asked } = createAdmission({ refusal: null, isClosing: false })
    assert.deepEqual([await admit(), asked], [{}, []])
  })

  it('is refused for what refuses everybody, and where no closure is why the account is inactive', async () => {
    const spent = createAdmission({ refusal: new Fault('rate_limit_exceeded'), isClosing: true })
    await assert.rejects(spent.admit(), { code: 'rate_limit_exceeded' })
    assert.deepEqual(spent.asked, [])
    const abuser = createAdmission({ refusal: new AccountInactive({}), isClosing: false })
    await assert.rejects(abuser.admit(), { code: 'forbidden' })
    assert.deepEqual(abuser.asked, [['w', 'a', 'c']])
  })

  it('is admitted while the workspace is being closed, 120 times a minute', async () => {
    const { admit, asked, time } = createAdmission({ refusal: new AccountInactive({}), isClosing: true })
    for (let polled = 0; polled < 120; polled += 1) assert.deepEqual(await admit(), {})
    time.now = 20_500
    await assert.rejects(admit(), { code: 'rate_limit_exceeded', retryAfterSeconds: 40 })
    assert.equal(asked.length, 120)
    time.now = 60_000
    assert.deepEqual(await admit(), {})
  })

  it('has the lower limit of its key then, too', async () => {
    const caller = { ...CALLER, limits: { requestsPerMinute: 2 } }
    const { admit } = createAdmission({ refusal: new AccountInactive({}), isClosing: true, caller })
    for (let polled = 0; polled < 2; polled += 1) assert.deepEqual(await admit(), {})
    await assert.rejects(admit(), { code: 'rate_limit_exceeded', message: /Rate limit: 2 requests per minute/ })
  })

  it('is refused with a credential that is inactive, while the workspace is being closed', async () => {
    const { admit } = createAdmission({ refusal: new AccountInactive({}), isClosing: true, isCredentialActive: false })
    await assert.rejects(admit(), { code: 'invalid_credential' })
  })
})
