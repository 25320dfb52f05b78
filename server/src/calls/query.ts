import type { Id } from '../kernel/ids.ts'
import { type ArrayType, encodeArray, type Value } from './columns.ts'

/** Runs one prepared statement and gives its rows, each an array of columns. */
export type Query = (statement: Statement) => Promise<readonly (readonly unknown[])[]>
export type Statement = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/** A parameter of a batch: its PostgreSQL type and all its values. */
export type Column = readonly [type: ArrayType, values: readonly Value[]]

/** Calls a function of batches with what it takes of each of them, of which the first is no array: whose batch it is. */
export function createCall(name: string, select: string): (columns: readonly Column[], owner?: Id) => Statement {
  let text: string | undefined
  return (columns, owner) => {
    const first = owner === undefined ? [] : [owner]
    text ??= callText(name, select, [...first.map(() => 'uuid'), ...columns.map(([type]) => type)])
    return { name, text, values: [...first, ...columns.map(([type, values]) => encodeArray(type, values))] }
  }
}

function callText(name: string, select: string, types: readonly string[]): string {
  return `select ${select} from ${name}(${types.map((type, at) => `$${at + 1}::${type}`).join(', ')})`
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
