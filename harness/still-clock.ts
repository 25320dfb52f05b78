import { setImmediate as turn } from 'node:timers/promises'

/** A clock that moves when the test says so. */
export function createStillClock() {
  let nowMs = 0
  const sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>()
  return {
    monotonicMs: () => nowMs,
    sleep: (durationMs: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const sleeper = { atMs: nowMs + durationMs, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => sleepers.delete(sleeper) && reject(signal.reason))
      }),
    async pass(durationMs: number): Promise<void> {
      const untilMs = nowMs + durationMs
      for (;;) {
        const [next] = [...sleepers].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)
        if (next === undefined) break
        nowMs = next.atMs
        sleepers.delete(next)
        next.wake()
        await turn()
      }
      nowMs = untilMs
      await turn()
    },
  }
}
