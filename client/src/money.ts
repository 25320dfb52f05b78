const FORM = /^(-?)(\d+)(?:\.(\d{1,9}))?$/
const PLACES = 9

/** An amount of US dollars, exact: as text with nine places, and in nano-dollars to reckon with. In JSON it is its text. */
export class Usd {
  readonly usd: string
  readonly nanos: bigint

  constructor(nanos: bigint) {
    const digits = (nanos < 0n ? -nanos : nanos).toString().padStart(PLACES + 1, '0')
    this.usd = `${nanos < 0n ? '-' : ''}${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`
    this.nanos = nanos
  }

  /** A bigint has no JSON, and whoever logs a result or an error must not fail for it. */
  toJSON(): string {
    return this.usd
  }
}

/** Reads an amount such as `0.001450000`; undefined where it is none. */
export function readUsd(text: string | null | undefined): Usd | undefined {
  const [, sign, whole, fraction = ''] = FORM.exec(text ?? '') ?? []
  if (whole === undefined) return undefined
  const nanos = BigInt(whole + fraction.padEnd(PLACES, '0'))
  return new Usd(sign === '-' ? -nanos : nanos)
}

/** What several calls cost together. What was not told (`null`) is left out, and is no zero. */
export function sumUsd(amounts: Iterable<Usd | null>): Usd {
  let sum = 0n
  for (const amount of amounts) sum += amount?.nanos ?? 0n
  return new Usd(sum)
}
