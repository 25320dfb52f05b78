import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { sealOf } from '../kernel/seal.ts'
import { migrate, requireMigrated } from '../storage/migrate.ts'
import { checkSafety } from '../storage/safety.ts'
import { requireMasterKey } from '../storage/sealed-values.ts'
import { declared, print, quietLog, reading, running, withAnyPools } from './command.ts'
import { SEALED_COLUMNS } from './sealed-columns.ts'

export function addDatabaseCommands(program: Command): void {
  // Its record is the table of migrations: the audit log itself comes with one of them.
  declared(program, 'migrate', 'apart')
    .description('migrate the database to the version of this program')
    .action(() => running(applyMigrations))

  const config = program.command('config').description('check the configuration')
  reading(config, 'check')
    .description('check whether the service would start with this configuration and database')
    .action(() => running(checkConfig))
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
