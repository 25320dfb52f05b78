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

export function encodeArray(type: ArrayType, values: readonly Value[]): Buffer {
  const { oid, bytes } = ELEMENTS[type]
  const buffer = Buffer.allocUnsafe(values.length === 0 ? EMPTY_HEADER_BYTES : sizeOf(values, bytes))
  const dimensions = values.length === 0 ? 0 : 1
  buffer.writeInt32BE(dimensions, 0)
  buffer.writeInt32BE(values.includes(null) ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  if (dimensions === 0) return buffer
  buffer.writeInt32BE(values.length, 12)
  // The number of the first one.
  buffer.writeInt32BE(1, 16)
  let at = HEADER_BYTES
  for (const value of values) {
    const written = value === null ? -1 : writeValue(type, buffer, at + LENGTH_BYTES, value)
    buffer.writeInt32BE(written, at)
    at += LENGTH_BYTES + Math.max(0, written)
  }
  return at === buffer.length ? buffer : buffer.subarray(0, at)
}

function sizeOf(values: readonly Value[], bytes: number): number {
  let size = HEADER_BYTES + values.length * (LENGTH_BYTES + Math.max(0, bytes))
  if (bytes === -1)
    for (const value of values)
      if (value !== null) size += Buffer.isBuffer(value) ? value.length : Buffer.byteLength(String(value))
  return size
}

/** How many bytes it has. What is not of the type is a defect, and fails the batch before anything is sent. */
function writeValue(type: ArrayType, buffer: Buffer, at: number, value: Exclude<Value, null>): number {
  switch (type) {
    case 'uuid[]':
      return writeId(buffer, at, String(value))
    case 'text[]':
      return buffer.write(String(value), at)
    case 'bytea[]':
      return bytesOf(value).copy(buffer, at)
    case 'float8[]':
      return buffer.writeDoubleBE(Number(value), at) - at
    case 'boolean[]':
      return buffer.writeUInt8(value === true ? 1 : 0, at) - at
    case 'bigint[]':
      return writeBigInt(buffer, at, value)
    default:
      return buffer.writeInt32BE(whole(value), at) - at
  }
}

function bytesOf(value: Value): Buffer {
  if (Buffer.isBuffer(value)) return value
  throw new RangeError('a column of bytes has something else in it')
}

function whole(value: Value): number {
  if (Number.isSafeInteger(value)) return Number(value)
  throw new RangeError('a column of whole numbers has something else in it')
}

function writeBigInt(buffer: Buffer, at: number, value: Value): number {
  if (typeof value === 'bigint') return buffer.writeBigInt64BE(value, at) - at
  const number = whole(value)
  buffer.writeInt32BE(Math.floor(number / 2 ** 32), at)
  return buffer.writeUInt32BE(number >>> 0, at + 4) - at
}

const ID_LENGTH = 36
const DASH = 0x2d

function writeId(buffer: Buffer, start: number, id: Id): number {
  if (id.length !== ID_LENGTH) throw notAnId()
  let at = start
  for (let from = 0; from < ID_LENGTH; ) {
    if (id.charCodeAt(from) === DASH) {
      from += 1
      continue
    }
    buffer[at] = (nibble(id.charCodeAt(from)) << 4) | nibble(id.charCodeAt(from + 1))
    at += 1
    from += 2
  }
  if (at !== start + 16) throw notAnId()
  return 16
}

function nibble(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  if (letter >= 0x61 && letter <= 0x66) return letter - 0x57
  throw notAnId()
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
  readonly #places = new Map<string, number>()

  of(key: string, value: T): number {
    const known = this.#places.get(key)
    if (known !== undefined) return known
    this.values.push(value)
    this.#places.set(key, this.values.length)
    return this.values.length
  }
}
