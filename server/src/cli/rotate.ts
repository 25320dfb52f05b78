import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { SEALED_IN_TASKS } from '../gateway/plans/video-tasks.ts'
import { SEALED_APPROVALS } from '../identity/approvals.ts'
import { SECOND_FACTORS } from '../identity/people/second-factor.ts'
import { type Seal, sealOf } from '../kernel/seal.ts'
import { VERIFIERS } from '../links/attempts.ts'
import { TOKEN_KEYS } from '../links/tokens.ts'
import { SEALED_SIGNING_KEYS } from '../oauth/provider/signing-keys.ts'
import { type Deed, record } from '../storage/audit.ts'
import { SEALED_MESSAGES } from '../storage/outbox.ts'
import { countOldValues, reseal, type Sealed } from '../storage/reseal.ts'
import { requireMasterKey } from '../storage/sealed-values.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { CREDENTIALS } from '../upstreams/credential.ts'
import { operator, print, running, withPools, writing } from './command.ts'

/** Everything that is under the master key. */
const ALL = [
  CREDENTIALS,
  TOKEN_KEYS,
  VERIFIERS,
  ...SEALED_IN_TASKS,
  SEALED_APPROVALS,
  SEALED_MESSAGES,
  SECOND_FACTORS,
  SEALED_SIGNING_KEYS,
]
export const SEALED_COLUMNS: readonly Sealed[] = ALL

/** For commands that seal: null without a master key, and never with another one than what is stored. */
export async function sealFor(pool: pg.Pool, { secrets }: Config): Promise<Seal | null> {
  const seal = sealOf(secrets)
  if (seal !== null) await requireMasterKey(pool, seal, SEALED_COLUMNS)
  return seal
}

export function addSecretCommands(program: Command): void {
  const secrets = program.command('secrets').description('manage encrypted secrets')
  writing(secrets, 'rotate')
    .description('re-encrypt all secrets from secrets.previous_master_key to secrets.master_key, without downtime')
    .action(() => running(rotate))
}

async function rotate(config: Config): Promise<void> {
  const seal = sealOf(config.secrets)
  if (seal === null) throw new Error('there is no master key: set secrets.master_key (FAREBOX_SECRETS_MASTER_KEY)')
  await withPools(config, async ({ rest: pool }) => {
    const lost: string[] = []
    const write = recordedOnce(pool, await deedOf(pool, seal))
    for (const sealed of ALL) {
      const { done, failed } = await reseal(pool, seal, sealed, write)
      print(`${sealed.what}: ${done} sealed again`)
      lost.push(...failed.map((key) => `${sealed.table} ${key}`))
    }
    if (lost.length > 0)
      throw new Error(`neither key opens these, which stay as they are: ${lost.slice(0, 20).join(', ')}`)
    print(
      'Everything is sealed with secrets.master_key now. Remove secrets.previous_master_key from every process and restart them.',
    )
  })
}

async function deedOf(pool: pg.Pool, seal: Seal): Promise<Deed> {
  const values: Record<string, number> = {}
  for (const sealed of ALL) {
    const count = await countOldValues(pool, seal, sealed)
    if (count > 0) values[sealed.what] = count
  }
  const before = { sealedWith: 'secrets.previous_master_key', values }
  const after = { sealedWith: 'secrets.master_key' }
  return { action: 'secrets.rotated', subject: 'secrets.master_key', before, after }
}

/**
 * Writes values one by one, since nobody may wait for all of them. The first is written together with the record of who did it,
 * or neither is: so nothing is sealed anew without a record, and a run that finds nothing leaves none.
 */
function recordedOnce(pool: pg.Pool, deed: Deed): Query {
  let isRecorded = false
  return async (text, values = []) => {
    if (isRecorded) return pool.query(text, [...values])
    const written = await inTransaction(pool, async (query) => {
      const result = await query(text, values)
      if (result.rowCount === 1) await record(query, operator(), deed)
      return result
    })
    isRecorded = written.rowCount === 1
    return written
  }
}
