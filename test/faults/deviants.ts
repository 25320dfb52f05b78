import type { ProtocolName } from '../../server/src/protocols/protocol.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../../server/src/protocols/route-profile.ts'
import { OUTPUT_NANOS } from '../acceptance/deviants/bills.ts'
import { GROWING, VENDORS, type Vendor, vendorOf } from '../acceptance/deviants/vendors.ts'
import { ALL_PROTOCOLS } from '../acceptance/models/streams.ts'

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

/** Whose models are asked in the workload beside the sandbox's own. */
export const ON_SALE: readonly Vendor[] = [...DEVIANTS, GROWING]

export const modelOf = ({ name }: Vendor) => `${name}/chat`
export const GROWING_MODEL = modelOf(GROWING)
/** What one of its streams is begun with for its output, beside what its input needs. */
export const FIRST_SLICE = 1_024n * OUTPUT_NANOS

/** What the route by which a model is asked says of its vendor. */
export function profileOf(model: string, protocol: ProtocolName): RouteProfile {
  const named = ALL_PROTOCOLS.find((name) => name === protocol)
  return { ...PLAIN_PROFILE, ...(named && vendorOf(model)?.profiles[named]) }
}
