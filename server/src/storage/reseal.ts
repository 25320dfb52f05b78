import type pg from 'pg'
import { z } from 'zod'
import { type Seal, SealError } from '../kernel/seal.ts'
import type { Query } from './transaction.ts'

/** A column of sealed values: where it stands, and what each value in it is sealed for. */
export type Sealed = {
  /** For people. */
  readonly what: string
  readonly table: string
  /** The column that names a row. */
  readonly key: string
  readonly column: string
  /** Another column that `boundTo` needs. */
  readonly also?: string
  readonly boundTo: (key: string, also: string) => string
}

export type Resealed = {
  readonly done: number /** Rows that could not be opened. */
  readonly failed: readonly string[]
}

const AT_ONCE = 200
const row = z.object({ key: z.string(), value: z.instanceof(Buffer), also: z.string() })
type Value = z.output<typeof row>

/**
 * Seals every value of a column anew that was sealed with the key before the current one. Whoever reads meanwhile opens the old
 * or the new one, having both keys; what was written anew meanwhile stays.
 */
export async function reseal(pool: pg.Pool, seal: Seal, sealed: Sealed, write: Query): Promise<Resealed> {
  const { table, key, column, boundTo } = sealed
  const failed: string[] = []
  let done = 0
  for await (const { key: place, value, also } of oldValues(pool, seal, sealed)) {
    try {
      const anew = seal.seal(seal.open(value, boundTo(place, also)), boundTo(place, also))
      await write(`update ${table} set ${column} = $3 where ${key} = $1 and ${column} = $2`, [place, value, anew])
      done += 1
    } catch (error) {
      if (!(error instanceof SealError)) throw error
      failed.push(place)
    }
  }
  return { done, failed }
}

/** How many values of a column are not sealed with the current key. */
export async function countOldValues(pool: pg.Pool, seal: Seal, sealed: Sealed): Promise<number> {
  let count = 0
  for await (const _ of oldValues(pool, seal, sealed)) count += 1
  return count
}

async function* oldValues(
  pool: pg.Pool,
  seal: Seal,
  { table, key, column, also = "''" }: Sealed,
): AsyncGenerator<Value> {
  let after: string | null = null
  for (;;) {
    const { rows }: pg.QueryResult = await pool.query(
      `select ${key} as key, ${column} as value, ${also} as also from ${table}
       where ${column} is not null and ($1::uuid is null or ${key} > $1) order by ${key} limit $2`,
      [after, AT_ONCE],
    )
    for (const found of z.array(row).parse(rows)) {
      after = found.key
      if (!seal.isCurrent(found.value)) yield found
    }
    if (rows.length < AT_ONCE) return
  }
}
