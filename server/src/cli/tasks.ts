import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { attachTask, countOpen, listLost, pollLags } from '../tasks/operate.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addTaskCommands(program: Command): void {
  const tasks = program.command('tasks').description('manage asynchronous tasks')
  reading(tasks, 'status')
    .description('show open tasks, the polling delay per upstream, and lost tasks')
    .action(() => running(status))
  writing(tasks, 'attach <id>')
    .description('attach a lost task to the upstream that runs it; the task continues and is not created again')
    .requiredOption('--upstream <id>', 'upstream that runs the task: see farebox upstreams list')
    .requiredOption('--name <task_id>', 'name of the task at the provider')
    .action((id: string, options: { upstream: string; name: string }) =>
      running((config) => attach(config, id, options)),
    )
}

async function status(config: Config): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const [open, lags, lost] = await Promise.all([countOpen(pool), pollLags(pool), listLost(pool)])
    const counts = Object.entries(open).map(([state, count]) => `${count} ${state}`)
    print(counts.length === 0 ? 'There are no open tasks.' : `Open: ${counts.join(', ')}.`)
    for (const { slot, seconds } of lags) print(`Polls of ${slot} are ${seconds.toFixed(1)} seconds late.`)
    if (lost.length > 0) print('Lost tasks (it is unknown whether an upstream runs them):')
    for (const { id, model, created_at } of lost)
      print(`${id}  ${model}  ${created_at.toISOString()}  farebox tasks attach, or farebox ledger resolve`)
  })
}

async function attach(config: Config, text: string, options: { upstream: string; name: string }): Promise<void> {
  const [id, upstreamId] = [idOf(text), idOf(options.upstream)]
  await withPools(config, async ({ rest: pool }) => {
    await attachTask(pool, { id, upstreamId, name: options.name }, operator())
    print(`Task ${id} is attached, and polled as ${options.name}.`)
  })
}
