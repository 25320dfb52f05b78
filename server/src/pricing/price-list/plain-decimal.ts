import { decimal } from '../../kernel/rational.ts'

const NUMBER = /^(\d{1,40})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,3}))?$/

/**
 * A number as programs write it (`2.5e-06`), times a power of ten, as a plain decimal (`2.5`). Only its point moves: nothing is
 * reckoned, and so nothing is rounded. Throws a RangeError where it is no number of at least nothing, or has more digits than a
 * price can.
 */
export function plainDecimal(text: string, timesTenTo = 0): string {
  const match = NUMBER.exec(text)
  if (match === null) throw new RangeError(`not a number of at least 0: ${JSON.stringify(text.slice(0, 40))}`)
  const [, whole = '', fraction = '', exponent = '0'] = match
  const digits = whole + fraction
  const point = whole.length + Number(exponent) + timesTenTo
  const left = digits.slice(0, Math.max(0, point)).padEnd(Math.max(0, point), '0').replace(/^0+/, '') || '0'
  const zeros = Math.max(0, -point)
  const right = ('0'.repeat(zeros) + digits.slice(Math.max(0, point))).replace(/0+$/, '')
  const plain = right === '' ? left : `${left}.${right}`
  decimal(plain)
  return plain
}
