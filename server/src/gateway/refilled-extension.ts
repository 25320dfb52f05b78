import type { Calls } from '../calls/calls.ts'
import { nanos } from '../kernel/money.ts'
import type { TestCredit } from '../ledger/test-credit.ts'

type Parts = Pick<Calls, 'extend'> & { readonly testCredit: Pick<TestCredit, 'isKnownGiven' | 'refill'> }

/** Holds more for a stream. One that is short of test money is given the day's, as a call that begins is. */
export function createExtend({ extend, testCredit }: Parts): Calls['extend'] {
  return async (extension) => {
    const mayRefill = !testCredit.isKnownGiven(extension.accountId)
    const growth = await extend(extension)
    if (!mayRefill || growth.outcome !== 'money_spent') return growth
    const short = nanos(extension.amount - growth.held - growth.left)
    // What can't be given now leaves the stream as short as it is: it asks again for a while.
    const isRefilled = await testCredit.refill(extension.accountId, short).catch(() => false)
    return isRefilled ? extend(extension) : growth
  }
}
