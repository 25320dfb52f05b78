/** Lets so many through at once; the others wait, in the order in which they came. */
export type Gate = {
  readonly pass: <T>(work: () => Promise<T>) => Promise<T>
  readonly waits: () => number
  readonly isEmpty: () => boolean
  readonly isFull: () => boolean
}

export function createGate(limit: number): Gate {
  let running = 0
  const queue: (() => void)[] = []
  return {
    waits: () => queue.length,
    isEmpty: () => running === 0,
    isFull: () => running >= limit,
    async pass(work) {
      // Who leaves hands its place on to the next, so that nobody overtakes those who wait.
      if (running >= limit) await new Promise<void>((resolve) => queue.push(resolve))
      else running += 1
      try {
        return await work()
      } finally {
        const next = queue.shift()
        if (next === undefined) running -= 1
        else next()
      }
    },
  }
}
