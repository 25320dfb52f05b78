import { createServer } from 'node:net'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startChild } from '../harness/child.ts'
import { freePort } from '../harness/free-port.ts'
import { type Gateway, startGateway } from '../harness/gateways.ts'
import { startPostgres } from '../harness/postgres.ts'
import { ROOT } from '../harness/root.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { silentLog } from '../server/src/telemetry/log.ts'

/**
 * `npm run dev [-- --json]`: the whole service on this machine, on a PostgreSQL of its own that is new each time.
 * Everything stops with it.
 */
const { values: flags } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const PORTS = { gateway: 8700, sandbox: 8701, admin: 8709 }

const startedMs = performance.now()
const stopping: (() => Promise<unknown>)[] = []
let stopped: Promise<void> | undefined

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!flags.json) console.log('\nStopping …')
    stopped ??= stop()
  })
}

try {
  const { gateway, sandboxUrl } = await start()
  const addresses = {
    base_url: gateway.url,
    mcp_url: null,
    site_url: null,
    admin_url: gateway.adminUrl,
    sandbox_url: sandboxUrl,
    api_key: null,
  }
  if (stopped === undefined) console.log(flags.json ? JSON.stringify(addresses) : welcome(addresses))
  const { code } = await gateway.exited
  if (stopped === undefined) {
    console.error(`The gateway ended by itself with ${code}:\n${gateway.output()}`)
    process.exitCode = 1
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
stopped ??= stop()
await stopped

async function start(): Promise<{ gateway: Gateway; sandboxUrl: string }> {
  progress('PostgreSQL')
  const postgres = await startPostgres({ password: crypto.randomUUID() })
  stopping.unshift(() => postgres.remove())
  await migrate({ url: new Secret(postgres.url()), log: silentLog })

  progress('the sandbox')
  const sandboxPort = await portNear(PORTS.sandbox)
  const sandboxArgs = [path.join(ROOT, 'sandbox/src/main.ts'), '--port', String(sandboxPort)]
  const sandbox = startChild(process.execPath, sandboxArgs)
  stopping.unshift(() => sandbox.stop())

  progress('the gateway')
  const gateway = await startGateway({
    databaseUrl: postgres.url(),
    env: {
      FAREBOX_LISTEN_GATEWAY: `127.0.0.1:${await portNear(PORTS.gateway)}`,
      FAREBOX_LISTEN_ADMIN: `127.0.0.1:${await portNear(PORTS.admin)}`,
    },
  })
  stopping.unshift(() => gateway.stop())
  return { gateway, sandboxUrl: `http://127.0.0.1:${sandboxPort}` }
}

async function stop(): Promise<void> {
  for (const one of stopping.splice(0)) await one()
}

function progress(what: string): void {
  if (!flags.json) console.log(`Starting ${what} …`)
}

/** The port that people remember, or any other where somebody has it. */
async function portNear(port: number): Promise<number> {
  const probe = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  await new Promise((resolve) => probe.close(resolve))
  return isFree ? port : freePort()
}

function welcome(addresses: { base_url: string; admin_url: string; sandbox_url: string }): string {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  return `
Farebox is ready after ${seconds} s.

  gateway   ${addresses.base_url}
  metrics   ${addresses.admin_url}/metrics
  sandbox   ${addresses.sandbox_url}   (simulated upstreams; none yet)

Is it there?

  curl ${addresses.base_url}/readyz

What does a refusal look like?

  curl -i -X POST ${addresses.base_url}/v1/chat/completions -H 'Authorization: Bearer nobody'

Ctrl-C stops everything and deletes this run's database.`
}
