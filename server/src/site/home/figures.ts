/** A figure that a proof holds: test/site/site.test.ts compares each with its file. */
export type Figure = {
  readonly figure: string
  readonly what: string
  /** `docs/proof/<proof>.json`. */
  readonly proof: string
  /** When it was recorded, in UTC; since then it may have been again, with the same figure. */
  readonly on: string
  /** Where the file has it, and what stands there. */
  readonly at: readonly string[]
  readonly value: number
}

export const FIGURES: readonly Figure[] = [
  {
    figure: '100',
    what: 'processes killed in the midst of calls: every call that a caller saw complete was charged, once',
    proof: 'ledger-death',
    on: '2026-11-16',
    at: ['processes killed', 'kills'],
    value: 100,
  },
  {
    figure: '10,000',
    what: 'calls for which the header, the report, the record and the ledger say the same cost',
    proof: 'every-cost',
    on: '2026-11-15',
    at: ['header, report, record and ledger agree', 'calls'],
    value: 10_000,
  },
  {
    figure: '3,000',
    what: 'streams, most of them cut by their callers: nothing was left held',
    proof: 'stream-cuts',
    on: '2026-11-16',
    at: ['what is left afterwards', 'holds'],
    value: 0,
  },
  {
    figure: '100,000',
    what: 'random prices and counts, rounded once, to the nearest nano-dollar: no counterexample',
    proof: 'money',
    on: '2026-11-15',
    at: ['rounds a charge to the nearest nano, and a tie to the even one', 'cases'],
    value: 100_000,
  },
]
