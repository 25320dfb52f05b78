import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { dropDead, listDead, outboxFigures, retryAllDead, retryDead } from '../outbox/operate.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addOutboxCommands(program: Command): void {
  const outbox = reading(program, 'outbox')
    .description('list messages that wait for delivery, and dead letters')
    .action(() => running(list))
  writing(outbox, 'retry [id]')
    .description('retry the delivery of a dead letter')
    .option('--kind <kind>', 'retry all dead letters of this kind (default: the one that is named)')
    .action((id: string | undefined, { kind }: { kind?: string }) => running((config) => retry(config, id, kind)))
  writing(outbox, 'drop <id>')
    .description('delete a dead letter: it is never delivered')
    .action((id: string) => running((config) => drop(config, id)))
}

const LISTED = 100

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const [figures, dead] = await Promise.all([outboxFigures(pool), listDead(pool, LISTED)])
    if (figures.length === 0) print('No messages are waiting, and there are no dead letters.')
    for (const { kind, waiting, oldest_seconds, dead: died } of figures)
      print(`${kind}  ${waiting} waiting, the oldest for ${oldest_seconds.toFixed(0)} seconds  ${died} dead letters`)
    if (dead.length > 0) print(`Dead letters, newest first, up to ${LISTED}:`)
    for (const { id, kind, destination, attempts, failure, created_at } of dead)
      print(`${id}  ${kind}  ${destination}  ${created_at.toISOString()}  ${attempts} attempts  ${failure ?? ''}`)
  })
}

async function retry(config: Config, text: string | undefined, kind: string | undefined): Promise<void> {
  if ((text === undefined) === (kind === undefined))
    throw new Error('name one dead letter, or --kind for all of a kind')
  await withPools(config, async ({ rest: pool }) => {
    if (text === undefined) {
      print(`${await retryAllDead(pool, operator(), kind ?? '')} dead letters of ${kind} will be delivered again.`)
      return
    }
    const id = idOf(text)
    if (!(await retryDead(pool, operator(), id))) throw new Error(`${id} is not a dead letter: see farebox outbox`)
    print(`Message ${id} will be delivered again.`)
  })
}

async function drop(config: Config, text: string): Promise<void> {
  const id = idOf(text)
  await withPools(config, async ({ rest: pool }) => {
    if (!(await dropDead(pool, operator(), id))) throw new Error(`${id} is not a dead letter: see farebox outbox`)
    print(`Message ${id} is deleted and will not be delivered.`)
  })
}
