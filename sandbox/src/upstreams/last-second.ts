const SECOND_MS = 1000
const SPARE = 1024

/** How often something came in the last second, whenever that second begins. */
export class LastSecond {
  #timesMs: number[] = []
  #first = 0

  /** Adds one; how many there are with it. */
  add(nowMs: number): number {
    this.#timesMs.push(nowMs)
    return this.count(nowMs)
  }

  count(nowMs: number): number {
    while ((this.#timesMs[this.#first] ?? nowMs) <= nowMs - SECOND_MS) this.#first += 1
    if (this.#first > SPARE && this.#first * 2 > this.#timesMs.length) {
      this.#timesMs = this.#timesMs.slice(this.#first)
      this.#first = 0
    }
    return this.#timesMs.length - this.#first
  }
}
