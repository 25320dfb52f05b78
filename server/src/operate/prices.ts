import { z } from 'zod'
import { catalogue } from '../catalogue/catalogue.ts'
import { type DataOperation, isSoldByUnit } from '../catalogue/operation.ts'
import type { UnitPrice } from '../kernel/money.ts'
import { decimalText } from '../kernel/rational.ts'
import { isBelowCost, marginText } from '../pricing/margins.ts'
import { listPrices, setAccountPrice, setPrice } from '../pricing/prices.ts'
import { picturePriceIn as usdPriceIn } from '../pricing/unit-prices.ts'
import { inOpenWorkspace } from '../workspaces/closures.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, flag } from './action.ts'
import { accountField, NO_INPUT } from './fields.ts'

const list = action({
  name: 'prices list',
  summary: 'list all operations with their prices',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const set = await listPrices(pool)
    return catalogue.operations.filter(isSoldByUnit).map(({ id, price }) => {
      const version = set.get(id)
      const unitPrice = version?.unitPrice ?? price.unitPrice
      return { id, unitPrice, unit: price.unit, version: version?.version ?? null, cost: version?.providerCost ?? null }
    })
  },
  lines: (operations) =>
    operations.map(({ id, unitPrice, unit, version, cost }) => {
      const margin = cost === null ? '' : `  margin ${marginText({ price: unitPrice, cost })}`
      const whose = version === null ? 'published' : `version ${version}`
      return `${id}  ${decimalText(unitPrice, 9)} USD per ${unit}  ${whose}${margin}`
    }),
})

const operation = field('operation', 'id of the operation: see farebox prices list', operationOf)
const belowCost = flag('allow a price below the cost (default: refuse it)')

const set = action({
  name: 'prices set',
  summary: 'set the price per unit of an operation; running calls keep their price',
  effect: 'writes',
  positional: ['operation', 'price'],
  input: z.object({
    operation,
    price: field('usd', 'price per unit in USD', priceOf),
    cost: field('usd', 'cost: what the provider charges us per unit (default: as before)', priceOf).optional(),
    belowCost,
  }),
  async run({ pool, by }, { operation: { id, price: contract }, price, cost, belowCost: mayLose }) {
    const known = cost === undefined ? ((await listPrices(pool)).get(id)?.providerCost ?? null) : usdPriceIn(cost)
    if (!mayLose) requireAboveCost(id, price, known)
    const given = { operation: id, unitPrice: price, ...(cost !== undefined && { providerCost: cost }) }
    const version = await setPrice(pool, given, by)
    return { id, version, unitPrice: price, unit: contract.unit, cost: known }
  },
  lines: ({ id, version, unitPrice, unit, cost }) => {
    const margin = cost === null ? '' : ` Margin: ${marginText({ price: usdPriceIn(unitPrice), cost })}.`
    return [`Price of ${id}, version ${version}: ${unitPrice} USD per ${unit}.${margin}`]
  },
})

function requireAboveCost(what: string, text: string, cost: UnitPrice | null): void {
  const price = usdPriceIn(text)
  if (cost === null || !isBelowCost({ price, cost })) return
  throw new Error(
    `the price of ${what} would be below its cost: ${text} USD, and it costs us ${decimalText(cost, 9)} USD (margin ${marginText({ price, cost })}). ` +
      'Correct the price or the cost, or add --below-cost',
  )
}

const account = action({
  name: 'prices account',
  summary: "set a customer's own price per unit, or none to remove it",
  effect: 'writes',
  positional: ['account', 'operation', 'price'],
  input: z.object({
    account: accountField(),
    operation,
    price: field('usd', 'price per unit in USD, or none', (text) => (text === 'none' ? null : priceOf(text))),
    test: flag('for test money (default: live money)'),
    belowCost,
  }),
  async run({ pool, by }, { account: workspace, operation: { id }, price, test, belowCost: mayLose }) {
    const { id: workspaceId, liveAccountId, testAccountId } = await findWorkspace(pool, workspace)
    const cost = (await listPrices(pool)).get(id)?.providerCost ?? null
    // Test money is nobody's, and sandboxes cost nothing.
    if (price !== null && !test && !mayLose) requireAboveCost(id, price, cost)
    await inOpenWorkspace(pool, workspaceId, (on) =>
      setAccountPrice(on, test ? testAccountId : liveAccountId, id, price, by),
    )
    return { id: workspace, operation: id, unitPrice: price }
  },
  lines: ({ id, operation: name, unitPrice }) => [
    unitPrice === null
      ? `Account ${id} pays the standard price for ${name}.`
      : `Account ${id} pays ${unitPrice} USD for ${name}.`,
  ],
})

function operationOf(id: string): DataOperation {
  const found = catalogue.find(id)
  if (found !== undefined && !isSoldByUnit(found))
    throw new Error(`${id} is sold at the prices of its models: see farebox models price`)
  if (found === undefined) throw new Error(`there is no operation ${JSON.stringify(id)}: see farebox prices list`)
  return found
}

/** A plain decimal of at least nothing, as it was written. */
function priceOf(text: string): string {
  usdPriceIn(text)
  return text
}

export const prices = [list, set, account]
