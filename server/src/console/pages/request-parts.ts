import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Kind } from '../listed-calls.ts'

/** Icon and word; what is as usual has the word alone. */
export const BADGES: Readonly<Record<Kind, Html>> = {
  charged: html`<span class="fb-soft">Charged</span>`,
  // It ended as one that is paid for, and had used nothing.
  free: html`<span class="fb-soft">No charge</span>`,
  voided: html`<span class="fb-badge">${icon('square')}Not charged</span>`,
  running: html`<span class="fb-badge fb-badge--held">${icon('held')}Held</span>`,
  unsettled: html`<span class="fb-badge fb-badge--warn">${icon('unsettled')}Unsettled</span>`,
}
