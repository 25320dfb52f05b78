import type pg from 'pg'
import type { Query } from './query.ts'

/**
 * PostgreSQL could not be reached, or did not answer: the statement may have been carried out, may be carried out yet, or
 * never. Who sent it learns which by sending the same ids again.
 */
export class Unanswered extends Error {
  constructor(cause: unknown) {
    super('PostgreSQL did not answer', { cause })
    this.name = 'Unanswered'
  }
}

/** An account was locked for so long that PostgreSQL gave up: nothing was carried out. */
export class Contended extends Unanswered {}

/**
 * Statements about money over the pool that is theirs. A connection whose statement failed or hung is dropped, never
 * reused and never asked to cancel: a cancelled wait for a standby reports success.
 */
export function createMoneyQuery(pool: pg.Pool): Query {
  return async ({ name, text, values }) => {
    try {
      const { rows } = await pool.query<unknown[]>({ name, text, values: [...values], rowMode: 'array' })
      return rows
    } catch (error) {
      if (isRefusal(error)) throw error
      throw codeOf(error) === LOCK_NOT_AVAILABLE ? new Contended(error) : new Unanswered(error)
    }
  }
}

/** What PostgreSQL says of the statement itself: its data, its constraints, its text, our own exceptions. */
const LOCK_NOT_AVAILABLE = '55P03'
const FINAL = /^(22|23|42|P0)/

/** Whether PostgreSQL itself judged the statement and will judge it so again. */
function isRefusal(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && FINAL.test(code)
}

/** PostgreSQL's own code of an error; undefined where it did not come from PostgreSQL. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
