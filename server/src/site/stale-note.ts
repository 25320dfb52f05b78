import { type Html, html } from '../kernel/html.ts'
import { icon } from '../pages/icons.ts'
import { minuteOf } from './dates.ts'
import type { KeptPrices } from './kept-prices.ts'

/** Where prices could not be asked for just now, a page says when they were. */
export function staleNote(prices: Pick<KeptPrices, 'isStale' | 'now'>): Html | undefined {
  if (!prices.isStale()) return undefined
  return html`<div class="fb-callout fb-callout--warn" role="note">${icon('warn')}<p><b>Prices as of ${minuteOf(prices.now().readAt)}.</b> The ledger can’t be reached at the moment, so newer ones may not show here. Calls that cost money are refused until it can be.</p></div>`
}
