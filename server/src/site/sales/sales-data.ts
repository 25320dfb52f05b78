import { GROUPS } from '../../catalogue/limit-groups.ts'
import { isSoldByUnit, isTask, type Names, type Operation, spell } from '../../catalogue/operation.ts'
import { TIERS } from '../../catalogue/tiers.ts'
import { MODES } from '../../kernel/mode.ts'
import { decimalText } from '../../kernel/rational.ts'
import type { listModels } from '../../pricing/models.ts'
import type { listPrices } from '../../pricing/prices.ts'
import { shownModel } from '../../pricing/shown-model.ts'
import { modesOf, type Sold } from '../../pricing/sold.ts'

/** The version of the form below. What reads it may find new members; one that is gone or means something else raises it. */
const FORM_VERSION = 1
const USD_PLACES = 9

export type SalesInput = {
  readonly sold: Sold
  readonly names: Names
  readonly contractHash: string | null
  readonly prices: Awaited<ReturnType<typeof listPrices>>
  readonly models: Awaited<ReturnType<typeof listModels>>
}

/** What is sold, at which price and within which limits, for programs that want to know. Amounts are decimal USD, as texts. */
export function salesDataOf({ sold, names, contractHash, prices, models }: SalesInput, observedAt: Date) {
  const modesOfModel = (id: string) => MODES.filter((mode) => models[mode].some((model) => model.id === id))
  const operations = MODES.flatMap((mode) => sold.in[mode])
  return {
    form_version: FORM_VERSION,
    observed_at: observedAt.toISOString(),
    contract_hash: contractHash,
    currency: 'USD',
    operations: [...new Set(operations)].map((operation) => ({
      operation_id: operation.id,
      summary: operation.summary,
      category: operation.category,
      definition: operation.definition,
      modes: modesOf(sold, operation),
      method: operation.method,
      path: spell(operation.path, { ...names, model: '{model}' }),
      can_be_quoted: operation.quotable,
      limits: ['requests', ...operation.limits],
      price: priceOf(operation, prices),
    })),
    models: models.all.flatMap((model) => {
      const modes = modesOfModel(model.id)
      return modes.length === 0 ? [] : [{ id: model.id, name: model.displayName, modes, ...shownModel(model) }]
    }),
    limits: {
      tiers: Object.entries(TIERS).map(([tier, limits]) => ({
        tier,
        requests_per_minute: limits.requestsPerMinute,
        tokens_per_minute: limits.tokensPerMinute,
        concurrency: limits.concurrency,
      })),
      groups: GROUPS,
    },
  }
}

/** As published: operators change the price of a unit, and what an account pays by agreement is its own affair. */
function priceOf(operation: Operation, prices: SalesInput['prices']) {
  if (!isSoldByUnit(operation)) {
    if (operation.protocol.endsWith('_count_tokens')) return { contract: 'free' }
    return { contract: isTask(operation) ? 'per_second' : 'of_model' }
  }
  const { contract, unit, unitPrice } = operation.price
  const set = prices.get(operation.id)
  return {
    contract,
    unit,
    usd_per_unit: decimalText(set?.unitPrice ?? unitPrice, USD_PLACES),
    version: set?.version ?? '0',
    is_scaled_by_plan: operation.isScaledByCustomerPlan === true,
  }
}
