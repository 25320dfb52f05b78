import { type Id, idTimeMs } from '../kernel/ids.ts'

/**
 * PostgreSQL arrays in the form in which it sends them itself. Texts would have to be written and quoted here and read and
 * unquoted there, for each value of each call: that was most of what a batch cost the gateway.
 */
export type ArrayType = 'uuid[]' | 'text[]' | 'integer[]' | 'bigint[]' | 'boolean[]' | 'date[]' | 'float8[]' | 'bytea[]'
export type Value = string | number | bigint | boolean | Buffer | null

/** The object id of a type, which is fixed, and how many bytes a value of it has; -1 where that differs. */
const ELEMENTS: Readonly<Record<ArrayType, { readonly oid: number; readonly bytes: number }>> = {
  'uuid[]': { oid: 2950, bytes: 16 },
  'text[]': { oid: 25, bytes: -1 },
  'integer[]': { oid: 23, bytes: 4 },
  'bigint[]': { oid: 20, bytes: 8 },
  'boolean[]': { oid: 16, bytes: 1 },
  'date[]': { oid: 1082, bytes: 4 },
  'float8[]': { oid: 701, bytes: 8 },
  'bytea[]': { oid: 17, bytes: -1 },
}

const EMPTY_HEADER_BYTES = 12
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const COUNT_BYTES = 4
const OID_BYTES = 4
const BLOCK_BYTES = 65_536

/** Arrays are written one behind the other into blocks: a batch has dozens, and each in memory of its own costs more than to write it. */
let block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
let view = viewOf(block)
let used = 0

export function encodeArray(type: ArrayType, values: readonly Value[]): Buffer {
  const { oid, bytes } = ELEMENTS[type]
  makeRoom(HEADER_BYTES + mostBytes(values, bytes))
  const start = used
  const dimensions = values.length === 0 ? 0 : 1
  view.setInt32(start, dimensions)
  view.setInt32(start + 8, oid)
  let at = start + EMPTY_HEADER_BYTES
  let hasNull = 0
  if (dimensions === 1) {
    view.setInt32(start + 12, values.length)
    // The number of the first one.
    view.setInt32(start + 16, 1)
    at = start + HEADER_BYTES
    for (const value of values) {
      if (value === null) hasNull = 1
      const written = value === null ? -1 : writeValue(type, at + LENGTH_BYTES, value)
      view.setInt32(at, written)
      at += LENGTH_BYTES + (written === -1 ? 0 : written)
    }
  }
  view.setInt32(start + 4, hasNull)
  used = at
  return block.subarray(start, at)
}

/** A field of a composite type of PostgreSQL, and how an item has it. */
export type Field<T> = readonly [name: string, type: ArrayType, of: (item: T) => Value]

/** What PostgreSQL calls a row of whatever type: it takes that of the argument. */
const RECORD_OID = 2249

/** An array of a composite type, whose fields are written in the order in which the type has them. One such array is a fraction of the work that an array for each field is. */
export function encodeRecords<T>(fields: readonly Field<T>[], items: readonly T[]): Buffer {
  const rows = items.map((item) => fields.map(([, , of]) => of(item)))
  makeRoom(mostBytesOfRecords(fields, rows))
  const start = used
  view.setInt32(start, rows.length === 0 ? 0 : 1)
  view.setInt32(start + 4, 0)
  view.setInt32(start + 8, RECORD_OID)
  let at = start + EMPTY_HEADER_BYTES
  if (rows.length > 0) {
    view.setInt32(start + 12, rows.length)
    view.setInt32(start + 16, 1)
    at = start + HEADER_BYTES
    for (const row of rows) {
      const end = writeRecord(at + LENGTH_BYTES, fields, row)
      view.setInt32(at, end - at - LENGTH_BYTES)
      at = end
    }
  }
  used = at
  return block.subarray(start, at)
}

function writeRecord(start: number, fields: readonly Field<never>[], row: readonly Value[]): number {
  view.setInt32(start, fields.length)
  let at = start + COUNT_BYTES
  let index = 0
  for (const [, type] of fields) {
    const value = row[index] ?? null
    const written = value === null ? -1 : writeValue(type, at + OID_BYTES + LENGTH_BYTES, value)
    view.setInt32(at, ELEMENTS[type].oid)
    view.setInt32(at + OID_BYTES, written)
    at += OID_BYTES + LENGTH_BYTES + (written === -1 ? 0 : written)
    index += 1
  }
  return at
}

function mostBytesOfRecords(fields: readonly Field<never>[], rows: readonly (readonly Value[])[]): number {
  let fixed = LENGTH_BYTES + COUNT_BYTES
  for (const [, type] of fields) fixed += OID_BYTES + Math.max(0, ELEMENTS[type].bytes)
  let most = HEADER_BYTES + rows.length * fixed
  for (const row of rows) most += mostBytes(row, -1)
  return most
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

/** A block that is full is kept by those who have a part of it. */
function makeRoom(bytes: number): void {
  if (used + bytes <= block.length) return
  block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes))
  view = viewOf(block)
  used = 0
}

/** A unit of a text takes three bytes at the most. */
function mostBytes(values: readonly Value[], bytes: number): number {
  if (bytes !== -1) return values.length * (LENGTH_BYTES + bytes)
  let most = values.length * LENGTH_BYTES
  for (const value of values) {
    if (typeof value === 'string') most += 3 * value.length
    else if (Buffer.isBuffer(value)) most += value.length
  }
  return most
}

/** How many bytes it has. What is not of the type is a defect, and fails the batch before anything is sent. */
function writeValue(type: ArrayType, at: number, value: Exclude<Value, null>): number {
  switch (type) {
    case 'uuid[]':
      return writeId(at, value)
    case 'text[]':
      return writeText(at, value)
    case 'bytea[]':
      return bytesOf(value).copy(block, at)
    case 'float8[]':
      view.setFloat64(at, Number(value))
      return 8
    case 'boolean[]':
      view.setUint8(at, value === true ? 1 : 0)
      return 1
    case 'bigint[]':
      return writeBigInt(at, value)
    default:
      view.setInt32(at, whole(value, 2 ** 31))
      return 4
  }
}

function bytesOf(value: Value): Buffer {
  if (Buffer.isBuffer(value)) return value
  throw new RangeError('a column of bytes has something else in it')
}

function whole(value: Value, limit: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value < limit && value >= -limit) return value
  throw new RangeError('a column of whole numbers has something else in it, or one that is too large')
}

const BIGINT_LIMIT = 2n ** 63n

function writeBigInt(at: number, value: Value): number {
  if (typeof value === 'bigint') {
    if (value >= BIGINT_LIMIT || value < -BIGINT_LIMIT) throw new RangeError('a number is too large for its column')
    view.setBigInt64(at, value)
    return 8
  }
  const number = whole(value, 2 ** 53)
  view.setInt32(at, Math.floor(number / 2 ** 32))
  view.setUint32(at + 4, number >>> 0)
  return 8
}

const SHORT_TEXT = 40
const ASCII_END = 0x80

/** Most texts are short names, for which a loop takes less than to ask for it. */
function writeText(start: number, value: Value): number {
  if (typeof value !== 'string') throw new RangeError('a column of texts has something else in it')
  if (value.length > SHORT_TEXT) return block.write(value, start)
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at)
    if (code >= ASCII_END) return block.write(value, start)
    block[start + at] = code
  }
  return value.length
}

const ID_LENGTH = 36
const DASH = 0x2d
const NO_DIGIT = 0x100
/** What each character of ASCII is as a hexadecimal digit. */
const DIGITS = Uint16Array.from({ length: ASCII_END }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(digit) ? NO_DIGIT : digit
})

function writeId(start: number, id: Value): number {
  if (typeof id !== 'string' || id.length !== ID_LENGTH) throw notAnId()
  let at = start
  for (let from = 0; from < ID_LENGTH; from += 2) {
    let high = id.charCodeAt(from)
    if (high === DASH) {
      from += 1
      high = id.charCodeAt(from)
    }
    const byte = ((DIGITS[high] ?? NO_DIGIT) << 4) | (DIGITS[id.charCodeAt(from + 1)] ?? NO_DIGIT)
    if (byte > 0xff) throw notAnId()
    block[at] = byte
    at += 1
  }
  if (at !== start + 16) throw notAnId()
  return 16
}

function notAnId(): RangeError {
  return new RangeError('a column of ids has something else in it')
}

/** An array as text, for one that stands as a value in a column itself. */
export function arrayText(values: readonly string[]): string {
  let text = '{'
  for (const value of values) text += `${text === '{' ? '' : ','}"${value.replace(/["\\]/g, '\\$&')}"`
  return `${text}}`
}

/** Items by what they belong to, in the order of its ids, in which everybody locks. */
export function groupBy<T>(items: readonly T[], idOf: (item: T) => Id): readonly (readonly [T, ...T[]])[] {
  const byId = new Map<Id, [T, ...T[]]>()
  for (const item of items) {
    const id = idOf(item)
    const own = byId.get(id)
    if (own === undefined) byId.set(id, [item])
    else own.push(item)
  }
  const entries = byId.size === 1 ? [...byId] : [...byId].sort(([one], [other]) => (one < other ? -1 : 1))
  return entries.map(([, own]) => own)
}

/** The UTC days that the ids carry, each once, counted from 2000 as PostgreSQL does: a charge is kept under the day of its id. */
export function daysOf(items: readonly { readonly id: Id }[]): readonly number[] {
  const days = new Set(items.map(({ id }) => Math.floor(idTimeMs(id) / DAY_MS)))
  return [...days].map((day) => day - DAYS_TO_2000)
}

const DAY_MS = 86_400_000
const DAYS_TO_2000 = Date.UTC(2000, 0, 1) / DAY_MS

/** Gives every distinct thing of a batch a position, counted from 1 as PostgreSQL does. */
export class Positions<T> {
  readonly values: T[] = []
  readonly #places = new Map<string | number, number>()

  of(key: string | number, value: T): number {
    const known = this.#places.get(key)
    if (known !== undefined) return known
    this.values.push(value)
    this.#places.set(key, this.values.length)
    return this.values.length
  }
}
