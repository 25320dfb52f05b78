import type pg from 'pg'
import { codeOf, isRefusal } from '../storage/refusal.ts'
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

/** An account was locked for so long that PostgreSQL gave up: nothing of the statement was carried out. */
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

/**
 * What statements beside each other answer, once all have ended, so that nothing is sent again while it is being carried out. Of several errors the one is thrown that says the
 * least: an outcome that is unknown comes before a lock, and that before a refusal.
 */
export async function allAnswered<T>(statements: readonly Promise<T>[]): Promise<readonly T[]> {
  const results = await Promise.allSettled(statements)
  const errors: unknown[] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  if (errors.length > 0) throw errors.toSorted((one, other) => certainty(one) - certainty(other))[0]
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

function certainty(error: unknown): number {
  if (error instanceof Contended) return 1
  return error instanceof Unanswered ? 0 : 2
}

const LOCK_NOT_AVAILABLE = '55P03'
