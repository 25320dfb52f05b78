import type { Answer } from '../answer.ts'

type Range = readonly [least: number, most: number, places: number]

const AMOUNT: Range = [1e8, 3e12, 0]
const RATIO: Range = [0.1, 60, 4]
const SHARE: Range = [-0.2, 0.8, 4]

/** In the order of the vendor's answer. */
const METRICS: readonly (readonly [name: string, range: Range])[] = [
  ...named(AMOUNT, 'market_cap enterprise_value'),
  ...named(RATIO, 'price_to_earnings_ratio price_to_book_ratio price_to_sales_ratio enterprise_value_to_ebitda_ratio'),
  ...named(RATIO, 'enterprise_value_to_revenue_ratio'),
  ...named(SHARE, 'free_cash_flow_yield'),
  ...named(RATIO, 'peg_ratio'),
  ...named(SHARE, 'gross_margin operating_margin net_margin return_on_equity return_on_assets'),
  ...named(SHARE, 'return_on_invested_capital'),
  ...named(RATIO, 'asset_turnover inventory_turnover receivables_turnover days_sales_outstanding operating_cycle'),
  ...named(RATIO, 'working_capital_turnover current_ratio quick_ratio cash_ratio operating_cash_flow_ratio'),
  ...named(RATIO, 'debt_to_equity debt_to_assets interest_coverage'),
  ...named(SHARE, 'revenue_growth earnings_growth book_value_growth earnings_per_share_growth'),
  ...named(SHARE, 'free_cash_flow_growth operating_income_growth ebitda_growth payout_ratio'),
  ...named(RATIO, 'earnings_per_share book_value_per_share free_cash_flow_per_share'),
]

function named(range: Range, names: string): (readonly [string, Range])[] {
  return names.split(' ').map((name) => [name, range] as const)
}

export const financialMetricsSnapshot: Answer = {
  upstream: 'financial',
  method: 'GET',
  path: '/financial-metrics/snapshot',
  credential: 'x-api-key',
  needs: ['ticker', 'cik'],
  body({ ticker, cik }, random) {
    const metrics = METRICS.map(([name, [least, most, places]]) => [name, random.decimal(least, most, places)])
    return { snapshot: { ticker: ticker || `CIK${cik}`, ...Object.fromEntries(metrics) } }
  },
}
