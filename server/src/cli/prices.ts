import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import { type DataOperation, isSoldByUnit } from '../catalogue/operation.ts'
import type { Config } from '../config.ts'
import { inOpenWorkspace } from '../identity/closures.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import type { UnitPrice } from '../kernel/money.ts'
import { decimalText } from '../kernel/rational.ts'
import { isBelowCost, marginText } from '../pricing/margins.ts'
import { listPrices, setAccountPrice, setPrice } from '../pricing/prices.ts'
import { picturePriceIn as usdPriceIn } from '../pricing/unit-prices.ts'
import { accountIdOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addPriceCommands(program: Command): void {
  const prices = program.command('prices').description('manage the prices of operations')
  reading(prices, 'list')
    .description('list all operations with their prices')
    .action(() => running(list))
  writing(prices, 'set <operation> <usd>')
    .description('set the price per unit of an operation; running calls keep their price')
    .option('--cost <usd>', 'cost: what the provider charges us per unit (default: as before)')
    .option('--below-cost', 'allow a price below the cost (default: refuse it)')
    .action((operation: string, price: string, options: SetOptions) =>
      running((config) => set(config, operation, price, options)),
    )
  writing(prices, 'account <account> <operation> <usd>')
    .description("set a customer's own price per unit, or none to remove it")
    .option('--test', 'for test money (default: live money)')
    .option('--below-cost', 'allow a price below the cost (default: refuse it)')
    .action((account: string, operation: string, price: string, options: OwnOptions) =>
      running((config) => setForAccount(config, { account, operation, price, ...options })),
    )
}

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const set = await listPrices(rest)
    for (const { id, price } of catalogue.operations.filter(isSoldByUnit)) {
      const version = set.get(id)
      const unitPrice = version?.unitPrice ?? price.unitPrice
      const whose = version === undefined ? 'published' : `version ${version.version}`
      const cost = version?.providerCost ?? null
      const margin = cost === null ? '' : `  margin ${marginText({ price: unitPrice, cost })}`
      print(`${id}  ${decimalText(unitPrice, 9)} USD per ${price.unit}  ${whose}${margin}`)
    }
  })
}

type SetOptions = { readonly cost?: string; readonly belowCost?: true }

async function set(config: Config, name: string, price: string, { cost, belowCost }: SetOptions): Promise<void> {
  const { id, price: contract } = operationOf(name)
  const unitPrice = priceOf(price)
  await withPools(config, async ({ rest }) => {
    const known = cost === undefined ? ((await listPrices(rest)).get(id)?.providerCost ?? null) : usdPriceIn(cost)
    requireAboveCost(id, { price, cost: known }, belowCost)
    const given = { operation: id, unitPrice, ...(cost !== undefined && { providerCost: priceOf(cost) }) }
    const version = await setPrice(rest, given, operator())
    const margin = known === null ? '' : ` Margin: ${marginText({ price: usdPriceIn(price), cost: known })}.`
    print(`Price of ${id}, version ${version}: ${unitPrice} USD per ${contract.unit}.${margin}`)
  })
}

type Sold = { readonly price: string; readonly cost: UnitPrice | null }

function requireAboveCost(what: string, { price: text, cost }: Sold, mayLose: true | undefined): void {
  const price = usdPriceIn(text)
  if (cost === null || mayLose === true || !isBelowCost({ price, cost })) return
  throw new Error(
    `the price of ${what} would be below its cost: ${text} USD, and it costs us ${decimalText(cost, 9)} USD (margin ${marginText({ price, cost })}). ` +
      'Correct the price or the cost, or add --below-cost',
  )
}

type OwnOptions = { readonly test?: true; readonly belowCost?: true }
type Own = OwnOptions & { readonly account: string; readonly operation: string; readonly price: string }

async function setForAccount(config: Config, { account, operation, price, test, belowCost }: Own): Promise<void> {
  const { id } = operationOf(operation)
  const unitPrice = price === 'none' ? null : priceOf(price)
  await withPools(config, async ({ rest }) => {
    const { id: workspaceId, liveAccountId, testAccountId } = await findWorkspace(rest, accountIdOf(account))
    const cost = (await listPrices(rest)).get(id)?.providerCost ?? null
    // Test money is nobody's, and sandboxes cost nothing.
    if (unitPrice !== null) requireAboveCost(id, { price: unitPrice, cost }, test ?? belowCost)
    await inOpenWorkspace(rest, workspaceId, (on) =>
      setAccountPrice(on, test === true ? testAccountId : liveAccountId, id, unitPrice, operator()),
    )
    print(
      unitPrice === null
        ? `Account ${account} pays the standard price for ${id}.`
        : `Account ${account} pays ${unitPrice} USD for ${id}.`,
    )
  })
}

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
