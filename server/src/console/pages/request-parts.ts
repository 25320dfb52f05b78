import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Kind, Row } from '../listed-calls.ts'

const BADGES: Readonly<Record<Exclude<Kind, 'refused'>, Html>> = {
  charged: html`<span class="fb-soft">Charged</span>`,
  // It ended as one that is paid for, and had used nothing.
  free: html`<span class="fb-soft">No charge</span>`,
  voided: html`<span class="fb-badge">${icon('square')}Not charged</span>`,
  running: html`<span class="fb-badge fb-badge--held">${icon('held')}Held</span>`,
  unsettled: html`<span class="fb-badge fb-badge--warn">${icon('unsettled')}Unsettled</span>`,
}

/** Icon and word; what is as usual has the word alone. */
export function badgeOf({ kind, status }: Pick<Row, 'kind' | 'status'>): Html {
  return kind === 'refused' ? refusedBadge(status) : BADGES[kind]
}

/** With the status that the caller was told. */
export function refusedBadge(status: string | number): Html {
  return html`<span class="fb-badge fb-badge--bad">${icon('refused')}Refused <span class="status">${status}</span></span>`
}
