import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { ProtocolName } from '../../server/src/protocols/protocol.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../../server/src/protocols/route-profile.ts'
import { billedNanos } from '../acceptance/deviants/bills.ts'
import { VENDORS, type Vendor, vendorOf } from '../acceptance/deviants/vendors.ts'
import { isRightOf, lossMost } from '../acceptance/deviants/verdicts.ts'
import { ALL_PROTOCOLS } from '../acceptance/models/streams.ts'
import type { Evidence } from './evidence.ts'
import { chargedFor } from './invariants-of-money.ts'

/** Those that report what they count: what the others report is judged elsewhere. */
const NAMES: ReadonlySet<string> = new Set([
  'ignores-max-tokens',
  'ignores-max-completion-tokens',
  'ignores-limits',
  'folds-case',
  'reasoning-apart',
  'stops-on-abort',
  'keeps-running-on-abort',
])

/** Vendors that differ from what their protocols say; of most of them their routes know it. */
export const DEVIANTS: readonly Vendor[] = VENDORS.filter(({ name }) => NAMES.has(name))

export const modelOf = ({ name }: Vendor) => `${name}/chat`

/** What the route by which a model is asked says of its vendor. */
export function profileOf(model: string, protocol: ProtocolName): RouteProfile {
  const named = ALL_PROTOCOLS.find((name) => name === protocol)
  return { ...PLAIN_PROFILE, ...(named && vendorOf(model)?.profiles[named]) }
}

type Billed = {
  readonly id: string
  readonly entry: JournalEntry
  readonly held: bigint
  readonly bill: bigint
}

/** What vendors bill for conversations, whoever pays it: all that was asked of them for each call. */
function billsIn({ charges, askedById }: Evidence): readonly Billed[] {
  return [...charges.values()].flatMap(({ id, held }) => {
    const entries = (askedById.get(id) ?? []).filter((entry) => entry.bill !== null && isConversation(entry))
    const [entry] = entries
    return entry === undefined
      ? []
      : [{ id, held, entry, bill: entries.reduce((sum, one) => sum + billedNanos(one), 0n) }]
  })
}

function isConversation({ upstream, path }: JournalEntry): boolean {
  return ALL_PROTOCOLS.some((name) => name === upstream) && !/\/(embeddings|images\/generations)$/.test(path)
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

/** How calls of deviants went. A run that has none of one of these has not tried what it is for. */
export function callsOfDeviants(evidence: Evidence): Readonly<Record<string, number>> {
  const bills = billsIn(evidence).filter(({ entry }) => vendorOf(entry.model ?? '') !== undefined)
  return {
    'calls of vendors that deviate': bills.length,
    'calls that got more than their hold by an unknown deviance': bills.filter(({ bill, held }) => bill > held).length,
  }
}
