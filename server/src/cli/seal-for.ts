import type pg from 'pg'
import type { Config } from '../config.ts'
import { type Seal, sealOf } from '../kernel/seal.ts'
import { requireMasterKey } from '../storage/sealed-values.ts'

/** For commands that seal: null without a master key, and never with another one than what is stored. */
export async function sealFor(pool: pg.Pool, { secrets }: Config): Promise<Seal | null> {
  const seal = sealOf(secrets)
  if (seal === null) return null
  const { SEALED_COLUMNS } = await import('./sealed-columns.ts')
  await requireMasterKey(pool, seal, SEALED_COLUMNS)
  return seal
}
