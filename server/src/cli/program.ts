import { Command } from 'commander'
import { type Config, loadConfig } from '../config.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { migrate, requireMigrated } from '../storage/migrate.ts'
import { createPools, type Pools } from '../storage/pools.ts'
import { checkSafety } from '../storage/safety.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { secretsOf } from '../telemetry/scrubber.ts'
import { explain } from './explain.ts'
import { endOnUncaught } from './uncaught.ts'
import { VERSION } from './version.ts'

type Parts = { readonly serve: (config: Config) => Promise<void> }

/** The operator's command line. A command that fails says why in a line or a few, and exits with 1. */
export function createProgram({ serve }: Parts): Command {
  const program = new Command('farebox')
    .description('A metered gateway with a hard ceiling on spend.')
    .version(VERSION, '--version', 'print the version')

  program
    .command('serve')
    .description('run the service in the foreground; SIGTERM finishes what was accepted and stops')
    .option('--roles <list>', 'which parts to run, such as gateway,admin')
    .action((options: { roles?: string }) =>
      running(serve, options.roles === undefined ? {} : { roles: options.roles }),
    )

  program
    .command('migrate')
    .description('bring the database to this version')
    .action(() => running(applyMigrations))

  const config = program.command('config').description('look at the configuration')
  config
    .command('check')
    .description('say whether the service would start with this configuration and database')
    .action(() => running(checkConfig))

  const ledger = program.command('ledger').description('look after the ledger')
  ledger
    .command('verify')
    .description('evaluate every promise of the ledger over all accounts, in one snapshot')
    .action(() => running(verify))

  return program
}

async function applyMigrations(config: Config): Promise<void> {
  const applied = await migrate({ url: config.database.url, log: quietLog(config) })
  print(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`)
}

async function checkConfig(config: Config): Promise<void> {
  print('The configuration is valid.')
  await withPools(config, async ({ rest }) => {
    await checkSafety(rest)
    print("PostgreSQL's settings are safe for money.")
    await requireMigrated(rest)
    print('The database is at the version that this program needs.')
  })
}

async function verify(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const violations = await verifyLedger(rest)
    if (violations.length === 0) return print('Every promise of the ledger holds.')
    throw new Error(violations.map(({ promise, rows }) => `Broken: ${promise} (${rows.join(', ')})`).join('\n'))
  })
}

async function withPools(config: Config, work: (pools: Pools) => Promise<void>): Promise<void> {
  const pools = createPools({ url: config.database.url, log: quietLog(config), restStatementTimeoutMs: 10 * 60_000 })
  try {
    await work(pools)
  } finally {
    await pools.close()
  }
}

/** For commands whose result is what they print. */
function quietLog(config: Config): Log {
  const secrets = secretsOf(config.database.url)
  const log = createLog({ level: 'error', secrets, write: (line) => process.stderr.write(line) })
  endOnUncaught(log)
  return log
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function running(
  work: (config: Config) => Promise<void>,
  overrides: Readonly<Record<string, string>> = {},
): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig(undefined, overrides)
    await work(config)
  } catch (error) {
    for (const line of explain(error, config?.database.url)) process.stderr.write(`farebox: ${line}\n`)
    process.exitCode = 1
  }
}
