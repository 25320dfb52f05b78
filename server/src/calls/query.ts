/** Runs one prepared statement and gives its rows, each an array of columns. */
export type Query = (statement: Statement) => Promise<readonly (readonly unknown[])[]>
export type Statement = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/** A parameter of a batch: its PostgreSQL type and all its values, as one literal. */
export type Column = readonly [type: string, literal: string]

export function callOf(name: string, select: string, columns: readonly Column[]): Statement {
  const parameters = columns.map(([type], at) => `$${at + 1}::${type}`)
  return {
    name,
    text: `select ${select} from ${name}(${parameters.join(', ')})`,
    values: columns.map(([, literal]) => literal),
  }
}

/** A row of PostgreSQL is input from outside: what is not of the type that the function promises is a defect. */
export class Row {
  readonly #columns: readonly unknown[]

  constructor(columns: readonly unknown[] | undefined) {
    if (columns === undefined) throw new Error('PostgreSQL answered fewer rows than it was asked')
    this.#columns = columns
  }

  text(at: number): string {
    const value = this.#columns[at]
    if (typeof value !== 'string') throw new Error(`column ${at} should be text`)
    return value
  }

  number(at: number): number {
    const value = this.#columns[at]
    if (typeof value !== 'number') throw new Error(`column ${at} should be a number`)
    return value
  }

  bigint(at: number): bigint {
    const value = this.#columns[at]
    if (typeof value !== 'bigint') throw new Error(`column ${at} should be a bigint`)
    return value
  }

  boolean(at: number): boolean {
    const value = this.#columns[at]
    if (typeof value !== 'boolean') throw new Error(`column ${at} should be true or false`)
    return value
  }

  isNull(at: number): boolean {
    return this.#columns[at] === null
  }
}
