import { catalogue as ours } from '../catalogue/catalogue.ts'
import { createContract } from '../contracts/contract.ts'
import { createKeptContracts } from '../contracts/kept-contracts.ts'
import { gatewayDraft } from '../http/routes/gateway-draft.ts'
import { createSales } from '../site/sales/sales.ts'
import type { Infrastructure } from './infrastructure.ts'
import type { Start } from './options.ts'

/** What callers can rely on, and what they could rely on before. Calls go on where none can be made: nobody pays by it. */
export async function createContracts({ config, pools, clock, log }: Infrastructure, { catalogue = ours }: Start) {
  const freshMs = config.sales.fresh_seconds * 1_000
  const salesOf = (contractHash: string | null) =>
    createSales({ pool: pools.rest, clock, log, freshMs, catalogue, names: config.names, contractHash })
  const kept = createKeptContracts({ pool: pools.rest, keptDays: config.contract.kept_days })
  const { names, http } = config
  try {
    const current = createContract(await gatewayDraft(catalogue), { names, serverUrl: http.public_url })
    return { current, kept, sales: salesOf(current.contentHash), keep: () => kept.keep(current) }
  } catch (error) {
    log.error('there is no contract that could be served', { error })
    return { current: null, kept, sales: salesOf(null), keep: async () => {} }
  }
}

export type Contracts = Awaited<ReturnType<typeof createContracts>>
