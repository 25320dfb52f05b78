import { Command } from 'commander'
import type { Config } from '../config.ts'
import { sealOf } from '../kernel/seal.ts'
import { migrate, requireMigrated } from '../storage/migrate.ts'
import { checkSafety } from '../storage/safety.ts'
import { requireMasterKey } from '../storage/sealed-values.ts'
import { addAccountCommands } from './accounts.ts'
import { addAuditCommand } from './audit.ts'
import { addBudgetCommands } from './budgets.ts'
import { declared, print, quietLog, reading, running, withAnyPools } from './command.ts'
import { addContractCommands } from './contract.ts'
import { addCreditCommand } from './credit.ts'
import { addGrantCommands } from './grants.ts'
import { addIdentityCommands } from './identity.ts'
import { addLedgerCommands } from './ledger.ts'
import { addLossCommands } from './losses.ts'
import { addModelCommands } from './models.ts'
import { addOutboxCommands } from './outbox.ts'
import { addPeopleCommands } from './people.ts'
import { addPriceCommands } from './prices.ts'
import { addQuotaCommands } from './quota.ts'
import { addSecretCommands, SEALED_COLUMNS } from './rotate.ts'
import { addTaskCommands } from './tasks.ts'
import { addUpstreamCommands } from './upstreams.ts'
import { VERSION } from './version.ts'

type Parts = { readonly serve: (config: Config) => Promise<void> }

/** The operator's command line. A command that fails says why in a line or a few, and exits with 1. */
export function createProgram({ serve }: Parts): Command {
  const program = new Command('farebox')
    .description('A metered gateway with a hard ceiling on spend.')
    .version(VERSION, '--version', 'print the version')

  // What it changes is recorded as it is done: by workers, members and calls.
  declared(program, 'serve', 'apart')
    .description('run the service in the foreground; SIGTERM finishes accepted calls and stops')
    .option('--roles <list>', 'parts to run, such as gateway,admin (default: the setting roles, or all)')
    .action((options: { roles?: string }) =>
      running(serve, options.roles === undefined ? {} : { roles: options.roles }),
    )

  // Its record is the table of migrations: the audit log itself comes with one of them.
  declared(program, 'migrate', 'apart')
    .description('migrate the database to the version of this program')
    .action(() => running(applyMigrations))

  const config = program.command('config').description('check the configuration')
  reading(config, 'check')
    .description('check whether the service would start with this configuration and database')
    .action(() => running(checkConfig))

  addAccountCommands(program)
  addIdentityCommands(program)
  addBudgetCommands(program)
  addGrantCommands(program)
  addCreditCommand(program)
  addQuotaCommands(program)
  addPeopleCommands(program)
  addPriceCommands(program)
  addModelCommands(program)
  addUpstreamCommands(program)
  addTaskCommands(program)
  addLedgerCommands(program)
  addLossCommands(program)
  addOutboxCommands(program)
  addSecretCommands(program)
  addAuditCommand(program)
  addContractCommands(program)
  return program
}

async function applyMigrations(config: Config): Promise<void> {
  const applied = await migrate({ url: config.database.url, log: quietLog(config) })
  print(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
}

async function checkConfig(config: Config): Promise<void> {
  print('The configuration is valid.')
  await withAnyPools(config, async ({ money, rest }) => {
    await checkSafety({ money, rest })
    print("PostgreSQL's settings are safe for money.")
    await requireMigrated(rest)
    print('The database is at the version that this program needs.')
    await requireMasterKey(rest, sealOf(config.secrets), SEALED_COLUMNS)
    print('The master key opens what is stored.')
  })
}
