export type Page<T> = {
  readonly items: readonly T[]
  /** What to ask for after these. */
  readonly next: number
  /** How many from the number asked for on had fallen out already. */
  readonly lost: number
}

export const PAGE_LIMIT = 5000

/** The newest of what came, each with a number. Numbers go on when it is emptied. */
export class Ring<T> {
  readonly #limit: number
  #items: T[] = []
  #first = 0
  #next = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The number of what is added next. */
  get next(): number {
    return this.#next
  }

  add(item: T): void {
    this.#items[this.#next % this.#limit] = item
    this.#next += 1
    if (this.#next - this.#first > this.#limit) this.#first += 1
  }

  read(since: number): Page<T> {
    const from = Math.min(Math.max(since, this.#first), this.#next)
    const next = Math.min(from + PAGE_LIMIT, this.#next)
    const items: T[] = []
    for (let at = from; at < next; at += 1) {
      const item = this.#items[at % this.#limit]
      if (item !== undefined) items.push(item)
    }
    return { items, next, lost: Math.max(0, this.#first - since) }
  }

  empty(): void {
    this.#items = []
    this.#first = this.#next
  }
}
