import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { freshDatabase, joinTestPostgres } from '../../harness/test-postgres.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { makeAgent } from '../mcp/agents.ts'
import { AGENTS, installAgents, work } from './agents.ts'
import { fileOf, judge, replay, sellModels } from './conversation.ts'
import { MCP_CLIENTS, openDesk, PAID_TASK } from './mcp-clients.ts'
import { startMcpHouse } from './mcp-house.ts'
import { startRecorder } from './recorder.ts'
import { type Recorded, scrub } from './scrub.ts'

/**
 * `node test/agents/record.ts`: renews the requests in `recorded/`. The agents do their tasks; what they sent is scrubbed, sent once more
 * to an installation of its own, and kept with what it cost there.
 */
const postgres = await joinTestPostgres()
const folder = path.join(import.meta.dirname, 'recorded')
try {
  const { binaries, remove } = await installAgents()
  await mkdir(folder, { recursive: true })
  await record(binaries)
  await recordTools(binaries)
  await remove()
} finally {
  await postgres.remove()
}
process.exit()

async function record(binaries: string): Promise<void> {
  const conversations = await workedConversations(binaries)
  const installation = await startInstallation((await freshDatabase()).url)
  await sellModels(installation.pool)
  for (const [file, requests] of conversations) {
    const customer = await makeCustomer(installation.pool)
    const { lines: costs } = await judge(installation, customer, await replay(installation.url, customer, requests))
    const recorded: Recorded[] = requests.map((one, at) => ({ ...one, cost_usd: costs[at]?.cost_usd ?? '' }))
    await write(file, recorded)
  }
  await installation.stop()
}

async function write(file: string, recorded: readonly object[]): Promise<void> {
  const lines = recorded.map((one) => JSON.stringify(one))
  await writeFile(path.join(folder, file), `[\n${lines.join(',\n')}\n]\n`)
}

/** What they send to the tools, with a key. */
async function recordTools(binaries: string): Promise<void> {
  const house = await startMcpHouse()
  const { secret: modelKey } = await makeCustomer(house.pool)
  for (const client of MCP_CLIENTS) {
    const { secret } = await makeAgent(house.pool)
    const proxy = await startRecorder(house.gatewayUrl)
    const desk = await openDesk(client, { binaries, url: proxy.url, secret: modelKey, proxyUrl: proxy.url })
    const from = house.wire.exchanges.length
    await desk.connect({ url: house.mcpUrl, secret })
    await desk.use('Find out how often a hashtag is used.', PAID_TASK)
    await write(`mcp-${client.agent.name}.json`, scrub(house.wire.exchanges.slice(from), secret))
    await desk.remove()
    await proxy.stop()
  }
  await house.stop()
}

async function workedConversations(
  binaries: string,
): Promise<ReadonlyMap<string, readonly Omit<Recorded, 'cost_usd'>[]>> {
  const conversations = new Map<string, readonly Omit<Recorded, 'cost_usd'>[]>()
  const installation = await startInstallation((await freshDatabase()).url)
  await sellModels(installation.pool)
  for (const agent of AGENTS)
    for (const task of agent.tasks) {
      const { secret } = await makeCustomer(installation.pool)
      const recorder = await startRecorder(installation.url)
      await work(agent, task, { binaries, url: recorder.url, secret }, recorder.url)
      await recorder.stop()
      conversations.set(fileOf(agent, task), scrub(recorder.exchanges, secret))
    }
  await installation.stop()
  return conversations
}
