import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { type Seal, sealOf } from '../kernel/seal.ts'
import { type Change, record } from '../storage/audit.ts'
import { countOldValues, reseal } from '../storage/reseal.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { operator, print, running, withPools, writing } from './command.ts'
import { SEALED_COLUMNS } from './sealed-columns.ts'

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
    const write = recordedOnce(pool, await changeOf(pool, seal))
    for (const sealed of SEALED_COLUMNS) {
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

async function changeOf(pool: pg.Pool, seal: Seal): Promise<Change> {
  const values: Record<string, number> = {}
  for (const sealed of SEALED_COLUMNS) {
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
function recordedOnce(pool: pg.Pool, change: Change): Query {
  let isRecorded = false
  return async (text, values = []) => {
    if (isRecorded) return pool.query(text, [...values])
    const written = await inTransaction(pool, async (query) => {
      const result = await query(text, values)
      if (result.rowCount === 1) await record(query, operator(), change)
      return result
    })
    isRecorded = written.rowCount === 1
    return written
  }
}
