import type pg from 'pg'
import { freePort } from '../../harness/free-port.ts'
import { bindSandbox, makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { ids } from '../acceptance/installation.ts'
import { type Site, startSite } from '../people/site.ts'
import { signUp } from '../people/visitor.ts'
import { type Recorder, startRecorder } from './recorder.ts'

/** All of the service in one process: website, authorization server, tools for agents, calls. Its upstreams are the sandbox. */
export type McpHouse = {
  readonly site: Site
  readonly pool: pg.Pool
  /** What a person types. */
  readonly mcpUrl: string
  /** Where models are asked. */
  readonly gatewayUrl: string
  /** Everything that agents sent to mcp_url, and what they were told. */
  readonly wire: Recorder
  readonly stop: () => Promise<void>
}

export async function startMcpHouse(env: Readonly<Record<string, string>> = {}): Promise<McpHouse> {
  const listen = `127.0.0.1:${await freePort()}`
  const wire = await startRecorder(`http://${listen}`, { keepsHost: true })
  const mcpUrl = `${wire.url}/mcp`
  const masterKey = makeMasterKey()
  const database = await freshDatabase()
  const site = await startSite(database.url, {
    ...NO_DOCUMENTS,
    ...{ FAREBOX_LISTEN_AGENT: listen, FAREBOX_HTTP_MCP_URL: mcpUrl },
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    ...env,
  })
  await bindSandbox({ pool: site.pool, masterKey, sandboxUrl: site.sandbox.url })
  return {
    ...{ site, pool: site.pool, mcpUrl, gatewayUrl: site.gateway.url, wire },
    async stop() {
      await site.stop()
      await wire.stop()
    },
  }
}

/** Their makers' hosts can't be reached from everywhere: then clients register themselves. */
const NO_DOCUMENTS = { FAREBOX_OUTBOUND_ACCESS: 'none' }

export type McpPerson = { readonly email: string; readonly accountId: Id; readonly workspaceId: Id }

/** Somebody who has signed up, and has test money. */
export async function makePerson({ site, pool }: McpHouse, money = usd('10')): Promise<McpPerson> {
  const email = await signUp(site)
  const { rows } = await pool.query<{ accountId: Id; workspaceId: Id }>(
    `select test_account_id as "accountId", workspaces.id as "workspaceId" from workspaces
     join members on members.workspace_id = workspaces.id where members.email = $1`,
    [email],
  )
  const [found] = rows
  if (found === undefined) throw new Error(`${email} has no workspace`)
  const { accountId, workspaceId } = found
  // Each client that they let in takes a place of the tier.
  await pool.query("update workspaces set tier_granted = 'growth' where id = $1", [workspaceId])
  await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(money) })
  return { email, ...found }
}
