import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { isFullProof, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { type Customer, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { AGENTS, type Agent, CONTENT, installAgents, type Task, work } from './agents.ts'
import { fileOf, judge, replay, sellModels } from './conversation.ts'
import { type Exchange, startRecorder } from './recorder.ts'
import type { Recorded } from './scrub.ts'

/**
 * Real coding agents finish a task through the gateway, against the sandbox. A proof fetches them from npm and runs them; otherwise
 * the requests are sent again that they once sent (`node test/agents/record.ts` renews them). Both are judged alike.
 */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(installation.stop)
const { url, pool } = installation
await sellModels(pool)
const installed = isFullProof ? await installAgents() : undefined
if (installed) after(installed.remove)

type Done = { readonly exchanges: readonly Exchange[]; readonly shown: object; readonly costs?: readonly string[] }

for (const agent of AGENTS)
  for (const task of agent.tasks)
    describe(`${agent.name} ${agent.version} with the model ${task.model}`, () => {
      it('writes a file, and every request of it is charged as reported', async () => {
        const customer = await makeCustomer(pool)
        const { exchanges, shown, costs } = installed
          ? await worked(agent, task, customer, installed.binaries)
          : await replayed(agent, task, customer)
        const { lines, total_usd } = await judge(installation, customer, exchanges)
        assert.equal(lines.length, task.turns.length)
        if (costs)
          assert.deepEqual(
            lines.map(({ cost_usd }) => cost_usd),
            costs,
          )
        recordProof('agents', `${agent.name} ${agent.version}, ${task.model}`, {
          ...shown,
          requests: lines,
          ledger_usd: total_usd,
        })
      })
    })

async function worked(agent: Agent, task: Task, { secret }: Customer, binaries: string): Promise<Done> {
  const recorder = await startRecorder(url)
  try {
    const { said, written } = await work(agent, task, { binaries, url: recorder.url, secret }, recorder.url)
    assert.equal(written, CONTENT)
    assert.match(said, /^Done: .*Hello from a model\./s)
    assert.deepEqual(recorder.strangers, [], 'hosts that it asked beside the gateway')
    return { exchanges: recorder.exchanges, shown: { wrote: written, said } }
  } finally {
    await recorder.stop()
  }
}

async function replayed(agent: Agent, task: Task, customer: Customer): Promise<Done> {
  const recorded: readonly Recorded[] = JSON.parse(
    readFileSync(path.join(import.meta.dirname, 'recorded', fileOf(agent, task)), 'utf8'),
  )
  const exchanges = await replay(url, customer, recorded)
  return { exchanges, shown: {}, costs: recorded.map(({ cost_usd }) => cost_usd) }
}
