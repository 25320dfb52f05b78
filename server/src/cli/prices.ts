import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import { type DataOperation, isSoldByUnit } from '../catalogue/operation.ts'
import type { Config } from '../config.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import { decimal, decimalText } from '../kernel/rational.ts'
import { listPrices, setAccountPrice, setPrice } from '../pricing/prices.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addPriceCommands(program: Command): void {
  const prices = program.command('prices').description('look after what operations cost')
  reading(prices, 'list')
    .description('list every operation with its price')
    .action(() => running(list))
  writing(prices, 'set <operation> <usd>')
    .description('set what a unit of an operation costs from now on; calls that have begun keep their price')
    .option('--cost <usd>', 'what the upstream charges us for a unit')
    .action((operation: string, price: string, options: { cost?: string }) =>
      running((config) => set(config, operation, price, options.cost)),
    )
  writing(prices, 'account <account> <operation> <usd>')
    .description("set a customer's own price for a unit, or take it back with none")
    .option('--test', 'for its test money')
    .action((account: string, operation: string, price: string, options: { test?: true }) =>
      running((config) => setForAccount(config, account, operation, price, options.test === true)),
    )
}

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const set = await listPrices(rest)
    for (const { id, price } of catalogue.operations.filter(isSoldByUnit)) {
      const version = set.get(id)
      const text = decimalText(version?.unitPrice ?? price.unitPrice, 9)
      print(
        `${id}  ${text} USD per ${price.unit}  ${version === undefined ? 'published' : `version ${version.version}`}`,
      )
    }
  })
}

async function set(config: Config, name: string, price: string, cost: string | undefined): Promise<void> {
  const { id, price: contract } = operationOf(name)
  const unitPrice = priceOf(price)
  const providerCost = cost === undefined ? {} : { providerCost: priceOf(cost) }
  await withPools(config, async ({ rest }) => {
    const version = await setPrice(rest, { operation: id, unitPrice, ...providerCost }, operator())
    print(`${id} costs ${unitPrice} USD per ${contract.unit}, as version ${version}.`)
  })
}

async function setForAccount(
  config: Config,
  account: string,
  name: string,
  price: string,
  isTest: boolean,
): Promise<void> {
  const { id } = operationOf(name)
  const unitPrice = price === 'none' ? null : priceOf(price)
  await withPools(config, async ({ rest }) => {
    const { liveAccountId, testAccountId } = await findWorkspace(rest, idOf(account))
    await setAccountPrice(rest, isTest ? testAccountId : liveAccountId, id, unitPrice, operator())
    print(
      unitPrice === null
        ? `${account} pays the general price for ${id}.`
        : `${account} pays ${unitPrice} USD for ${id}.`,
    )
  })
}

function operationOf(id: string): DataOperation {
  const found = catalogue.find(id)
  if (found !== undefined && !isSoldByUnit(found))
    throw new Error(`the price of ${id} is its models': see farebox models price`)
  if (found === undefined) throw new Error(`there is no operation ${JSON.stringify(id)}: see farebox prices list`)
  return found
}

/** A plain decimal of at least nothing, as it was written. */
function priceOf(text: string): string {
  if (decimal(text).numerator < 0n) throw new Error('a price is not negative')
  return text
}
