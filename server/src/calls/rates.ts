import type { Rate, Rates } from '../limits/window.ts'
import type { Row } from './query.ts'

/** The columns in which BEGIN and END tell what is left of a call's windows. */
export const RATES_SELECT = `request_limit::float8, requests_left::float8, extract(epoch from requests_reset_at)::float8,
  token_limit::float8, tokens_left::float8, extract(epoch from tokens_reset_at)::float8`

/** Reads them from the column on in which they begin. */
export function ratesIn(row: Row, at: number): Rates {
  return { requests: rateIn(row, at), tokens: rateIn(row, at + 3) }
}

function rateIn(row: Row, at: number): Rate | null {
  if (row.isNull(at)) return null
  return { limit: row.number(at), left: row.number(at + 1), resetAtMs: row.number(at + 2) * 1000 }
}
