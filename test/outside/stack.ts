import { freePort } from '../../harness/free-port.ts'
import type { SandboxProcess } from '../../harness/sandbox.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { type Nanos, nanos, usd } from '../../server/src/kernel/money.ts'
import {
  askAnybody,
  type Customer,
  chargesOf,
  type Installation,
  makeCustomer,
  startInstallation,
  type Told,
} from '../acceptance/installation.ts'
import { APPROVED } from '../mcp/agents.ts'

/** An installation as it is met from outside, and somebody who calls it. */
export type Stack = Installation & {
  readonly siteUrl: string
  readonly mcpUrl: string
  /** A new account with money, whose key may do everything, agents' calls too. */
  readonly customer: (wanted?: Wanted) => Promise<Customer>
  readonly send: (secret: string, request: Request) => Promise<Told>
  /** What the ledger charged an account in all. */
  readonly chargedOf: (customer: Customer) => Promise<Nanos>
}

export type Request = {
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Wanted = Parameters<typeof makeCustomer>[1]

const local = (port: number) => `http://127.0.0.1:${port}`
const BUDGET = { budget: { amount: usd('1000'), period: 'month' } } as const

export async function startStack(): Promise<Stack> {
  const [base, site, agent] = await Promise.all([freePort(), freePort(), freePort()])
  const [url, siteUrl, mcpUrl] = [local(base), local(site), `${local(agent)}/mcp`]
  const installation = await startInstallation((await freshDatabase()).url, {
    env: {
      FAREBOX_LISTEN_GATEWAY: `127.0.0.1:${base}`,
      FAREBOX_LISTEN_SITE: `127.0.0.1:${site}`,
      FAREBOX_LISTEN_AGENT: `127.0.0.1:${agent}`,
      FAREBOX_HTTP_PUBLIC_URL: url,
      FAREBOX_HTTP_SITE_URL: siteUrl,
      FAREBOX_HTTP_MCP_URL: mcpUrl,
    },
  })
  const { pool } = installation
  return {
    gateways: installation.gateways,
    url,
    sandbox: installation.sandbox,
    pool,
    masterKey: installation.masterKey,
    stop: installation.stop,
    siteUrl,
    mcpUrl,
    customer: (wanted = {}) => makeCustomer(pool, { ...wanted, key: { ...APPROVED, ...BUDGET, ...wanted.key } }),
    send: (secret, { path, ...request }) => askAnybody(url, secret, path, request),
    async chargedOf({ accountId }) {
      const charges = await chargesOf(pool, accountId)
      return nanos([...charges.values()].reduce((sum, one) => sum + one, 0n))
    },
  }
}

/** How many requests upstreams have got from calls. Tasks of other probes are polled meanwhile. */
export async function sentTo(sandbox: SandboxProcess): Promise<number> {
  return (await sandbox.journal()).filter(({ path }) => !path.startsWith('/video/tasks/')).length
}
