import { Command } from 'commander'
import type { Config } from '../config.ts'
import type { ActionGroup } from '../operate/actions.ts'
import { VERSION } from './version.ts'

type Parts = { readonly serve: (config: Config) => Promise<void> }
type Add = (program: Command) => void

/** The operator's command line. A command that fails says why in a line or a few, and exits with 1. It has every command, unless one word says which is needed. */
export async function createProgram({ serve }: Parts, word?: string): Promise<Command> {
  const program = new Command('farebox')
    .description('A metered gateway with a hard ceiling on spend.')
    .version(VERSION, '--version', 'print the version')
  const groups = [
    { words: ['serve'], load: async (): Promise<Add> => addServe(await import('./command.ts'), serve) },
    ...GROUPS,
  ]
  if (word === '--version') return program
  const wanted = groups.filter(({ words }) => words.some((one) => one === word))
  for (const { load } of wanted.length > 0 ? wanted : groups) (await load())(program)
  return program
}

type Group = { readonly words: readonly string[]; readonly load: () => Promise<Add> }

/** In the order of the help, each with the words that it adds: a run loads what its own word needs. */
const GROUPS: readonly Group[] = [
  ...groupsOf('status'),
  { words: ['health'], load: async () => (await import('./health.ts')).addHealthCommand },
  { words: ['migrate', 'config'], load: async () => (await import('./database.ts')).addDatabaseCommands },
  ...groupsOf(
    'accounts',
    'plans',
    'keys',
    'budgets',
    'grants',
    'credit',
    'requests',
    'charges',
    'spend',
    'quota',
    'people',
    'members',
    'prices',
    'operations',
    'categories',
  ),
  {
    words: ['models'],
    load: () => groupWith('models', async () => (await import('./price-lists.ts')).addPriceListCommands),
  },
  {
    words: ['upstreams'],
    load: () => groupWith('upstreams', async () => (await import('./probe.ts')).addProbeCommand),
  },
  ...groupsOf('tasks', 'ledger', 'losses', 'outbox'),
  { words: ['secrets'], load: async () => (await import('./rotate.ts')).addSecretCommands },
  ...groupsOf('audit'),
  { words: ['contract'], load: async () => (await import('./contract.ts')).addContractCommands },
]

function groupsOf(...names: readonly ActionGroup[]): readonly Group[] {
  return names.map((name) => ({ words: [name], load: () => groupWith(name) }))
}

/** With commands of its own machine below it, such as those that read and write files. */
async function groupWith(name: ActionGroup, more?: () => Promise<Add>): Promise<Add> {
  const { actionCommands } = await import('./action-commands.ts')
  const [add, addMore] = [await actionCommands(name), await more?.()]
  return (program) => {
    const group = add(program)
    addMore?.(group)
  }
}

function addServe({ declared, running }: typeof import('./command.ts'), serve: Parts['serve']): Add {
  return (program) => {
    // What it changes is recorded as it is done: by workers, members and calls.
    declared(program, 'serve', 'apart')
      .description('run the service in the foreground; SIGTERM finishes accepted calls and stops')
      .option('--roles <list>', 'parts to run, such as gateway,admin (default: the setting roles, or all)')
      .action((options: { roles?: string }) =>
        running(serve, options.roles === undefined ? {} : { roles: options.roles }),
      )
  }
}
