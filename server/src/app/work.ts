import { createOutbound } from '../outbound/outbound.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import type { Ground } from './ground.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'
import {
  createContractChore,
  createLossChore,
  createRefusalChore,
  createSalesChore,
  createUsageChore,
} from './process-chores.ts'

/** What is done again and again beside the calls, by the roles of this process. */
export async function createWork(
  ground: Ground,
  money: Money,
  gateway: Gateway & { readonly contracts: Contracts },
  options: Start,
) {
  const { config, log, clock, metrics, pools } = ground
  const { refusals, losses, contracts } = gateway
  const { roles, sales } = config
  const { access, allowed_origins: allowedOrigins, refused_networks: refusedNetworks } = config.outbound
  const outbound = createOutbound({ access, allowedOrigins, refusedNetworks, clock, log, metrics })
  const worker = roles.includes('worker')
    ? (await import('./worker.ts')).createWorker(ground, money, { ...gateway, outbound }, options)
    : null
  const makesCalls = roles.includes('gateway') || roles.includes('agent')
  const chores = [
    ...(worker?.chores ?? []),
    ...(makesCalls
      ? [
          createLossChore({ look: losses.look, clock, log }),
          createRefusalChore({ write: refusals.write, clock, log }),
          createUsageChore({ pools, clock, log }),
        ]
      : []),
    createContractChore({ keep: contracts.keep, clock, log }),
    ...(roles.includes('site')
      ? [createSalesChore({ sales: contracts.sales, freshMs: sales.fresh_seconds * 1_000, clock, log })]
      : []),
  ]
  return { worker, outbound, chores, makesCalls }
}
