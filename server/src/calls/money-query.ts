import type pg from 'pg'
import { runPrepared } from '../storage/prepared.ts'
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
  return async (statement) => {
    try {
      return await runPrepared(pool, statement)
    } catch (error) {
      if (isRefusal(error)) throw error
      throw codeOf(error) === LOCK_NOT_AVAILABLE ? new Contended(error) : new Unanswered(error)
    }
  }
}

const LOCK_NOT_AVAILABLE = '55P03'
