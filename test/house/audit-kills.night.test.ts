import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { FAREBOX } from '../../harness/gateways.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { rowsOf } from '../identity/secrets-nowhere-search.ts'
import { startAuditInstallation } from './audit-installation.ts'
import { startShell } from './command-shell.ts'

const { pool, envOf, said, scenarios } = await startAuditInstallation()
const { said: saidAfterRotation } = startShell(envOf('secrets rotate'))

/** Money, prices, models, vendors, keys, calls, tasks and secrets: each kind of transaction that there is. */
const TRIED = [
  ...[
    'credit',
    'charges refund',
    'accounts suspend',
    'accounts resume',
    'keys revoke',
    'grants revoke',
    'prices set',
    'prices account',
    'models remove',
    'models import',
  ],
  ...['upstreams add', 'upstreams off', 'tasks attach', 'ledger resolve', 'losses release', 'secrets rotate'],
]
const LOCK = 4_712

await pool.query(`create function wait_for_the_test() returns trigger language plpgsql as $$
  begin perform pg_advisory_xact_lock(${LOCK}); return new; end $$`)

/** Every row of every table: which tables there are, and a digest of each. */
async function everything(): Promise<Readonly<Record<string, string>>> {
  const places = await rowsOf(pool)
  return Object.fromEntries(places.map(({ where, content }) => [where, hash('sha256', content)]))
}

/** The process of PostgreSQL that waits for the test, once it has done everything but the record. */
async function waiting(): Promise<number | undefined> {
  const { rows } = await pool.query<{ pid: number }>(
    `select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted
       and database = (select oid from pg_database where datname = current_database())`,
    [LOCK],
  )
  return rows[0]?.pid
}

/** Runs a line in a process of its own, and ends that with SIGKILL between the change and its record. */
async function killBetween(line: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  await pool.query('create trigger waits before insert on audit for each row execute function wait_for_the_test()')
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock($1)', [LOCK])
  const victim = execFile(process.execPath, [FAREBOX, ...line], { env })
  await until(async () => (await waiting()) !== undefined, PATIENCE_MS, 'that it comes to the record')
  const pid = await waiting()
  victim.kill('SIGKILL')
  await holder.query('select pg_advisory_unlock($1)', [LOCK])
  holder.release()
  const lives = async () => (await pool.query('select from pg_stat_activity where pid = $1', [pid])).rowCount === 1
  await until(async () => !(await lives()), PATIENCE_MS, 'that PostgreSQL has noticed')
  await pool.query('drop trigger waits on audit')
}

describe('a command that is killed between a change and its record', () => {
  for (const name of TRIED)
    it(`leaves neither, and both when it is repeated: ${name}`, async () => {
      const { line } = (await scenarios[name]?.()) ?? assert.fail(name)
      const before = await everything()
      await killBetween(line, envOf(name))
      assert.deepEqual(await everything(), before)

      await (name === 'secrets rotate' ? saidAfterRotation : said)(...line)
      const after = await everything()
      const changed = Object.keys(after).filter((table) => after[table] !== before[table])
      assert.ok(changed.includes('table public.audit'))
      assert.ok(
        changed.some((table) => !['table public.audit', 'table public.change_log'].includes(table)),
        `${changed}`,
      )
    })
})
