import type pg from 'pg'
import { z } from 'zod'
import { listAudit } from '../storage/audit.ts'
import { type Change, changesBetween, membersOfPrice } from './price-list/changes.ts'
import { noSuchModel } from './require-model.ts'
import { PRICE_SQL, priceText } from './set-model-price.ts'

/** A version of a model's price: from when on it applied, who set it, and what it changed. */
export type PriceVersion = {
  readonly version: number
  readonly since: Date
  /** Null where the audit log does not say. */
  readonly by: string | null
  readonly changes: readonly Change[]
}

export const VERSIONS_MOST = 200

const versionRow = priceText.extend({ since: z.date() })

/** The newest first. Prices outlive their model, and so does this. */
export async function listPriceVersions(pool: pg.Pool, model: string): Promise<readonly PriceVersion[]> {
  // One more than is told, so that the oldest that is told has one before it to be compared with.
  const { rows } = await pool.query(
    `select ${PRICE_SQL}, created_at as since from model_prices where model = $1 order by version desc limit $2`,
    [model, VERSIONS_MOST + 1],
  )
  const versions = z.array(versionRow).parse(rows)
  if (versions.length === 0) await requireKnown(pool, model)
  const setters = await settersOf(pool, model)
  return versions.slice(0, VERSIONS_MOST).map((price, at) => {
    const { version, since } = price
    const changes = changesBetween(membersOfPrice(versions[at + 1] ?? null), membersOfPrice(price))
    return { version, since, by: setters.get(version) ?? null, changes }
  })
}

async function requireKnown(pool: pg.Pool, model: string): Promise<void> {
  const { rows } = await pool.query('select from models where id = $1', [model])
  if (rows.length === 0) throw noSuchModel(model)
}

const versionOf = z.object({ version: z.int() })

async function settersOf(pool: pg.Pool, model: string): Promise<ReadonlyMap<number, string>> {
  const entries = await listAudit(pool, { action: 'model.price_set', subject: model }, { most: VERSIONS_MOST })
  return new Map(
    entries.flatMap(({ actor, after }) => {
      const { data } = versionOf.safeParse(after)
      return data === undefined ? [] : [[data.version, actor] as const]
    }),
  )
}
