/** What stands after the equals sign of a directive, if there is one. */
export type Value = string | undefined

/** Says what a directive takes, for the sentence that begins with its name. */
export class WrongValue extends Error {}

const TIME_LIMIT_MS = 600_000

export function nothing(value: Value): void {
  if (value !== undefined) throw new WrongValue('takes no value')
}

export function text(value: Value): string {
  if (!value || !/^[\x21-\x7e]+$/.test(value)) throw new WrongValue('takes a text in ASCII')
  return value
}

export function wholeNumber(least: number, most: number): (value: Value) => number {
  return (value) => {
    const number = Number(value)
    if (!value || !/^-?\d+$/.test(value) || number < least || number > most)
      throw new WrongValue(`takes a whole number from ${least} to ${most}`)
    return number
  }
}

export function anyCount(value: Value): number {
  return wholeNumber(0, Number.MAX_SAFE_INTEGER)(value)
}

/** Such as `web_search:2+file_search:1`. */
export function countsByName(value: Value): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const one of (value ?? '').split('+')) {
    const [, name, count] = /^([a-z_]{1,40}):(\d{1,6})$/.exec(one) ?? []
    if (name === undefined) throw new WrongValue('takes names with counts, such as web_search:2+file_search:1')
    counts[name] = Number(count)
  }
  return counts
}

export function milliseconds(value: Value): number {
  return wholeNumber(0, TIME_LIMIT_MS)(value)
}

/** With places after the point if need be. */
export function decimal(least: number, most: number): (value: Value) => number {
  return (value) => {
    const number = Number(value)
    if (!value || !/^-?\d+(\.\d+)?$/.test(value) || number < least || number > most)
      throw new WrongValue(`takes a number from ${least} to ${most}`)
    return number
  }
}

export function oneOf<const Word extends string>(...words: readonly Word[]): (value: Value) => Word {
  return (value) => {
    const word = words.find((one) => one === value)
    if (word === undefined) throw new WrongValue(`takes ${words.join(' or ')}`)
    return word
  }
}

export function optional<T>(otherwise: T, read: (value: Value) => T): (value: Value) => T {
  return (value) => (value === undefined ? otherwise : read(value))
}
