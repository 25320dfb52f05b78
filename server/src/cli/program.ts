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
  { words: ['migrate', 'config'], load: async () => (await import('./database.ts')).addDatabaseCommands },
  { words: ['accounts', 'plans'], load: async () => (await import('./accounts.ts')).addAccountCommands },
  { words: ['keys'], load: async () => (await import('./identity.ts')).addIdentityCommands },
  { words: ['budgets'], load: async () => (await import('./budgets.ts')).addBudgetCommands },
  { words: ['grants'], load: async () => (await import('./grants.ts')).addGrantCommands },
  { words: ['credit'], load: async () => (await import('./credit.ts')).addCreditCommand },
  { words: ['charges'], load: () => groupOf('charges') },
  { words: ['quota'], load: async () => (await import('./quota.ts')).addQuotaCommands },
  { words: ['people', 'members'], load: async () => (await import('./people.ts')).addPeopleCommands },
  { words: ['prices'], load: async () => (await import('./prices.ts')).addPriceCommands },
  { words: ['models'], load: async () => (await import('./models.ts')).addModelCommands },
  { words: ['upstreams'], load: async () => (await import('./upstreams.ts')).addUpstreamCommands },
  { words: ['tasks'], load: () => groupOf('tasks') },
  { words: ['ledger'], load: async () => (await import('./ledger.ts')).addLedgerCommands },
  { words: ['losses'], load: async () => (await import('./losses.ts')).addLossCommands },
  { words: ['outbox'], load: () => groupOf('outbox') },
  { words: ['secrets'], load: async () => (await import('./rotate.ts')).addSecretCommands },
  { words: ['audit'], load: async () => (await import('./audit.ts')).addAuditCommand },
  { words: ['contract'], load: async () => (await import('./contract.ts')).addContractCommands },
]

async function groupOf(group: ActionGroup): Promise<Add> {
  const { addActions } = await import('./of-actions.ts')
  return (program) => addActions(program, group)
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
