/** Time as the client knows it: a part, so that a test can replay hours in a moment. */
export type Clock = {
  readonly nowMs: () => number
  /** Calls back once, after so long; what it gives calls it off. */
  readonly setTimer: (afterMs: number, ring: () => void) => () => void
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  setTimer(afterMs, ring) {
    const timer = setTimeout(ring, afterMs)
    return () => clearTimeout(timer)
  },
}

/** Waits, unless the signal calls it off: then it throws the signal's reason. */
export function sleep(clock: Clock, forMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const leave = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimer(forMs, () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    })
    signal?.addEventListener('abort', leave, { once: true })
  })
}
