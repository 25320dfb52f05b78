import { catalogue as ours } from '../catalogue/catalogue.ts'
import type { Catalogue } from '../catalogue/operation.ts'
import { type Contract, createContract } from '../contracts/contract.ts'
import { createKeptContracts } from '../contracts/kept-contracts.ts'
import { soldContract } from '../contracts/sold-contract.ts'
import { gatewayDraft } from '../http/routes/gateway-draft.ts'
import { readSold } from '../pricing/sold.ts'
import { createSales } from '../site/sales/sales.ts'
import { createFollower } from '../storage/follower.ts'
import type { Infrastructure } from './infrastructure.ts'
import type { Start } from './options.ts'

/**
 * What callers can rely on, and what they could rely on before: the contract of what is sold, made anew within a second of each switch. Calls go on
 * where none can be made: nobody pays by it.
 */
export async function createContracts(infrastructure: Infrastructure, { catalogue = ours }: Start) {
  const { config, pools, feed, clock, log } = infrastructure
  const whole = await wholeContract(infrastructure, catalogue)
  const kept = createKeptContracts({ pool: pools.rest, keptDays: config.contract.kept_days })
  let current: Contract | null = null

  const follower = createFollower({
    ...{ name: 'contract of what is sold', feed, clock, log, topics: ['models'] },
    async read() {
      if (whole === null) return
      const made = soldContract(whole, catalogue, await readSold(pools.rest, catalogue))
      if (made.contentHash === current?.contentHash) return
      // A hash that somebody is told can be read from every process.
      await kept.keep(made)
      current = made
    },
  })
  const now = () => current
  return {
    /** Null where none could be verified. */
    current: now,
    kept,
    sales: createSales({
      ...{ pool: pools.rest, clock, log, freshMs: config.sales.fresh_seconds * 1_000, catalogue, names: config.names },
      contractHash: () => current?.contentHash ?? null,
    }),
    follower,
    /** Says that it is served still, by which it is kept for some time more. */
    keep: async () => (current === null ? undefined : kept.keep(current)),
  }
}

/** With everything that could be sold. */
async function wholeContract(
  { config: { names, http }, log }: Infrastructure,
  catalogue: Catalogue,
): Promise<Contract | null> {
  try {
    return createContract(await gatewayDraft(catalogue), { names, serverUrl: http.public_url })
  } catch (error) {
    log.error('there is no contract that could be served', { error })
    return null
  }
}

export type Contracts = Awaited<ReturnType<typeof createContracts>>
