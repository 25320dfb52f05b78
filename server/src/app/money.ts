import { createCalls } from '../calls/calls.ts'
import { createFastPath } from '../calls/fast-path.ts'
import { createMoneyQuery } from '../calls/money-query.ts'
import { createOwnership } from '../calls/ownership.ts'
import { createBegin, createRequireUnspent } from '../gateway/begin.ts'
import { createIds } from '../kernel/ids.ts'
import { createPartitions } from '../ledger/partitions.ts'
import { createTestCredit } from '../ledger/test-credit.ts'
import { createSpentWindows } from '../limits/spent-windows.ts'
import type { Infrastructure } from './infrastructure.ts'

/** BEGIN and END, and whose calls are open between them. */
export function createMoney({ config, pools, feed, clock, time, log }: Infrastructure) {
  const ownerId = createIds({ clock }).next()
  const calls = createCalls({
    query: createMoneyQuery(pools.money),
    ownerId,
    clock,
    log,
    path: createFastPath({ clock, log }),
  })
  const spent = createSpentWindows({ time })
  const testCredit = createTestCredit({ pool: pools.rest, amount: config.people.test_credit, time })
  feed.subscribe('key', { changed: spent.forget, reset: spent.forgetAll })
  return {
    ownerId,
    calls,
    ownership: createOwnership({ query: createMoneyQuery(pools.lease), ownerId, calls, clock, time, log }),
    partitions: createPartitions({ pool: pools.rest, log }),
    begin: createBegin({ calls, spent, time, testCredit }),
    testCredit,
    requireUnspent: createRequireUnspent({ spent, time }),
  }
}

export type Money = ReturnType<typeof createMoney>
