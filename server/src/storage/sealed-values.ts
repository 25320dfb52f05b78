import type pg from 'pg'
import { z } from 'zod'
import { KEY_NAME_AT, type Seal } from '../kernel/seal.ts'
import type { Sealed } from './reseal.ts'

/** As many of a column are looked at, the newest: a start must not take longer the more is stored. */
const LOOKED_AT = 1_000
const KEYS_SHOWN = 3

const found = z.array(z.object({ name: z.string(), count: z.int() }))

/** Which master keys sealed values need that the seal does not have: by the name of the key, how many of what. */
async function foreignKeys(pool: pg.Pool, names: readonly string[], sealed: Sealed) {
  const { key, column, table } = sealed
  const { rows } = await pool.query(
    `select name, count(*)::integer as count from (
       select encode(substring(${column} from ${KEY_NAME_AT.from} for ${KEY_NAME_AT.length}), 'hex') as name
       from ${table} where ${column} is not null order by ${key} desc limit $2
     ) newest where name <> all ($1::text[]) group by name order by count(*) desc, name limit $3`,
    [names, LOOKED_AT, KEYS_SHOWN],
  )
  return found.parse(rows).map(({ name, count }) => ({ name, count, what: sealed.what }))
}

/**
 * Throws unless the master keys open what is stored. Whoever goes on all the same would tell callers that nothing is set up, and would
 * seal with a key beside which the others are lost.
 */
export async function requireMasterKey(pool: pg.Pool, seal: Seal | null, columns: readonly Sealed[]): Promise<void> {
  const foreign = []
  for (const sealed of columns) foreign.push(...(await foreignKeys(pool, seal?.keyNames ?? [], sealed)))
  const [first] = foreign
  if (first === undefined) return
  const what = foreign.map(({ name, count, what }) => `${count} ${what} with the master key ${name}`).join(', ')
  const own = seal === null ? 'is missing' : `is the wrong key (${seal.keyNames.join(', previous key ')})`
  throw new Error(
    `secrets.master_key (FAREBOX_SECRETS_MASTER_KEY) ${own}. The database has secrets that need another key: ${what}. ` +
      'Give that key; while you change the master key, give it as secrets.previous_master_key.',
  )
}
