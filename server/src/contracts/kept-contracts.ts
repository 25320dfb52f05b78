import type pg from 'pg'
import { z } from 'zod'
import { sha256 } from './canonical.ts'
import type { Contract } from './contract.ts'

/** Contracts that this installation has served, in PostgreSQL. */
export type KeptContracts = {
  /** Says that a contract is being served now, by which it is kept for some time more. */
  readonly keep: (contract: Contract) => Promise<void>
  /** One that was served within the time that they are kept; undefined where there is none, or where its bytes are damaged. */
  readonly find: (contentHash: string) => Promise<Contract | 'damaged' | undefined>
}

type Parts = { readonly pool: pg.Pool; readonly keptDays: number }

const row = z.object({ docs_revision: z.string(), bytes: z.instanceof(Buffer) })

export function createKeptContracts({ pool, keptDays }: Parts): KeptContracts {
  return {
    async keep({ contentHash, docsRevision, bytes }) {
      // Another program may have made the same bytes of something else: the first to say so is believed.
      await pool.query(
        `insert into contracts (content_hash, docs_revision, bytes) values ($1, $2, $3)
           on conflict (content_hash) do update set last_served_at = clock_timestamp()`,
        [contentHash, docsRevision, bytes],
      )
    },

    async find(contentHash) {
      const { rows } = await pool.query(
        `select docs_revision, bytes from contracts
           where content_hash = $1 and last_served_at > clock_timestamp() - make_interval(days => $2)`,
        [contentHash, keptDays],
      )
      if (rows[0] === undefined) return undefined
      const { docs_revision: docsRevision, bytes } = row.parse(rows[0])
      return sha256(bytes) === contentHash ? { contentHash, docsRevision, bytes } : 'damaged'
    },
  }
}

/** Forgets those that nobody has served for so long. */
export async function pruneContracts(pool: pg.Pool, keptDays: number): Promise<number> {
  const { rowCount } = await pool.query(
    'delete from contracts where last_served_at < clock_timestamp() - make_interval(days => $1)',
    [keptDays],
  )
  return rowCount ?? 0
}
