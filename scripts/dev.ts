import { createServer } from 'node:net'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { startChild } from '../harness/child.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateways.ts'
import { startPostgres } from '../harness/postgres.ts'
import { ROOT } from '../harness/root.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { silentLog } from '../server/src/telemetry/log.ts'

/**
 * `npm run dev [-- --json]`: the whole service on this machine, on a PostgreSQL of its own that is new each time.
 * Everything stops with it, however it ends.
 */
const { values: flags } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const PORTS = { gateway: 8700, sandbox: 8701, admin: 8709 }

type Part = { readonly name: string; readonly ended: Promise<unknown>; readonly stop: () => Promise<unknown> }
class Told extends Error {}

const startedMs = performance.now()
const parts: Part[] = []
const told = toldToStop()
let isTold = false
told.then(() => {
  isTold = true
  say('\nStopping …')
})

try {
  const addresses = await start()
  console.log(flags.json ? JSON.stringify(addresses.forPrograms) : addresses.forPeople)
  const ended = await Promise.race([told, ...parts.map(({ name, ended }) => ended.then(() => name))])
  if (ended !== undefined) throw new Error(`${ended} ended by itself, so everything stops.`)
} catch (error) {
  // Whatever fails while we are stopping, fails because we are.
  if (!isTold) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
} finally {
  for (const part of parts.reverse()) await part.stop()
}
process.exit()

async function start() {
  const postgres = await begin('PostgreSQL', async () => {
    const server = await startPostgres({ password: crypto.randomUUID(), from: ['machine', 'npm'] })
    return { ...server, name: 'PostgreSQL', ended: server.exited(), stop: server.remove }
  })
  await migrate({ url: new Secret(postgres.url()), log: silentLog })

  const sandboxPort = await portNear(PORTS.sandbox)
  await begin('the sandbox', async () => {
    const program = path.join(ROOT, 'sandbox/src/main.ts')
    const sandbox = startChild(process.execPath, [program, '--port', String(sandboxPort)])
    return { ...sandbox, name: 'the sandbox', ended: sandbox.exited }
  })

  const gateway = await begin('the gateway', async () => {
    const started = await startGateway({
      databaseUrl: postgres.url(),
      env: {
        FAREBOX_LISTEN_GATEWAY: `127.0.0.1:${await portNear(PORTS.gateway)}`,
        FAREBOX_LISTEN_ADMIN: `127.0.0.1:${await portNear(PORTS.admin)}`,
        FAREBOX_LOG_LEVEL: 'warn',
      },
      onLine: (line) => console.error(line),
    })
    return { ...started, name: 'the gateway', ended: started.exited }
  })

  const forPrograms = {
    base_url: gateway.url,
    mcp_url: null,
    site_url: null,
    admin_url: gateway.adminUrl,
    sandbox_url: `http://127.0.0.1:${sandboxPort}`,
    api_key: null,
  }
  return { forPrograms, forPeople: welcome(forPrograms, postgres.url()) }
}

/** Starts a part unless we were told to stop meanwhile, and remembers how to stop it. */
async function begin<T extends Part>(name: string, make: () => Promise<T>): Promise<T> {
  if (isTold) throw new Told()
  say(`Starting ${name} …`)
  const part = await make()
  parts.push(part)
  if (isTold) throw new Told()
  return part
}

/** By a signal, or by the death of who started us: nobody could stop us then. */
function toldToStop(): Promise<undefined> {
  const parent = process.ppid
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(undefined))
    const look = setInterval(() => process.ppid !== parent && resolve(undefined), 500)
    look.unref()
  })
}

function say(line: string): void {
  if (!flags.json) console.log(line)
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

function welcome(addresses: { base_url: string; admin_url: string; sandbox_url: string }, databaseUrl: string): string {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  return `
Farebox is ready after ${seconds} s.

  gateway    ${addresses.base_url}
  metrics    ${addresses.admin_url}/metrics
  sandbox    ${addresses.sandbox_url}   (simulated upstreams; none yet)
  database   ${databaseUrl}

Is it there?

  curl ${addresses.base_url}/readyz

What does a refusal look like?

  curl -i -X POST ${addresses.base_url}/v1/chat/completions -H 'Authorization: Bearer nobody'

Ctrl-C stops everything and deletes this run's database.`
}
