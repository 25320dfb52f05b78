import type pg from 'pg'
import { z } from 'zod'
import { MONEY_SETTINGS, type Pools } from './pools.ts'

/** What PostgreSQL is set to in a session like ours, with where each value comes from. */
export type Settings = {
  readonly database: string
  readonly role: string
  readonly isInRecovery: boolean
  readonly values: Readonly<Record<Name, { readonly value: string; readonly source: string }>>
}

const NAMES = [
  'server_version_num',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'synchronous_standby_names',
  'default_transaction_isolation',
] as const
type Name = (typeof NAMES)[number]

const OLDEST_VERSION = 150_000

/**
 * Refuses a PostgreSQL that takes no writes, or could forget money that it had acknowledged, and connections for money that are not set as we ask: a line for each thing
 * to change.
 */
export async function checkSafety({ money, rest }: Pick<Pools, 'money' | 'rest'>): Promise<void> {
  const problems = [...unsafeSettings(await readSettings(rest)), ...(await lostSettings(money))]
  if (problems.length > 0) throw new Error(problems.join('\n'))
}

const valueRows = z.array(z.object({ name: z.string(), setting: z.string() }))

/** A connection pooler can be told to ignore what a connection asks for when it starts. */
async function lostSettings(money: pg.Pool): Promise<string[]> {
  const names = Object.keys(MONEY_SETTINGS)
  const result = await money.query('select name, setting from pg_settings where name = any ($1) order by name', [names])
  const lost = valueRows.parse(result.rows).filter(({ name, setting }) => setting !== MONEY_SETTINGS[name])
  if (lost.length === 0) return []
  const found = lost.map(({ name, setting }) => `${name} is ${setting}`).join(', ')
  return [
    `PostgreSQL: connections lose the settings that we start them with (${found}), so accounts may be locked out of order; let the connection pooler pass on startup options, or connect without it.`,
  ]
}

export function unsafeSettings(settings: Settings): string[] {
  const { values } = settings
  const problem = (name: Name, wanted: string, why: string) =>
    `PostgreSQL: ${name} is ${values[name].value}, ${why}; ${remedy(name, wanted, settings)}.`
  const version = Number(values.server_version_num.value)
  const problems: string[] = []
  if (settings.isInRecovery)
    problems.push('PostgreSQL: this server is a standby and takes no writes; point database.url at the primary.')
  if (version < OLDEST_VERSION)
    problems.push(
      `PostgreSQL: server_version is ${Math.floor(version / 10_000)}, which is too old; install 15 or newer.`,
    )
  if (values.fsync.value !== 'on')
    problems.push(problem('fsync', 'on', 'so a crash of the machine loses or corrupts what was committed'))
  if (values.full_page_writes.value !== 'on')
    problems.push(problem('full_page_writes', 'on', 'so a crash of the machine can leave torn pages'))
  const loss = lossOnCommit(values.synchronous_commit.value, values.synchronous_standby_names.value !== '')
  if (loss !== undefined) problems.push(problem('synchronous_commit', 'on', loss))
  if (values.default_transaction_isolation.value !== 'read committed')
    problems.push(
      problem(
        'default_transaction_isolation',
        "'read committed'",
        'but the ledger is correct only with read committed',
      ),
    )
  return problems
}

/**
 * With `on` and `remote_apply` a commit is on disk here, and on the standbys' where there are synchronous ones, before
 * it is acknowledged. Without synchronous standbys `local` and `remote_write` mean the same as `on`; with them, `local`
 * does not wait for the standby and `remote_write` not for its disk, so a failover can lose what was acknowledged.
 */
function lossOnCommit(value: string, hasStandbys: boolean): string | undefined {
  if (value === 'on' || value === 'remote_apply') return undefined
  if (value === 'off') return 'so a crash loses what was acknowledged'
  return hasStandbys ? 'so a failover to a standby loses what was acknowledged' : undefined
}

/** The statement that changes a setting depends on who set it. */
function remedy(name: Name, wanted: string, { values, database, role }: Settings): string {
  switch (values[name].source) {
    case 'database':
      return `run: alter database "${database}" reset ${name}`
    case 'user':
      return `run: alter role "${role}" reset ${name}`
    case 'database user':
      return `run: alter role "${role}" in database "${database}" reset ${name}`
    case 'global':
      return `run: alter role all reset ${name}`
    case 'client':
      return `remove ${name} from the database URL`
    case 'command line':
      return `start PostgreSQL with ${name}=${wanted}`
    default:
      return `set ${name} = ${wanted} in postgresql.conf and reload`
  }
}

const rows = z.array(
  z.object({
    name: z.enum(NAMES),
    setting: z.string(),
    source: z.string(),
    database: z.string(),
    role: z.string(),
    is_in_recovery: z.boolean(),
  }),
)

async function readSettings(pool: pg.Pool): Promise<Settings> {
  const result = await pool.query(
    `select name, setting, source, current_database() as database, session_user as role,
       pg_is_in_recovery() as is_in_recovery
     from pg_settings where name = any ($1)`,
    [NAMES],
  )
  const found = rows.parse(result.rows)
  const of = (name: Name) => {
    const row = found.find((candidate) => candidate.name === name)
    if (row === undefined) throw new Error(`PostgreSQL does not show the setting ${name}.`)
    return { value: row.setting, source: row.source }
  }
  return {
    database: found[0]?.database ?? '',
    role: found[0]?.role ?? '',
    isInRecovery: found.some((row) => row.is_in_recovery),
    values: {
      server_version_num: of('server_version_num'),
      fsync: of('fsync'),
      full_page_writes: of('full_page_writes'),
      synchronous_commit: of('synchronous_commit'),
      synchronous_standby_names: of('synchronous_standby_names'),
      default_transaction_isolation: of('default_transaction_isolation'),
    },
  }
}
