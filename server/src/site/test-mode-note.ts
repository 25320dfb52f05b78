import { type Html, html } from '../kernel/html.ts'
import { icon } from '../pages/icons.ts'
import type { PriceBook } from '../pricing/price-book.ts'

/** Where models can be called by test keys alone, a page that tells their prices says so. */
export function testModeNote({ soldIn }: Pick<PriceBook, 'soldIn'>): Html | undefined {
  if (soldIn === 'live') return undefined
  return html`<div class="fb-callout" role="note">${icon('square')}<p><b>Test mode only.</b> Nothing has an upstream in live mode here. Test keys can call those below, with test money.</p></div>`
}
