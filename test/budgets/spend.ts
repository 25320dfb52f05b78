import assert from 'node:assert/strict'
import { type Calls, NO_USAGE } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Customer } from '../acceptance/installation.ts'
import { holdOf, ids } from '../ledger/world.ts'

/** Charges an amount against some allowances of a customer, in a call that begins and ends. */
export async function spend(
  calls: Calls,
  { accountId, keyId }: Pick<Customer, 'accountId' | 'keyId'>,
  amount: bigint,
  allowances: readonly Id[],
): Promise<void> {
  const id = ids.next()
  const hold = holdOf(amount, allowances)
  const call = { id, accountId, credentialId: keyId, operation: 'spend', hold, tokens: 0, windows: [], claims: [] }
  const { outcome } = await calls.begin(call)
  assert.equal(outcome, 'begun')
  const usage = { ...NO_USAGE, executed: true, value: nanos(amount) }
  await calls.end({ id, accountId, amount: nanos(amount), forgiven: false, usage })
}
