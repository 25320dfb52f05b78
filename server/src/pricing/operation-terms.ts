import { z } from 'zod'
import type { DataOperation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'
import type { UnitPrice } from '../kernel/money.ts'
import { multiply, type Rational, rational } from '../kernel/rational.ts'
import { OWN_VERSION, type Terms } from './terms.ts'
import { readable, timesIn, unitPriceIn } from './unit-prices.ts'

/** Which price a caller has: by agreement with its account, as operators set it, or as it is published. */

/** What can't be read is no price: neither nothing nor the published one may stand in for it. */
const UNREADABLE = 'unreadable' as const
type Unreadable = typeof UNREADABLE

/** What an operator has set for an operation. */
export type SetPrice = {
  readonly version: string
  readonly unitPrice: UnitPrice
  readonly providerCost: UnitPrice | null
}

/** What an account pays by agreement: USD for a unit of an operation, or how many times the price of a model. */
export type AccountPrices = ReadonlyMap<string, Rational | Unreadable>

/** What is known of an operation's price, beside what is published. */
export type KnownPrices = {
  readonly set: SetPrice | Unreadable | undefined
  readonly own: AccountPrices | undefined
}

type Priced = Pick<DataOperation, 'id' | 'isScaledByCustomerPlan'> & {
  readonly price: Pick<DataOperation['price'], 'unit' | 'unitPrice'>
}

/** The terms of a call that begins now. */
export function operationTerms(
  { id, price: { unit, unitPrice }, isScaledByCustomerPlan }: Priced,
  { priceMultiplier }: Pick<Caller, 'priceMultiplier'>,
  { set, own }: KnownPrices,
): Terms {
  const agreed = own?.get(id)
  if (set === UNREADABLE || agreed === UNREADABLE) throw unreadable(id)
  const published = set?.unitPrice ?? unitPrice
  const scaled = isScaledByCustomerPlan ? multiply(published, priceMultiplier) : published
  return {
    version: agreed === undefined ? (set?.version ?? '0') : OWN_VERSION,
    rates: [{ unit, price: agreed ?? scaled, published, providerCost: set?.providerCost ?? null }],
  }
}

const ONCE = rational(1n)

/** How many times the price of a model an account pays: once, unless something else was agreed. */
export function timesOf(own: AccountPrices | undefined, model: string): Rational {
  const agreed = own?.get(ownModel(model))
  if (agreed === UNREADABLE) throw unreadable(model)
  return agreed ?? ONCE
}

function unreadable(what: string): Fault {
  return new Fault('invalid_billing_configuration', { cause: new Error(`the price of ${what} can not be read`) })
}

/** Under which name an account's own price of a model stands beside those of operations. */
const OWN_MODEL = 'model:'
export const ownModel = (model: string) => OWN_MODEL + model
/** As long as a name may be there. */
const OWN_NAME_LIMIT = 64
export const OWN_MODEL_LIMIT = OWN_NAME_LIMIT - OWN_MODEL.length

/** The model of which it is an account's own price; undefined where that is of an operation. */
export function modelOf(name: string): string | undefined {
  return name.startsWith(OWN_MODEL) ? name.slice(OWN_MODEL.length) : undefined
}

const usdPrice = readable(unitPriceIn)
const times = readable(timesIn)

export const versionRow = z
  .object({ version: z.int(), unit_price: usdPrice, provider_cost: usdPrice.nullable() })
  .transform(
    (row): SetPrice => ({
      version: String(row.version),
      unitPrice: row.unit_price,
      providerCost: row.provider_cost,
    }),
  )

/** What a row says that an operator has set. */
export function setPriceIn(row: unknown): SetPrice | Unreadable {
  return versionRow.safeParse(row).data ?? UNREADABLE
}

const accountRows = z.array(z.object({ operation: z.string(), unit_price: z.unknown() }))

/** What the rows of an account say that was agreed. One that can't be read is told when it is asked for, and spoils no other. */
export function accountPricesIn(rows: unknown): AccountPrices {
  return new Map(
    accountRows.parse(rows).map(({ operation: name, unit_price: text }) => {
      const read = modelOf(name) === undefined ? usdPrice : times
      return [name, read.safeParse(text).data ?? UNREADABLE]
    }),
  )
}
