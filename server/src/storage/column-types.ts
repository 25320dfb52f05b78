import pg from 'pg'

const INT8 = 20
const INT8_ARRAY = 1016
const DATE = 1082
const NUMERIC_ARRAY = 1231
// Typed as a number, because the names that pg-types knows leave out every array.
const TEXT_ARRAY: number = 1009
const XID8 = 5069

/**
 * How columns become values. Amounts are bigint, and pg would make text of a bigint and floating-point numbers of a
 * numeric[]; here no column of an exact type ever passes through a number. JSON is parsed by JavaScript's own rules, so
 * an amount inside JSON has to be text.
 */
export function createColumnTypes(): pg.TypeOverrides {
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, 'text', BigInt)
  types.setTypeParser(XID8, 'text', BigInt)
  types.setTypeParser(INT8_ARRAY, 'text', (text) => mapNested(parseTextArray(text), BigInt))
  types.setTypeParser(NUMERIC_ARRAY, 'text', parseTextArray)
  // A calendar day has no time zone; a Date would give it the process's.
  types.setTypeParser(DATE, 'text', (text) => text)
  return types
}

type Nested<T> = readonly (T | null | Nested<T>)[]

function parseTextArray(text: string): Nested<string> {
  return pg.types.getTypeParser(TEXT_ARRAY, 'text')(text)
}

function mapNested<T, U>(values: Nested<T>, change: (value: T) => U): Nested<U> {
  return values.map((value) => {
    if (value === null) return null
    return isNested(value) ? mapNested(value, change) : change(value)
  })
}

function isNested<T>(value: T | Nested<T>): value is Nested<T> {
  return Array.isArray(value)
}
