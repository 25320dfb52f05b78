import { formatUsd, nanos } from '../kernel/money.ts'
import { decimalText, type Rational } from '../kernel/rational.ts'

/**
 * A result for programs: names in snake_case, amounts in USD under names that end with `_usd`, times as ISO 8601, multipliers as decimals.
 * What is in a map is data, and stays as it is. A list is one object per line.
 */
export function resultAsJson(result: object): readonly string[] {
  const all: readonly unknown[] = Array.isArray(result) ? result : [result]
  return all.map((one) => JSON.stringify(jsonOf(one)))
}

function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return formatUsd(nanos(value))
  if (Array.isArray(value)) return value.map(jsonOf)
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return value
  if (value instanceof Map) return Object.fromEntries(value)
  if (isRational(value)) return decimalText(value)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [nameOf(name, one), jsonOf(one)]))
}

function isRational(value: object): value is Rational {
  return 'numerator' in value && 'denominator' in value
}

/** Names that are data, such as `1024x1024/high` or `720P`, stay as they are. */
function nameOf(name: string, value: unknown): string {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name)) return name
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return typeof value === 'bigint' && !snake.endsWith('_usd') ? `${snake}_usd` : snake
}
