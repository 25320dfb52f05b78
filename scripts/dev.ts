import { createServer } from 'node:net'
import { parseArgs } from 'node:util'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateways.ts'
import { startPostgres } from '../harness/postgres.ts'
import { startBareSandbox } from '../harness/sandbox.ts'
import { bindSandbox, makeMasterKey, seedCustomer } from '../harness/seed.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { createPools } from '../server/src/storage/pools.ts'
import { silentLog } from '../server/src/telemetry/log.ts'

/**
 * `npm run dev [-- --json]`: the whole service on this machine, on a PostgreSQL of its own that is new each time.
 * Everything stops with it, however it ends.
 */
const { values: flags } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const PORTS = { gateway: 8700, sandbox: 8701, site: 8702, agent: 8703, smtp: 8704, admin: 8709 }

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
  const smtpPort = await portNear(PORTS.smtp)
  await begin('the sandbox', async () => {
    const sandbox = await startBareSandbox({ port: sandboxPort, smtpPort })
    return { ...sandbox, name: 'the sandbox', ended: sandbox.exited }
  })
  const sandboxUrl = `http://127.0.0.1:${sandboxPort}`
  // Whoever gives one can use the command line on what is sealed with it.
  const given = process.env.FAREBOX_SECRETS_MASTER_KEY
  const masterKey = given === undefined ? makeMasterKey() : new Secret(given)
  const { apiKey, agentKey } = await seed(postgres.url(), masterKey, sandboxUrl)

  const gateway = await begin('the gateway', async () => {
    const at = async (port: number) => `127.0.0.1:${await portNear(port)}`
    const listen = { gateway: await at(PORTS.gateway), site: await at(PORTS.site), agent: await at(PORTS.agent) }
    const started = await startGateway({
      databaseUrl: postgres.url(),
      env: {
        FAREBOX_LISTEN_GATEWAY: listen.gateway,
        FAREBOX_LISTEN_SITE: listen.site,
        FAREBOX_LISTEN_AGENT: listen.agent,
        FAREBOX_LISTEN_ADMIN: await at(PORTS.admin),
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
    api_key: apiKey.reveal(),
    agent_key: agentKey.reveal(),
  }
  return { forPrograms, forPeople: welcome(forPrograms, postgres.url()) }
}

/** Something to call and something to pay with. */
async function seed(databaseUrl: string, masterKey: Secret, sandboxUrl: string) {
  const pools = createPools({ url: new Secret(databaseUrl), log: silentLog })
  try {
    await bindSandbox({ pool: pools.rest, masterKey, sandboxUrl })
    return await seedCustomer(pools.rest)
  } finally {
    await pools.close()
  }
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

type Addresses = Readonly<
  Record<'base_url' | 'site_url' | 'mcp_url' | 'admin_url' | 'sandbox_url' | 'api_key' | 'agent_key', string>
>

function welcome(
  { base_url, site_url, mcp_url, admin_url, sandbox_url, api_key, agent_key }: Addresses,
  databaseUrl: string,
): string {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  return `
Farebox is ready after ${seconds} s.

  gateway    ${base_url}
  website    ${site_url}
  agents     ${mcp_url}   (five tools over MCP; docs/agents.md)
  metrics    ${admin_url}/metrics
  sandbox    ${sandbox_url}   (simulated upstreams; docs/sandbox.md)
  mail       ${sandbox_url}/mail   (what people would be sent)
  database   ${databaseUrl}
  key        ${api_key}   (100 USD of test money)
  agent key  ${agent_key}   (the same money, 5 USD a month)

Make a metered call, and see in its headers what it cost:

  curl -i ${base_url}/v1/rerank \\
    -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' \\
    -d '{"query": "a quick animal", "documents": ["a snail", "a fox", "a stone"]}'

Let a model answer, as it comes; its last frame has the cost:

  curl -N ${base_url}/v1/chat/completions \\
    -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' \\
    -d '{"model": "sandbox/text", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "Hello"}]}'

Then look at the bill:

  curl '${base_url}/v1/usage?start_time=1' -H 'Authorization: Bearer ${api_key}'

Let an agent use it, here Claude Code:

  claude mcp add --transport http farebox ${mcp_url} --header "Authorization: Bearer ${agent_key}"

Ctrl-C stops everything and deletes this run's database.`
}
