import type pg from 'pg'

/**
 * A statement that each connection prepares once, by its name. Its values are as PostgreSQL takes them: texts, or what is encoded already. Nothing else of that name may be
 * prepared on these connections, by node-postgres itself for instance, which does not know of this one.
 */
export type Prepared = { readonly name: string; readonly text: string; readonly values: readonly PreparedValue[] }
export type PreparedValue = string | number | Buffer | null
export type Rows = readonly (readonly unknown[])[]

/**
 * Runs a prepared statement. A connection is asked what the columns of its answer are when it prepares it, and not again: node-postgres asks and reads that for each
 * query, which is a fifth to a quarter of the time that a small query and its answer take. A connection whose statement failed is dropped, so that what is known of one is what it has prepared. Whoever
 * made the pool listens for errors of its connections.
 */
export async function runPrepared(pool: pg.Pool, prepared: Prepared): Promise<Rows> {
  const client = await pool.connect()
  let isSound = false
  try {
    const rows = await new Promise<Rows>((resolve, reject) => {
      client.query(
        new PreparedQuery(client, prepared, (error, rows) => (error === null ? resolve(rows) : reject(error))),
      )
    })
    isSound = true
    return rows
  } finally {
    client.release(!isSound)
  }
}

type Read = (text: string) => unknown
type Known = { readonly text: string; readonly columns: readonly Read[] }

/** What each connection has prepared, by name. */
const known = new WeakMap<pg.ClientBase, Map<string, Known>>()

/** One run of it, which node-postgres tells what PostgreSQL answers. */
class PreparedQuery implements pg.Submittable {
  /** Called for a failure or the end, by node-postgres too when the time for an answer is over. */
  callback: (error: Error | null, rows: Rows) => void
  readonly #prepared: Prepared
  readonly #known: Map<string, Known>
  readonly #readerOf: (type: number) => Read
  #columns: readonly Read[] | undefined
  #rows: unknown[][] = []
  #failure: Error | null = null

  constructor(client: pg.ClientBase, prepared: Prepared, callback: PreparedQuery['callback']) {
    this.callback = callback
    this.#prepared = prepared
    this.#readerOf = (type) => client.getTypeParser(type, 'text')
    this.#known = known.get(client) ?? new Map()
    known.set(client, this.#known)
  }

  submit(connection: pg.Connection): Error | null {
    const { name, text, values } = this.#prepared
    const prepared = this.#known.get(name)
    if (prepared !== undefined && prepared.text !== text) return new Error(`two statements are called ${name}`)
    this.#columns = prepared?.columns
    const texts = values.map((value) => (typeof value === 'number' ? String(value) : value))
    connection.stream.cork()
    if (prepared === undefined) connection.parse({ name, text, types: [] }, true)
    connection.bind({ statement: name, values: texts }, true)
    if (prepared === undefined) connection.describe({ type: 'P' }, true)
    connection.execute({}, true)
    connection.sync()
    connection.stream.uncork()
    return null
  }

  handleRowDescription({ fields }: { readonly fields: readonly Pick<pg.FieldDef, 'dataTypeID'>[] }): void {
    this.#columns = fields.map(({ dataTypeID }) => this.#readerOf(dataTypeID))
  }

  /** What can't be read is told when the answer is over: an error thrown here would be nobody's. */
  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const columns = this.#columns ?? []
    try {
      if (fields.length !== columns.length) throw new Error(`there are ${fields.length} columns, not ${columns.length}`)
      this.#rows.push(fields.map((field, at) => (field === null ? null : columns[at]?.(field))))
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error('a column could not be read', { cause: error })
    }
  }

  handleCommandComplete(): void {
    const { name, text } = this.#prepared
    if (!this.#known.has(name)) this.#known.set(name, { text, columns: this.#columns ?? [] })
  }

  handleEmptyQuery(): void {
    this.#failure ??= new Error(`${this.#prepared.name} has no text`)
  }

  handleReadyForQuery(): void {
    this.callback(this.#failure, this.#rows)
  }

  handleError(error: Error): void {
    this.callback(error, [])
  }
}
