import { buildIslands } from '../harness/build-islands.ts'
import { type Kept, keptForDevelopment, portNear, restoreKeys } from '../harness/development.ts'
import { welcome } from '../harness/development-welcome.ts'
import { startGateway } from '../harness/gateways.ts'
import { startPostgres } from '../harness/postgres.ts'
import { startBareSandbox } from '../harness/sandbox.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { bindSandbox, seedWorkspace } from '../harness/seed.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { createPools } from '../server/src/storage/pools.ts'
import { silentLog } from '../server/src/telemetry/log.ts'

/**
 * `npm run dev [-- --json]`: the whole service on this machine, on a PostgreSQL of its own that is new each time.
 * Everything stops with it, however it ends.
 */
const { values: flags } = scriptArguments(
  'Usage: npm run [--silent] dev [-- --json]: PostgreSQL, sandbox and gateway on this machine, until Ctrl-C; --json prints the addresses for a program, in one line, alone on stdout with --silent (else npm prints the name of the script first).',
  { json: { type: 'boolean', default: false } },
)
const PORTS = { gateway: 8700, sandbox: 8701, site: 8702, agent: 8703, smtp: 8704, postgres: 8705, admin: 8709 }

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
  await buildIslands()
  const kept = keptForDevelopment()
  // Whoever gives one of their own can use it on the command line.
  const given = process.env.FAREBOX_SECRETS_MASTER_KEY
  const masterKey = given === undefined ? kept.masterKey : new Secret(given)
  const postgres = await begin('PostgreSQL', async () => {
    const port = await near('postgres', 'PostgreSQL')
    const server = await startPostgres({ password: kept.databasePassword.reveal(), port, from: ['machine', 'npm'] })
    return { ...server, name: 'PostgreSQL', ended: server.exited(), stop: server.remove }
  })
  await migrate({ url: new Secret(postgres.url()), log: silentLog })

  const sandboxPort = await near('sandbox', 'the sandbox')
  const smtpPort = await near('smtp', 'the mailbox')
  await begin('the sandbox', async () => {
    const sandbox = await startBareSandbox({ port: sandboxPort, smtpPort })
    return { ...sandbox, name: 'the sandbox', ended: sandbox.exited }
  })
  const sandboxUrl = `http://127.0.0.1:${sandboxPort}`
  await seed(postgres.url(), { ...kept, masterKey }, sandboxUrl)

  const gateway = await begin('the gateway', async () => {
    const at = async (name: keyof typeof PORTS, what: string) => `127.0.0.1:${await near(name, what)}`
    const listen = {
      gateway: await at('gateway', 'the gateway'),
      site: await at('site', 'the website'),
      agent: await at('agent', 'the server for agents'),
    }
    const started = await startGateway({
      databaseUrl: postgres.url(),
      env: {
        FAREBOX_LISTEN_GATEWAY: listen.gateway,
        FAREBOX_LISTEN_SITE: listen.site,
        FAREBOX_LISTEN_AGENT: listen.agent,
        FAREBOX_LISTEN_ADMIN: await at('admin', "the operators' listener"),
        FAREBOX_HTTP_PUBLIC_URL: `http://${listen.gateway}`,
        FAREBOX_HTTP_SITE_URL: `http://${listen.site}`,
        FAREBOX_HTTP_MCP_URL: `http://${listen.agent}/mcp`,
        FAREBOX_MAIL_URL: `smtp://127.0.0.1:${smtpPort}`,
        FAREBOX_MAIL_FROM: 'Farebox <no-reply@farebox.example>',
        FAREBOX_PEOPLE_ISSUER_URL: `${sandboxUrl}/openid`,
        FAREBOX_PEOPLE_ISSUER_CLIENT_ID: 'sandbox-client',
        FAREBOX_PEOPLE_ISSUER_CLIENT_SECRET: 'sandbox-client-secret',
        FAREBOX_PEOPLE_ISSUER_NAME: 'the sandbox',
        FAREBOX_LOG_LEVEL: 'warn',
        FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      },
      onLine: (line) => console.error(line),
    })
    return { ...started, name: 'the gateway', ended: started.exited }
  })

  const forPrograms = {
    base_url: gateway.url,
    mcp_url: `${gateway.agentUrl}/mcp`,
    site_url: gateway.siteUrl,
    admin_url: gateway.adminUrl,
    sandbox_url: sandboxUrl,
    api_key: kept.key.secret.reveal(),
    agent_key: kept.agentKey.secret.reveal(),
    database_url: postgres.url(),
    master_key: masterKey.reveal(),
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  return { forPrograms, forPeople: welcome(forPrograms, seconds) }
}

/** Something to call and something to pay with. */
async function seed(databaseUrl: string, kept: Kept, sandboxUrl: string): Promise<void> {
  const pools = createPools({ url: new Secret(databaseUrl), log: silentLog })
  try {
    await bindSandbox({ pool: pools.rest, masterKey: kept.masterKey, sandboxUrl })
    await restoreKeys(pools.rest, await seedWorkspace(pools.rest), kept)
  } finally {
    await pools.close()
  }
}

/** Told to people and programs alike: an address that they remember is not there. */
function near(name: keyof typeof PORTS, what: string): Promise<number> {
  return portNear(PORTS[name], what, (line) => console.error(line))
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
