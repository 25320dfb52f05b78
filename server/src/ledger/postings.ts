import { type Nanos, nanos, ZERO } from '../kernel/money.ts'
import type { EndedRequest, LedgerLine } from './requests.ts'

/** Where money stands: what can be spent, what is set aside for calls, and what calls were charged. */
export const PLACES = ['available', 'held', 'charged'] as const
export type Place = (typeof PLACES)[number]

/** Money that went from one place to another, as a line of double entry: what leaves is the debit. */
export type Posting = {
  readonly at: Date
  /** hold, charge, release; or the kind of a correction. */
  readonly entry: string
  readonly debit: Place
  readonly credit: Place
  readonly amount: Nanos
}

type Ended = Pick<EndedRequest, 'held' | 'amount' | 'begun_at' | 'ended_at'>

/** What a call that has ended did to its account. The hold is told as it was at the end: one that grew while the call ran is one line. */
export function postingsOf(call: Ended, corrections: readonly LedgerLine[]): readonly Posting[] {
  const { held, amount, begun_at: begunAt, ended_at: at } = call
  const lines: readonly Posting[] = [
    holdOf(held, begunAt ?? at),
    { at, entry: 'charge', debit: 'held', credit: 'charged', amount },
    { at, entry: 'release', debit: 'held', credit: 'available', amount: nanos(held - amount) },
    ...corrections.map(correction),
  ]
  return lines.filter((line) => line.amount > ZERO)
}

/** Of one that runs: what is set aside for it. */
export function holdOf(amount: Nanos, at: Date): Posting {
  return { at, entry: 'hold', debit: 'available', credit: 'held', amount }
}

function correction({ kind, charged, entered_at: at }: LedgerLine): Posting {
  return charged < ZERO
    ? { at, entry: kind, debit: 'charged', credit: 'available', amount: nanos(-charged) }
    : { at, entry: kind, debit: 'available', credit: 'charged', amount: charged }
}
