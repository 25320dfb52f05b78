import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { billedNanos } from '../acceptance/deviants/bills.ts'
import { isRightOf, lossMost } from '../acceptance/deviants/verdicts.ts'
import { protocolOf } from '../acceptance/models/streams.ts'
import type { Evidence } from './evidence.ts'
import { chargedFor } from './invariants-of-money.ts'

type Billed = {
  readonly id: string
  readonly entry: JournalEntry
  readonly held: bigint
  readonly bill: bigint
}

/** What vendors bill for conversations, whoever pays it: all that was asked of them for each call. */
export function billsIn({ charges, askedById }: Evidence): readonly Billed[] {
  return [...charges.values()].flatMap(({ id, held }) => {
    const entries = (askedById.get(id) ?? []).filter((entry) => entry.bill !== null && protocolOf(entry) !== undefined)
    const [entry] = entries
    return entry === undefined
      ? []
      : [{ id, held, entry, bill: entries.reduce((sum, one) => sum + billedNanos(one), 0n) }]
  })
}

/** No call gets more than its hold buys from a vendor whose route says what it is like. */
export function holdsAreEnough(evidence: Evidence): string[] {
  return billsIn(evidence)
    .filter(({ entry, bill, held }) => isRightOf(entry) && bill > held)
    .map(({ id, entry, bill, held }) => `${id} of ${entry.model} got ${bill} for a hold of ${held}`)
}

/** Whatever a vendor does that nobody has declared, one call loses no more than one call can. */
export function lossesAreBounded(evidence: Evidence): string[] {
  const chargeOf = chargedFor(evidence)
  return billsIn(evidence).flatMap(({ id, entry, bill, held }) => {
    const [loss, most] = [bill - chargeOf(id), lossMost(held, entry, 1)]
    return loss > most ? [`${id} of ${entry.model} lost ${loss}, which is beyond ${most}`] : []
  })
}
