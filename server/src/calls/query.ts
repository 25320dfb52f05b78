import type { Id } from '../kernel/ids.ts'
import type { Prepared, PreparedValue, Rows } from '../storage/prepared.ts'
import { type ArrayType, encodeArray, encodeRecords, type Field, type Value } from './columns.ts'

/** Runs one prepared statement and gives its rows, each an array of columns. */
export type Query = (statement: Statement) => Promise<Rows>
export type Statement = Prepared

/** An argument of a function of batches: its name there, its PostgreSQL type and all its values. */
export type Column = readonly [name: string, type: ArrayType, values: readonly Value[]]

/** What a statement does beside calling its function: all of it happens, or none. */
export type Beside = {
  /** Added to the name of the whole, by which that is prepared once. */
  readonly name: string
  /** What it does and selects, by its parameters and by `result`, the function's rows with their `ordinality`. */
  readonly also: (parameters: Parameters) => string
}

/** The columns that something beside takes, as its SQL names them. */
export type Parameters = {
  readonly of: (column: string) => string
  /** All of them as rows, `item`, with a field for each column. */
  readonly items: string
}

/**
 * Calls a function of batches with what it takes of each of them, of which the first is no array: whose batch it is. What is done
 * beside it takes columns of its own, which are always the same.
 */
export function createCall(name: string, select: string, besides: readonly Beside[] = []) {
  const fullName = [name, ...besides.map((beside) => beside.name)].join('_')
  let text: string | undefined
  return (columns: readonly Column[], beside: readonly (readonly Column[])[] = [], owner?: Id): Statement => {
    const first = owner === undefined ? [] : [owner]
    text ??= textOf(name, select, [[...first.map(() => OWNER), ...columns], ...beside], besides)
    const values = [...columns, ...beside.flat()].map(([, type, values]) => encodeArray(type, values))
    return { name: fullName, text, values: [...first, ...values] }
  }
}

const OWNER = ['owner_id_in', 'uuid'] as const

type Argument = readonly [name: string, type: string, ...rest: readonly unknown[]]

function textOf(
  name: string,
  select: string,
  groups: readonly (readonly Argument[])[],
  besides: readonly Beside[],
): string {
  const [own = NO_PLACES, ...others] = placesOf(groups)
  const call = `${name}(${[...own].map(([argument, place]) => `${argument} => ${place}`).join(', ')})`
  if (besides.length === 0) return `select ${select} from ${call}`
  const parts = besides.map(
    ({ also }, at) => `also_${at} as materialized (${also(parametersOf(others[at] ?? NO_PLACES))})`,
  )
  // Reads what each of them answers, because what nobody reads may not be done.
  const done = besides.map((_, at) => ` cross join (select count(*) from also_${at}) done_${at}`)
  return `with result as materialized (select * from ${call} with ordinality),
      ${parts.join(',\n      ')}
    select ${select} from result${done.join('')} order by ordinality`
}

/** Where each argument stands in the statement, by its name: `$3::uuid[]`. */
type Places = ReadonlyMap<string, string>
const NO_PLACES: Places = new Map()

function placesOf(groups: readonly (readonly Argument[])[]): readonly Places[] {
  let before = 0
  return groups.map((group) => {
    const first = before + 1
    before += group.length
    return new Map(group.map(([name, type], at) => [name, `$${first + at}::${type}`]))
  })
}

function parametersOf(places: Places): Parameters {
  return {
    of(column) {
      const place = places.get(column)
      if (place === undefined) throw new Error(`there is no column ${column} beside the call`)
      return place
    },
    items: `unnest(${[...places.values()].join(', ')}) item (${[...places.keys()].join(', ')})`,
  }
}

/** A composite type of PostgreSQL, and how an item has its fields, in the order of the type. */
export type RecordType<T> = { readonly name: string; readonly fields: readonly Field<T>[] }

/** A value of a statement of its own: as PostgreSQL calls its type, and encoded. */
export type Parameter = readonly [name: string, type: string, value: PreparedValue]

export function arrayOf(name: string, type: ArrayType, values: readonly Value[]): Parameter {
  return [name, type, encodeArray(type, values)]
}

export function recordsOf<T>(name: string, type: RecordType<T>, items: readonly T[]): Parameter {
  return [name, `${type.name}[]`, encodeRecords(type.fields, items)]
}

/** A statement of its own, which names its parameters: they are always the same. */
export function createStatement(name: string, textWith: (of: (parameter: string) => string) => string) {
  let text: string | undefined
  return (parameters: readonly Parameter[]): Statement => {
    text ??= textWith(parametersOf(placesOf([parameters])[0] ?? NO_PLACES).of)
    return { name, text, values: parameters.map(([, , value]) => value) }
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

  /** None where there is no array. */
  texts(at: number): readonly string[] {
    return this.#items(at, (item) => typeof item === 'string')
  }

  /** An array of arrays of numbers. */
  tuples(at: number): readonly (readonly number[])[] {
    const isTuple = (item: unknown): item is readonly number[] =>
      Array.isArray(item) && item.every((one) => typeof one === 'number')
    return this.#items(at, isTuple)
  }

  #items<T>(at: number, isOne: (item: unknown) => item is T): readonly T[] {
    const value = this.#columns[at] ?? []
    if (Array.isArray(value) && value.every(isOne)) return value
    throw new Error(`column ${at} should be an array of one type`)
  }

  isNull(at: number): boolean {
    return this.#columns[at] === null
  }
}
