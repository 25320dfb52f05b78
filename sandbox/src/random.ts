/** How much of a long text counts towards its hash, so that a request of megabytes stays cheap. Its length counts too. */
const HASHED_CHARACTERS = 4096

/** A 32-bit hash of the seed and some texts (FNV-1a, then mixed). The same texts always give the same number. */
export function hashOf(seed: number, ...texts: readonly string[]): number {
  let hash = 0x811c9dc5 ^ seed
  for (const text of texts) {
    const end = Math.min(text.length, HASHED_CHARACTERS)
    for (let at = 0; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
    // The length also tells ['ab', 'c'] from ['a', 'bc'].
    hash = Math.imul(hash ^ text.length ^ 0x5bd1e995, 0x01000193)
  }
  return mixed(hash)
}

/** A small generator (mulberry32): everything that the sandbox makes up comes from one of these. */
export class Random {
  #state: number

  constructor(state: number) {
    this.#state = state
  }

  /** At least 0, less than 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    return mixed(this.#state) / 0x1_0000_0000
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  /** A number with so many places after the point. */
  decimal(least: number, most: number, places: number): number {
    return Number((least + this.fraction() * (most - least)).toFixed(places))
  }

  chance(likelihood: number): boolean {
    return this.fraction() < likelihood
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.between(0, from.length - 1)] ?? from[0]
  }

  /** So many decimal digits, the first not zero. */
  digits(count: number): string {
    let text = ''
    while (text.length < count) text += this.between(100_000_000, 999_999_999)
    return text.slice(0, count)
  }

  hex(count: number): string {
    let text = ''
    while (text.length < count) text += mixed(this.between(0, 0xffff_ffff)).toString(16).padStart(8, '0')
    return text.slice(0, count)
  }
}

function mixed(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
