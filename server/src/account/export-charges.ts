import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { readAccountLife } from '../ledger/balance.ts'
import { BEGINNING, type Charge, pageOfCharges } from '../ledger/pages-of-account.ts'
import { CHARGES_KEPT_DAYS } from '../ledger/retention.ts'
import type { Export } from '../workspaces/exports.ts'
import { inPortions, type Portions } from './export-portions.ts'
import { toldCharge } from './export-told.ts'
import type { AccountParts } from './parts.ts'

/** The charges of an account in an export, window by window. */

type OfAccount = Pick<AccountParts, 'pool'> & {
  readonly mode: Mode
  readonly accountId: Id
  readonly export: Pick<Export, 'asOf' | 'asOfUs'>
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>
}

const DAY_US = 86_400_000_000n
/** Of charges and of usage: of so many days a statement opens no more than some partitions. */
const WINDOW_DAYS = 31n

export async function* charges(own: OfAccount): Portions {
  const { pool, accountId, mode, inTurn } = own
  for await (const { fromUs, untilUs } of windows(own)) {
    const first = { ...BEGINNING, us: fromUs }
    yield* inPortions<Charge>(
      ({ after = first, most }) => inTurn(() => pageOfCharges(pool, { accountId, after, untilUs, most })),
      (row) => toldCharge(row, mode),
    )
  }
}

/** From when there was an account, or from when charges are kept, up to the moment of the export. */
export async function* windows({ pool, accountId, inTurn, export: { asOf, asOfUs } }: OfAccount) {
  const { createdAtMs } = await inTurn(() => readAccountLife(pool, accountId))
  const asOfDay = asOf.getTime() - (asOf.getTime() % 86_400_000)
  const keptMs = asOfDay - (CHARGES_KEPT_DAYS - 8) * 86_400_000
  const firstMs = Math.max(createdAtMs - (createdAtMs % 86_400_000), keptMs)
  for (let fromUs = BigInt(firstMs) * 1_000n; fromUs <= asOfUs; fromUs += WINDOW_DAYS * DAY_US) {
    const nextUs = fromUs + WINDOW_DAYS * DAY_US
    yield { fromUs, untilUs: nextUs > asOfUs ? asOfUs : nextUs - 1n }
  }
}
