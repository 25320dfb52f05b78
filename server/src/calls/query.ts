/** Runs one prepared statement and gives its rows, each an array of columns. */
export type Query = (statement: Statement) => Promise<readonly (readonly unknown[])[]>
export type Statement = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/** A parameter of a batch: its PostgreSQL type and all its values, as one literal. */
export type Column = readonly [type: string, literal: string]

/** What one statement does beside calling the function: all of it happens, or none. */
type Beside = {
  /** Of the whole, by which it is prepared once. */
  readonly name: string
  readonly columns: readonly Column[]
  /** What it does, by its parameters and by `result`, the function's rows with their `ordinality`. */
  readonly also: (parameters: string) => string
}

export function callOf(name: string, select: string, columns: readonly Column[], beside?: Beside): Statement {
  const call = `${name}(${parametersOf(columns)})`
  if (beside === undefined) return { name, text: `select ${select} from ${call}`, values: columns.map(literalOf) }
  const also = beside.also(parametersOf(beside.columns, columns.length))
  return {
    name: beside.name,
    text: `with result as materialized (select * from ${call} with ordinality), also as (${also})
      select ${select} from result order by ordinality`,
    values: [...columns, ...beside.columns].map(literalOf),
  }
}

const literalOf = ([, literal]: Column) => literal

function parametersOf(columns: readonly Column[], after = 0): string {
  return columns.map(([type], at) => `$${after + at + 1}::${type}`).join(', ')
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
