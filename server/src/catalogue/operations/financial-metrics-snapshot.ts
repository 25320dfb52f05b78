import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

const input = z
  .looseObject({ ticker: z.string().min(1).optional(), cik: z.string().min(1).optional() })
  .refine(({ ticker, cik }) => ticker !== undefined || cik !== undefined, 'ticker or cik is needed')

const FIGURES = `
  market_cap enterprise_value price_to_earnings_ratio price_to_book_ratio price_to_sales_ratio
  enterprise_value_to_ebitda_ratio enterprise_value_to_revenue_ratio free_cash_flow_yield peg_ratio
  gross_margin operating_margin net_margin return_on_equity return_on_assets return_on_invested_capital
  asset_turnover inventory_turnover receivables_turnover days_sales_outstanding operating_cycle
  working_capital_turnover current_ratio quick_ratio cash_ratio operating_cash_flow_ratio debt_to_equity
  debt_to_assets interest_coverage revenue_growth earnings_growth book_value_growth earnings_per_share_growth
  free_cash_flow_growth operating_income_growth ebitda_growth payout_ratio earnings_per_share
  book_value_per_share free_cash_flow_per_share
`

const figure = z.number().nullable().optional()
const figures = FIGURES.trim()
  .split(/\s+/)
  .map((name) => [name, figure] as const)

export const financialMetricsSnapshot = defineOperation({
  id: 'financial_metrics_snapshot',
  summary: 'Financial metrics of a company as they are now',
  asks: `stock stocks share shares company fundamentals valuation p/e pe ratio price earnings eps market cap
    capitalization capitalisation margin margins revenue growth debt equity roe roa return profitability profitable
    liquidity ticker symbol cik balance sheet finance financials investing investment investor quote overvalued
    undervalued dividend payout cash flow enterprise value ebitda book`,
  example: { ticker: 'ACME' },
  category: 'finance',
  method: 'GET',
  path: '/apis/v1/financial/financial-metrics/snapshot',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  input,
  output: z.looseObject({ snapshot: z.looseObject({ ticker: z.string(), ...Object.fromEntries(figures) }) }),
  price: perCall({
    unitPrice: rational(usd('0.01')),
    isCharged: ({ status, json }) => status === 200 && typeof memberOf(json, 'snapshot', 'ticker') === 'string',
  }),
  upstream: {
    slot: 'financial',
    path: '/financial-metrics/snapshot',
    adapter: 'pass_through',
    credentialHeader: 'x-api-key',
    totalMs: 30_000,
    maxBodyBytes: 4 * 1_048_576,
  },
})
