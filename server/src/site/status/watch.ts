import type { Clock } from '../../kernel/clock.ts'
import { createJob, type Job } from '../../telemetry/job.ts'
import type { Log } from '../../telemetry/log.ts'

/** A time in which the ledger did not answer this process. */
export type Trouble = { readonly fromMs: number; readonly untilMs: number | null }

export type Watch = {
  /** When this process began to look. */
  readonly sinceMs: number
  /** The newest first. */
  readonly troubles: () => readonly Trouble[]
  readonly look: () => void
  readonly job: Job
}

type Parts = {
  readonly clock: Clock
  readonly log: Log
  readonly isLedgerThere: () => boolean
}

const LOOK_MS = 1_000
/** Older ones are forgotten: this is what one process has seen, and no archive. */
const MOST_TROUBLES = 20

/** Remembers what a process has seen of the ledger since it began. */
export function createWatch({ clock, log, isLedgerThere }: Parts): Watch {
  let troubles: readonly Trouble[] = []

  function look(): void {
    const [newest, ...older] = troubles
    const isInTrouble = newest !== undefined && newest.untilMs === null
    if (isLedgerThere() !== isInTrouble) return
    troubles = isInTrouble
      ? [{ ...newest, untilMs: clock.nowMs() }, ...older]
      : [{ fromMs: clock.nowMs(), untilMs: null }, ...troubles].slice(0, MOST_TROUBLES)
  }

  return {
    sinceMs: clock.nowMs(),
    troubles: () => troubles,
    look,
    job: createJob({ name: 'status', everyMs: LOOK_MS, work: async () => look(), clock, log }),
  }
}
