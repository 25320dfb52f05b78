import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { freshDatabase, joinTestPostgres } from '../../harness/test-postgres.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { AGENTS, installAgents, work } from './agents.ts'
import { fileOf, judge, replay, sellModels } from './conversation.ts'
import { startRecorder } from './recorder.ts'
import { type Recorded, scrub } from './scrub.ts'

/**
 * `node test/agents/record.ts`: renews the requests in `recorded/`. The agents do their tasks; what they sent is scrubbed, sent once more
 * to an installation of its own, and kept with what it cost there.
 */
const postgres = await joinTestPostgres()
try {
  await record()
} finally {
  await postgres.remove()
}
process.exit()

async function record(): Promise<void> {
  const folder = path.join(import.meta.dirname, 'recorded')
  await mkdir(folder, { recursive: true })
  const conversations = await workedConversations()
  const installation = await startInstallation((await freshDatabase()).url)
  await sellModels(installation.pool)
  for (const [file, requests] of conversations) {
    const customer = await makeCustomer(installation.pool)
    const { lines: costs } = await judge(installation, customer, await replay(installation.url, customer, requests))
    const recorded: Recorded[] = requests.map((one, at) => ({ ...one, cost_usd: costs[at]?.cost_usd ?? '' }))
    const lines = recorded.map((one) => JSON.stringify(one))
    await writeFile(path.join(folder, file), `[\n${lines.join(',\n')}\n]\n`)
  }
  await installation.stop()
}

async function workedConversations(): Promise<ReadonlyMap<string, readonly Omit<Recorded, 'cost_usd'>[]>> {
  const conversations = new Map<string, readonly Omit<Recorded, 'cost_usd'>[]>()
  const { binaries, remove } = await installAgents()
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
  await remove()
  return conversations
}
