import { type Html, html } from '../../kernel/html.ts'
import { nanos, usd } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { momentParts } from '../listed-calls.ts'
import { card, exact } from './parts.ts'
import type { ShownRequest } from './request-forms.ts'

type Posting = ShownRequest['postings'][number]

const ENTRIES: Readonly<Record<string, Html>> = {
  hold: html`<span class="fb-badge fb-badge--held">${icon('held')}Hold</span>`,
  charge: html`<span class="fb-badge">${icon('charged')}Charge</span>`,
  release: html`<span class="fb-badge">${icon('square')}Release</span>`,
  charge_reversal: html`<span class="fb-badge">${icon('back')}Refund</span>`,
  forgiveness: html`<span class="fb-badge">${icon('back')}Forgiven</span>`,
}

const PLACES = { available: 'Available', held: 'Held', charged: 'Charged' } as const

/** Every movement as a pair: what one side is debited, the other is credited. */
export function ledgerCard(postings: readonly Posting[], nowMs: number): Html {
  const kind = 'fb-c7 top'
  if (postings.length === 0)
    return card(
      'ledger',
      'Ledger',
      html`<p class="fb-soft">No money moved: nothing was held, and nothing charged.</p>`,
      {
        kind,
      },
    )
  const sum = nanos(postings.reduce((all, { amount }) => all + usd(amount.usd), 0n))
  const rows = postings.map(({ at, entry, debit, credit, amount }) => {
    const [day, clock, fraction] = momentParts(at, nowMs)
    const shown = exact(usd(amount.usd))
    return html`<tr><td class="fb-dim at fb-nowrap" rowspan="2">${day}${clock}${fraction}</td><td rowspan="2">${ENTRIES[entry] ?? html`<span class="fb-badge">${entry.replaceAll('_', ' ')}</span>`}</td><td class="acct">${PLACES[debit]}</td><td class="fb-end">${shown}</td><td></td></tr><tr><td class="acct">${PLACES[credit]}</td><td></td><td class="fb-end">${shown}</td></tr>`
  })
  return card(
    'ledger',
    'Ledger',
    html`<div class="fb-scroll" tabindex="0" role="region" aria-label="Ledger lines"><table class="fb-table fb-table--plain fb-table--dense ledger"><thead><tr><th scope="col" class="at">Time, UTC</th><th scope="col">Entry</th><th scope="col">Account</th><th scope="col" class="fb-end">Debit</th><th scope="col" class="fb-end">Credit</th></tr></thead><tbody>${rows}<tr class="fb-total"><td class="at"></td><td colspan="2">Both sides agree</td><td class="fb-end">${exact(sum)}</td><td class="fb-end">${exact(sum)}</td></tr></tbody></table></div>`,
    { kind, beside: html`<span class="fb-dim">of this workspace, in USD</span>` },
  )
}
