import { inspect } from 'node:util'

const REDACTED = '[redacted]'

/**
 * A value that must not be printed. Every way in which JavaScript turns a value into text gives `[redacted]`; only
 * `reveal()`, which is easy to search for, gives the secret.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    if (value === '') throw new RangeError('a secret must not be empty')
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  toLocaleString(): string {
    return REDACTED
  }

  valueOf(): string {
    return REDACTED
  }

  [Symbol.toPrimitive](): string {
    return REDACTED
  }

  get [Symbol.toStringTag](): string {
    return REDACTED
  }

  [inspect.custom](): string {
    return REDACTED
  }
}
