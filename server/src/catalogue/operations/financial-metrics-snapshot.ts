import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

const input = z
  .looseObject({ ticker: z.string().min(1).optional(), cik: z.string().min(1).optional() })
  .refine(({ ticker, cik }) => ticker !== undefined || cik !== undefined, 'ticker or cik is needed')

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
  output: z.looseObject({ snapshot: z.looseObject({ ticker: z.string() }) }),
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
