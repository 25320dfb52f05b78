import pg from 'pg'

export type Query = (text: string, values?: readonly unknown[]) => Promise<pg.QueryResult>

/** A transaction that is open. What is done in it is committed, or rolled back, by whoever opened it. */
export class OpenTransaction {
  readonly query: Query

  constructor(query: Query) {
    this.query = query
  }
}

/** Where a change is made: in a transaction of its own, or as a part of one that is open. */
export type Transactions = pg.Pool | OpenTransaction

/** One statement there. */
export function queryOn(on: Transactions): Query {
  return on instanceof OpenTransaction ? on.query : (text, values = []) => on.query(text, [...values])
}

/** Runs `work` in one transaction: committed when it returns, rolled back when it throws. */
export async function inTransaction<T>(on: Transactions, work: (query: Query) => Promise<T>): Promise<T> {
  // What is thrown there ends the whole transaction: nobody goes on after a part of it failed.
  if (on instanceof OpenTransaction) return work(on.query)
  return inOneOfItsOwn(on, 'begin', work)
}

/** Runs `work`, whose statements all read what was committed when the first of them began. It can change nothing. */
export function inSnapshot<T>(pool: pg.Pool, work: (snapshot: OpenTransaction) => Promise<T>): Promise<T> {
  return inOneOfItsOwn(pool, 'begin isolation level repeatable read read only', (query) =>
    work(new OpenTransaction(query)),
  )
}

async function inOneOfItsOwn<T>(pool: pg.Pool, begin: string, work: (query: Query) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let lost: Error | undefined
  const query: Query = async (text, values = []) => {
    try {
      return await client.query(text, [...values])
    } catch (error) {
      // What PostgreSQL did not say itself was a timeout or a broken socket: that connection can't be used again.
      if (!(error instanceof pg.DatabaseError)) lost = toError(error)
      throw error
    }
  }
  try {
    await query(begin)
    const result = await work(query)
    const { command } = await query('commit')
    // PostgreSQL answers the commit of a transaction in which a statement had failed with a rollback, not an error.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back, because a statement in it had failed')
    return result
  } catch (error) {
    // A rollback that fails closes the connection, which rolls back as well; what was thrown first is what matters.
    if (lost === undefined) await query('rollback').catch((failure) => (lost = toError(failure)))
    throw error
  } finally {
    client.release(lost)
  }
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error('not an error was thrown', { cause: thrown })
}
