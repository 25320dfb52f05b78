import type { Export } from '../identity/exports.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { readAccountLife } from '../ledger/balance.ts'
import {
  BEGINNING,
  type Charge,
  credentialsOf,
  findIndexedFrom,
  isBeforeIndex,
  pageOfCharges,
  pageOfChargesByKey,
} from '../ledger/pages-of-account.ts'
import { CHARGES_KEPT_DAYS } from '../ledger/retention.ts'
import { inPortions, type Portions } from './export-portions.ts'
import { toldCharge } from './export-told.ts'
import type { AccountParts } from './parts.ts'

/** The charges of an account in an export, window by window: by account where days have an index for it, by key where they are older. */

type OfAccount = Pick<AccountParts, 'pool'> & {
  readonly mode: Mode
  readonly accountId: Id
  readonly export: Pick<Export, 'asOf' | 'asOfUs'>
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>
}

const DAY_US = 86_400_000_000n
/** Of charges and of usage: of so many days a statement opens no more than some partitions. */
const WINDOW_DAYS = 31n
/** Keys that one statement looks up, where charges are read by key. */
const KEYS_AT_ONCE = 200

export async function* charges(own: OfAccount): Portions {
  const { pool, accountId, mode, inTurn } = own
  const indexedFromUs = await inTurn(() => findIndexedFrom(pool))
  for await (const { fromUs, untilUs } of windows(own)) {
    if (isBeforeIndex(fromUs, indexedFromUs)) yield* chargesByKey(own, { fromUs, untilUs, indexedFromUs })
    const first = { ...BEGINNING, us: fromUs }
    yield* inPortions<Charge>(
      ({ after = first, most }) =>
        inTurn(() => pageOfCharges(pool, { accountId, after, untilUs, most }, indexedFromUs)),
      (row) => toldCharge(row, mode),
    )
  }
}

type BeforeIndex = { readonly fromUs: bigint; readonly untilUs: bigint; readonly indexedFromUs: bigint }

async function* chargesByKey({ pool, accountId, mode, inTurn }: OfAccount, window: BeforeIndex): Portions {
  let last: Id | undefined
  for (;;) {
    const behind = last
    const some = await inTurn(() => credentialsOf(pool, { accountId, after: behind, most: KEYS_AT_ONCE }))
    yield* inPortions<Charge>(
      ({ after, most }) => inTurn(() => pageOfChargesByKey(pool, { ...window, keys: some, after, most })),
      (row) => toldCharge(row, mode),
    )
    if (some.length < KEYS_AT_ONCE) return
    last = some.at(-1)
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
