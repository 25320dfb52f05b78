import { type Id, idTimeMs } from '../kernel/ids.ts'

/**
 * PostgreSQL array literals, written by hand: the client's own encoding of arrays was most of what a batch cost the
 * gateway. Ids and numbers need no quoting; text does.
 */
export function literal(values: readonly (string | number | bigint | boolean | null)[]): string {
  let text = '{'
  for (let at = 0; at < values.length; at += 1) {
    if (at > 0) text += ','
    const value = values[at]
    text += value === null || value === undefined ? 'NULL' : value
  }
  return `${text}}`
}

export function textLiteral(values: readonly (string | null)[]): string {
  let text = '{'
  for (let at = 0; at < values.length; at += 1) {
    if (at > 0) text += ','
    const value = values[at]
    text += value === null || value === undefined ? 'NULL' : quoted(value)
  }
  return `${text}}`
}

export function bytesLiteral(values: readonly (Buffer | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : `"\\\\x${value.toString('hex')}"`)).join(',')}}`
}

const PLAIN = /^[A-Za-z0-9_.:/+-]+$/

function quoted(value: string): string {
  if (PLAIN.test(value) && value.length !== 4) return value
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}

/** The UTC days that the ids carry, each once: a charge is kept under the day of its id. */
export function daysOf(items: readonly { readonly id: Id }[]): string {
  const days = new Set(items.map(({ id }) => Math.floor(idTimeMs(id) / DAY_MS)))
  return literal([...days].map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10)))
}

const DAY_MS = 86_400_000

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
