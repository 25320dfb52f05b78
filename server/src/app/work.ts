import {
  createContractJob,
  createLossJob,
  createRefusalJob,
  createSalesJob,
  createUsageJob,
} from '../jobs/process-jobs.ts'
import { createOutbound } from '../outbound/outbound.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import type { Infrastructure } from './infrastructure.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'

/** What is done again and again beside the calls, by the roles of this process. */
export async function createWork(
  infrastructure: Infrastructure,
  money: Money,
  gateway: Gateway & { readonly contracts: Contracts },
  options: Start,
) {
  const { config, log, clock, metrics, pools } = infrastructure
  const { refusals, losses, contracts } = gateway
  const { roles, sales } = config
  const { access, allowed_origins: allowedOrigins, refused_networks: refusedNetworks } = config.outbound
  const outbound = createOutbound({ access, allowedOrigins, refusedNetworks, clock, log, metrics })
  const worker = roles.includes('worker')
    ? (await import('./worker.ts')).createWorker(infrastructure, money, { ...gateway, outbound }, options)
    : null
  const makesCalls = roles.includes('gateway') || roles.includes('agent')
  const jobs = [
    ...(worker?.jobs ?? []),
    ...(makesCalls
      ? [
          createLossJob({ look: losses.look, clock, log }),
          createRefusalJob({ write: refusals.write, clock, log }),
          createUsageJob({ pools, clock, log }),
        ]
      : []),
    createContractJob({ keep: contracts.keep, clock, log }),
    ...(roles.includes('site')
      ? [createSalesJob({ sales: contracts.sales, freshMs: sales.fresh_seconds * 1_000, clock, log })]
      : []),
  ]
  return { worker, outbound, jobs, makesCalls }
}
