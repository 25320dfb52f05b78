import type pg from 'pg'
import { z } from 'zod'
import { type Seal, SealError } from '../kernel/seal.ts'

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

/**
 * Seals every value of a column anew that was sealed with the key before the current one. Whoever reads meanwhile opens the old
 * or the new one, having both keys; what was written anew meanwhile stays.
 */
export async function reseal(pool: pg.Pool, seal: Seal, sealed: Sealed): Promise<Resealed> {
  const { table, key, column, also = "''", boundTo } = sealed
  const failed: string[] = []
  let done = 0
  let after: string | null = null
  for (;;) {
    const { rows }: pg.QueryResult = await pool.query(
      `select ${key} as key, ${column} as value, ${also} as also from ${table}
       where ${column} is not null and ($1::uuid is null or ${key} > $1) order by ${key} limit $2`,
      [after, AT_ONCE],
    )
    for (const { key: place, value, also: more } of z.array(row).parse(rows)) {
      after = place
      if (seal.isCurrent(value)) continue
      try {
        const anew = seal.seal(seal.open(value, boundTo(place, more)), boundTo(place, more))
        await pool.query(`update ${table} set ${column} = $3 where ${key} = $1 and ${column} = $2`, [
          place,
          value,
          anew,
        ])
        done += 1
      } catch (error) {
        if (!(error instanceof SealError)) throw error
        failed.push(place)
      }
    }
    if (rows.length < AT_ONCE) return { done, failed }
  }
}
