import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { attachTask, countOpen, listLost, pollLags } from '../tasks/operate.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addTaskCommands(program: Command): void {
  const tasks = program.command('tasks').description('manage tasks: calls that take minutes')
  reading(tasks, 'status')
    .description('say how many are open, how late their upstreams are asked, and which ones nobody knows of')
    .action(() => running(status))
  writing(tasks, 'attach <id>')
    .description(
      'say who has an open task and under which name, where we lost it or have it wrong: it goes on, and is never made again',
    )
    .requiredOption('--upstream <id>', 'who has it: see farebox upstreams list')
    .requiredOption('--name <task_id>', 'its name there')
    .action((id: string, options: { upstream: string; name: string }) =>
      running((config) => attach(config, id, options)),
    )
}

async function status(config: Config): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const [open, lags, lost] = await Promise.all([countOpen(pool), pollLags(pool), listLost(pool)])
    const counts = Object.entries(open).map(([state, count]) => `${count} ${state}`)
    print(counts.length === 0 ? 'No task is open.' : `Open: ${counts.join(', ')}.`)
    for (const { slot, seconds } of lags) print(`${slot} is asked ${seconds.toFixed(1)} seconds late.`)
    if (lost.length > 0) print('Of these nobody knows whether an upstream has them:')
    for (const { id, model, created_at } of lost)
      print(`${id}  ${model}  ${created_at.toISOString()}  farebox tasks attach, or farebox ledger resolve`)
  })
}

async function attach(config: Config, text: string, options: { upstream: string; name: string }): Promise<void> {
  const [id, upstreamId] = [idOf(text), idOf(options.upstream)]
  await withPools(config, async ({ rest: pool }) => {
    await attachTask(pool, { id, upstreamId, name: options.name }, operator())
    print(`Task ${id} is asked for as ${options.name}.`)
  })
}
