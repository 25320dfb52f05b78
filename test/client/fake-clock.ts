import type { Clock } from '../../client/src/clock.ts'

/** Time that passes when nobody has anything else to do: hours of waiting take a moment. */
export class FakeClock implements Clock {
  #nowMs = 0
  readonly #timers = new Set<{ readonly atMs: number; readonly ring: () => void }>()

  readonly nowMs = (): number => this.#nowMs

  readonly setTimer = (afterMs: number, ring: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + Math.max(0, afterMs), ring }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  readonly sleep = (forMs: number): Promise<void> => new Promise((resolve) => void this.setTimer(forMs, resolve))

  /** Lets time pass until the work is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const watched = work.finally(() => {
      isDone = true
    })
    watched.catch(() => {})
    for (;;) {
      // Everything that follows from what has happened comes first: all of it is done in turns of this kind.
      await new Promise((resolve) => setImmediate(resolve))
      if (isDone) return watched
      this.#ringNext()
    }
  }

  /** Lets pass what is still to come. */
  async toTheEnd(): Promise<void> {
    while (this.#timers.size > 0) {
      this.#ringNext()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #ringNext(): void {
    const [first] = [...this.#timers].toSorted((a, b) => a.atMs - b.atMs)
    if (first === undefined) throw new Error('nobody waits for anything, and the work is not done')
    this.#timers.delete(first)
    this.#nowMs = Math.max(this.#nowMs, first.atMs)
    first.ring()
  }
}
