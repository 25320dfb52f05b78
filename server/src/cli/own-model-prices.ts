import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { inOpenWorkspace } from '../identity/closures.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import { decimalText, type Rational } from '../kernel/rational.ts'
import { belowCost, type Margin, marginsOf, marginText } from '../pricing/margins.ts'
import { setAccountModelTimes } from '../pricing/prices.ts'
import { readPrices } from '../pricing/set-model-price.ts'
import { timesOf, timesText } from './accounts.ts'
import { accountIdOf, operator, print, running, unknown, withPools, writing } from './command.ts'

/** `farebox models account`: what a customer pays for a model by agreement. */
export function addOwnModelPriceCommand(models: Command): void {
  writing(models, 'account <account> <model> <times>')
    .description("set a customer's multiplier of a model's price, such as 0.8x, or none to remove it")
    .option('--test', 'for test money (default: live money)')
    .option('--below-cost', 'allow a price below the cost (default: refuse it)')
    .action((account: string, model: string, times: string, options: OwnOptions) =>
      running((config) => setOwn(config, { account, model, times, ...options })),
    )
}

type OwnOptions = { readonly test?: true; readonly belowCost?: true }
type Own = OwnOptions & { readonly account: string; readonly model: string; readonly times: string }

async function setOwn(config: Config, { account, model, times: text, test, belowCost: mayLose }: Own): Promise<void> {
  const times = text === 'none' ? null : timesOf(text)
  await withPools(config, async ({ rest: pool }) => {
    const { id, liveAccountId, testAccountId } = await findWorkspace(pool, accountIdOf(account)).catch(
      unknown(`account ${account}`),
    )
    const margins = times === null ? [] : await marginsAt(pool, model, times)
    // Test money is nobody's, and sandboxes cost nothing.
    const below = mayLose === true || test === true ? undefined : belowCost(margins)
    if (below !== undefined)
      throw new Error(
        `${account} would pay less for ${model} than it costs us: ${below}. Correct the multiplier, or add --below-cost`,
      )
    const own = times === null ? null : decimalText(times)
    await inOpenWorkspace(pool, id, (on) =>
      setAccountModelTimes(on, test === true ? testAccountId : liveAccountId, model, own, operator()),
    )
    if (times === null) return print(`Account ${account} pays the standard price for ${model}.`)
    print(`Account ${account} pays ${timesText(times)} the price of ${model}, also when that price changes.`)
    for (const line of marginLines(margins)) print(line)
  })
}

function pricesOf(pool: pg.Pool, models: readonly string[]) {
  return readPrices((sql, values = []) => pool.query(sql, [...values]), models)
}

/** What is left of the price of each of these models that has one. */
export async function marginsByModel(
  pool: pg.Pool,
  models: readonly string[],
): Promise<ReadonlyMap<string, readonly Margin[]>> {
  return new Map([...(await pricesOf(pool, models))].map(([model, price]) => [model, marginsOf(price)]))
}

async function marginsAt(pool: pg.Pool, model: string, times: Rational): Promise<readonly Margin[]> {
  const price = (await pricesOf(pool, [model])).get(model)
  if (price === undefined) throw new Error(`${model} has no price: see farebox models price ${model}`)
  return marginsOf(price, times)
}

/** What is left when the upstream is paid; nothing where nobody has said what that costs. */
export function marginLines(margins: readonly Margin[]): readonly string[] {
  if (margins.length === 0) return []
  return [`Margin: ${marginsText(margins)}.`]
}

export function marginsText(margins: readonly Margin[]): string {
  return margins.map((margin) => `${margin.member} ${marginText(margin)}`).join(', ')
}
