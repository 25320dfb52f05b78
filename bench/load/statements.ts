import type pg from 'pg'
import { z } from 'zod'
import { hasStatements } from './installation.ts'

/** How long PostgreSQL took over the statements that begin and end calls, and over all, in milliseconds. */
export type Statements = { readonly begin: number; readonly end: number; readonly all: number }

const NONE: Statements = { begin: 0, end: 0, all: 0 }
const row = z.object({ begin: z.number(), end: z.number(), all: z.number() })

/** From now on. Zeros where PostgreSQL lacks the means to tell. */
export async function statementsOf(pool: pg.Pool): Promise<{ readonly taken: () => Promise<Statements> }> {
  if (!hasStatements()) return { taken: async () => NONE }
  await pool.query('select pg_stat_statements_reset()')
  return {
    async taken() {
      const { rows } = await pool.query(
        `select coalesce(sum(total_exec_time) filter (where query like any (array['%from begin_attributed_calls(%', '%insert into holds (%'])), 0)::float8 as begin,
           coalesce(sum(total_exec_time) filter (where query like any (array['%from end_attributed_calls%', '%insert into charges (%'])), 0)::float8 as end,
           coalesce(sum(total_exec_time), 0)::float8 as all
         from pg_stat_statements`,
      )
      return row.parse(rows[0])
    },
  }
}
