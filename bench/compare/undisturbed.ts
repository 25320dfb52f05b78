import type { LoadReport } from '../load/load.ts'
import { type Send, sound, type Window } from '../load/window.ts'

/** Above that, others have used the machine so much that the window says more about them. */
const OTHERS_CORES_MOST = 0.2

export type Bounds = {
  /** How often one window is repeated at the most, and all of a run together. */
  readonly perWindow: number
  readonly perRun: number
}

export type Counts = {
  readonly windows: number
  readonly repeated: number
  /** Those that count although others used the machine, because enough had been repeated. */
  readonly disturbed: number
}

/** Repeats windows in which others used the machine, within bounds, and counts them. */
export function createUndisturbed({ perWindow, perRun }: Bounds) {
  let windows = 0
  let repeated = 0
  let disturbed = 0
  return {
    counts: (): Counts => ({ windows, repeated, disturbed }),
    /** The first window that nobody disturbed, or else the one that was disturbed least. */
    async measure(send: Send, window: Window): Promise<LoadReport> {
      windows += 1
      let best = sound(await send(window))
      for (let tries = 0; isDisturbed(best) && tries < perWindow && repeated < perRun; tries += 1) {
        repeated += 1
        const again = sound(await send(window))
        if (again.othersCores < best.othersCores) best = again
      }
      if (isDisturbed(best)) disturbed += 1
      return best
    },
  }
}

export type Undisturbed = ReturnType<typeof createUndisturbed>

function isDisturbed({ othersCores }: LoadReport): boolean {
  return othersCores > OTHERS_CORES_MOST
}
