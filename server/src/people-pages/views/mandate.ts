import type { MandateTerms } from '../../grants/mandates.ts'
import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, nanos, ZERO } from '../../kernel/money.ts'
import type { EndedRequest } from '../../ledger/requests.ts'
import type { OperationSpend } from '../../ledger/spend-by-operation.ts'
import { breakable } from '../../pages/breakable.ts'
import { callout, type Filled, type FormParts, form, summary, wayOn } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { AS_BEFORE, type Values } from '../mandate-form.ts'
import type { Offer } from '../offer.ts'
import { select } from './consent.ts'
import {
  affixed,
  bar,
  lastsOptions,
  MANDATE_LABELS,
  money,
  scopeFields,
  seenField,
  sentence,
  ticket,
} from './mandate-parts.ts'
import { type WaitingCall, waitingCalls } from './waiting-calls.ts'
import { dayOf, dollars, many, momentOf } from './words.ts'

export type ShownMandate = {
  readonly id: string
  readonly clientName: string
  readonly documentHost: string | null
  readonly workspace: string
  readonly mode: 'live' | 'test'
  readonly createdAt: Date
  readonly isPaused: boolean
  /** Null for one that is active. */
  readonly endedAt: Date | null
  /** Whether it can create keys, which its amount does not bound. */
  readonly canMakeKeys: boolean
  /** Whether nobody has said yet what it may call and how often: such a grant pays over base_url alone. */
  readonly lacksTerms: boolean
  /** As it is now. */
  readonly terms: MandateTerms
  readonly budget: { readonly amount: Nanos; readonly spent: Nanos; readonly held: Nanos; readonly left: Nanos }
}

/** What just happened, where somebody is led here by it. */
export const MANDATE_NOTES = {
  changed: 'The mandate is changed',
  paused: 'It is paused. No new calls can start.',
  resumed: 'It is resumed with what it has left.',
} as const
export type MandateNote = keyof typeof MANDATE_NOTES

type Shown = FormParts & {
  readonly mandate: ShownMandate
  readonly email: string
  readonly offer: Offer
  readonly spends: readonly OperationSpend[]
  readonly last: readonly EndedRequest[]
  readonly waiting: readonly WaitingCall[]
  readonly values: Values
  /** What the form would make of it, where somebody has to read that before it counts. */
  readonly wanted: { readonly terms: MandateTerms; readonly seal: string } | null
  readonly status?: number
  readonly filled?: Filled
  readonly note?: MandateNote | undefined
}

const LACKS_TERMS = html`<p>Over the API it may call everything, as often as your plan allows, up to its amount. Through the MCP tools it can’t pay. Save the terms on this page to limit both.</p>`

/** Where a refusal leads: what a mandate is, what came of it, and how to change or end it. */
export function mandatePage({ open }: Pick<Pages, 'open'>, shown: Shown): Page {
  const { mandate, email, note, filled = {}, status = 200 } = shown
  const { clientName, documentHost, workspace, mode, createdAt, endedAt } = mandate
  return open({
    status,
    title: `Mandate for ${clientName}`,
    who: html`${email} · <a href="/sign-out">Sign out</a>`,
    main: html`<div class="keep"><div class="keep__main">
<div class="grant__who"><span class="grant__face">${icon('agent')}</span><h1><bdi>${clientName}</bdi></h1><p class="keep__meta">${stateOf(mandate)}<span>${documentHost === null ? 'This unverified app' : html`<b>${documentHost}</b>`} ${endedAt === null ? 'spends' : 'spent'} from <bdi>${workspace}</bdi>’s ${mode} money. You allowed it on ${dayOf(createdAt)}.${endedAt === null ? '' : ` It ended on ${dayOf(endedAt)}.`}</span></p></div>
${note === undefined ? null : callout('ok', MANDATE_NOTES[note], null)}${mandate.lacksTerms && endedAt === null ? callout('warn', 'It has no limits yet on what it may call and how often', LACKS_TERMS) : null}${summary(filled, MANDATE_LABELS)}${endedAt === null ? ceiling(mandate) : undefined}${waitingCalls(shown.waiting)}${spentOn(shown)}</div>
<aside class="keep__side" aria-label="Terms and changes">${ticket({ client: clientName, terms: mandate.terms, operations: shown.offer.count(mandate.terms.scopes) })}${endedAt === null ? html`${changeForm(shown)}${endForms(shown)}` : undefined}</aside></div>`,
    foot: html`<a href="/grants">What you allow</a>`,
  })
}

function stateOf({ isPaused, endedAt }: ShownMandate): Html {
  if (endedAt !== null) return html`<span class="fb-badge">${icon('no')}Ended</span>`
  return isPaused
    ? html`<span class="fb-badge">${icon('pause')}Paused</span>`
    : html`<span class="fb-badge fb-badge--ok">${icon('check')}Active</span>`
}

function ceiling({ budget }: ShownMandate): Html {
  const { amount, spent, held, left } = budget
  const charged = nanos(spent - held)
  return html`<section class="keep__card" aria-labelledby="m1"><div class="keep__sum"><h2 id="m1">Left of ${dollars(amount)}</h2><p>${money(left, true)}</p></div>
${bar({ charged, held, ceiling: amount })}<ul class="fb-legend"><li>${swatch('charged')}<span>charged <b>${money(charged, true)}</b></span></li><li>${swatch('held')}<span>held <b>${money(held, true)}</b></span></li><li>${swatch('left')}<span>left <b>${money(left, true)}</b></span></li></ul>
<p class="fb-hint">The end of the bar is the limit: no call can exceed it. We send you a mail when 80 % is used, and when all is used.</p></section>
`
}

function swatch(kind: 'charged' | 'held' | 'left'): Html {
  const shapes = {
    charged: html`<rect class="fb-key-charged" width="14" height="14" rx="2"/>`,
    held: html`<rect width="14" height="14" rx="2" fill="url(#fb-hatch)"/><rect class="fb-key-edge" x=".5" y=".5" width="13" height="13" rx="1.5"/>`,
    left: html`<rect class="fb-key-left" x=".5" y=".5" width="13" height="13" rx="1.5"/>`,
  }
  return html`<svg width="14" height="14" aria-hidden="true">${shapes[kind]}</svg>`
}

function spentOn({ spends, last }: Shown): Html {
  if (spends.length === 0)
    return html`<section class="keep__card" aria-labelledby="m3"><h2 id="m3">What it was spent on</h2><p class="fb-soft">Nothing yet.</p></section>`
  const most = spends[0]?.charged ?? ZERO
  const calls = spends.reduce((sum, one) => sum + one.calls, 0)
  const all = nanos(spends.reduce((sum, one) => sum + one.charged, 0n))
  return html`<section class="keep__card" aria-labelledby="m3"><h2 id="m3">What it was spent on</h2><div class="fb-scroll" tabindex="0" role="region" aria-label="Spending by operation"><table class="fb-table fb-table--plain fb-table--dense spent"><thead><tr><th scope="col">Operation</th><th scope="col" class="b"><span class="fb-hide">Share</span></th><th scope="col" class="fb-end n">Calls</th><th scope="col" class="fb-end">Charged</th></tr></thead><tbody>${spends.map(
    (one) =>
      html`<tr><th scope="row"><span class="fb-code">${breakable(one.operation)}</span><span class="fb-sub"><span class="narrow">${many(one.calls, 'call')}</span></span></th><td class="b"><svg class="r" aria-hidden="true"><rect class="track" width="100%" height="8" rx="1"/><rect class="fb-key-charged" width="${shareOf(one.charged, most)}%" height="8" rx="1"/></svg></td><td class="fb-end n">${one.calls}</td><td class="fb-end">${money(one.charged, true)}</td></tr>`,
  )}<tr class="fb-total"><th scope="row">Charged</th><td class="b"></td><td class="fb-end n">${calls}</td><td class="fb-end">${money(all, true)}</td></tr></tbody></table></div>
<h3>The last calls, UTC</h3><ul class="last">${last.map(lastCall)}</ul></section>
`
}

function shareOf(amount: Nanos, most: Nanos): number {
  return most <= 0n ? 0 : Number((amount * 100n) / most)
}

function lastCall({ operation, amount, given_back, ended_at }: EndedRequest): Html {
  const cost = nanos(amount - given_back)
  return html`<li><span class="fb-dim fb-num">${momentOf(ended_at)}</span><span class="fb-code">${operation ?? ''}</span><span class="fb-badge">${icon(cost > 0n ? 'charged' : 'square')}${cost > 0n ? 'Charged' : 'Not charged'}</span><span class="fb-end">${money(cost, true)}</span></li>`
}

/** Nothing changes until the sentence about it has been read. */
function changeForm({ mandate, offer, values, wanted, filled = {}, ...parts }: Shown): Html {
  const { problems = {} } = filled
  const { spent } = mandate.budget
  const until = { [AS_BEFORE]: `As now, until ${dayOf(mandate.terms.expiresAt)}`, ...lastsOptions(new Date()) }
  const { clientName: client, workspace, mode, canMakeKeys } = mandate
  return form(
    `/mandates/${mandate.id}/terms`,
    parts,
    html`${seenField(wanted?.seal ?? null)}${
      wanted === null
        ? null
        : html`<div class="grant__box" role="status"><h2>What you are about to allow</h2>${sentence({ client, workspace, mode, terms: wanted.terms, offer, canMakeKeys })}<div class="fb-actions"><button class="fb-button fb-button--large" type="submit">Change it</button><a class="fb-button fb-button--large fb-button--quiet" href="/mandates/${mandate.id}">Cancel</a></div></div>`
    }<h2>Raise or lower it</h2>
${affixed({ name: 'amount', label: 'In total, at most', before: '$', hint: html`${money(spent)} is charged or held. With an amount below that, no new calls can start.` }, values, problems)}<div class="two">${affixed({ name: 'call', label: 'Per call', before: '$' }, values, problems)}${affixed({ name: 'rate', label: 'How often', after: 'per minute', isNumeric: true }, values, problems)}</div>
${select('days', 'Until', until, values.days)}<details class="fb-more"${problems.may !== undefined || problems.only !== undefined ? html` open` : null}><summary>What it may call</summary>${scopeFields(offer, values, problems)}</details>
${wanted === null ? html`<button class="fb-button fb-button--large fb-button--wide" type="submit">Review the change</button><p class="fb-hint">Nothing changes until you confirm it.</p>` : null}`,
    'keep__card',
  )
}

function endForms({ mandate, ...parts }: Shown): Html {
  const { id, isPaused, budget } = mandate
  const [verb, name, hint] = isPaused
    ? ['resume', 'Resume', 'It continues with what it has left.']
    : ['pause', 'Pause', 'New calls are refused within a second. Running calls finish and are charged.']
  return html`<div class="keep__card keep__ends"><h2 class="fb-hide">Pause or end it</h2>${form(`/mandates/${id}/${verb}`, parts, html`<button class="fb-button fb-button--quiet fb-button--wide" type="submit">${isPaused ? null : icon('pause')}${name}</button>`)}<p class="fb-hint">${hint}</p>${form(`/mandates/${id}/end`, parts, html`<button class="fb-button fb-button--danger fb-button--wide" type="submit">End the mandate</button>`)}<p class="fb-hint">Its token stops working. ${money(budget.left)} stays with the workspace.</p></div>
`
}

/** What is not there is the same to whoever it is not for. */
export function noMandatePage({ card }: Pick<Pages, 'card'>): Page {
  const title = 'There is no such mandate'
  return card({
    isNarrow: true,
    status: 404,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">It has ended, or it belongs to somebody else: only the person who gave a mandate can manage it.</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
