import type { Approval } from '../../grants/approvals.ts'
import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, nanos } from '../../kernel/money.ts'
import { type FormParts, form, wayOn } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import type { ShownMandate } from './mandate.ts'
import { bar, money } from './mandate-parts.ts'
import { clockOf, dayOf, dollars } from './words.ts'

type Shown = FormParts & {
  readonly approval: Approval
  /** What the call is made of. */
  readonly shown: string
  /** When the same call was last made; null for never, as far as that is kept. */
  readonly madeAt: Date | null
  readonly mandate: ShownMandate
  readonly email: string
  /** What the operation does. */
  readonly summary: string | undefined
}

/** One call, all of it, and whether it may be made. */
export function approvalPage({ open }: Pick<Pages, 'open'>, parts: Shown): Page {
  const { approval, shown, madeAt, mandate, email, summary } = parts
  const { operation, most, askedAt, requestId, expiresAt } = approval
  const { clientName, documentHost, terms, budget, workspace, mode } = mandate
  const { left } = budget
  return open({
    title: `Allow one call of ${clientName}`,
    who: html`${email} · <a href="/sign-out">Sign out</a>`,
    main: html`<div class="grant"><div><div class="grant__who"><span class="grant__face">${icon('agent')}</span><h1><bdi>${clientName}</bdi> asks to make one call</h1><p>${documentHost === null ? 'An unverified app' : html`<b>${documentHost}</b>`} has a mandate from you. ${why(approval, terms.asks.callLimit)}</p></div>
<div class="grant__form"><section><h2 class="grant__h">What it would do</h2><dl class="fb-kv"><div><dt>Operation</dt><dd class="fb-code">${operation}</dd></div>${summary === undefined ? null : html`<div><dt>Description</dt><dd>${summary}</dd></div>`}<div><dt>Workspace</dt><dd><bdi>${workspace}</bdi>${mode === 'test' ? ', test money' : ''}</dd></div><div><dt>Asked at</dt><dd>${dayOf(askedAt)}, ${clockOf(askedAt)}</dd></div><div><dt>Request</dt><dd class="fb-code">${requestId}</dd></div>${madeAt === null ? null : html`<div><dt>Made before</dt><dd>The same call was made at ${clockOf(madeAt)} on ${dayOf(madeAt)}, with your approval. If you allow it, it is made once more.</dd></div>`}</dl></section>
<div class="fb-block fb-block--wrap"><div class="fb-block__head"><span>${approval.isShownWhole ? 'Exactly this, and nothing else' : 'A part of the request: it is too long to show in full'}</span></div><pre tabindex="0" role="region" aria-label="What is sent"><code dir="ltr">${shown}</code></pre></div>
<section><h2 class="grant__h">What is left of the mandate</h2>${leftAfter(mandate, most)}</section></div></div>
<aside class="grant__side" aria-label="The quote"><div class="fb-ticket"><div><p class="mandate__sum"><small>Quote for one call</small>${dollars(most)}</p></div>
<div><dl class="fb-rows"><div><dt>At most</dt><dd>${money(most, true)}</dd></div><div><dt>Its limit per call</dt><dd>${money(terms.asks.callLimit ?? budget.amount)}</dd></div><div><dt>Valid until</dt><dd>${clockOf(expiresAt)}</dd></div></dl></div></div>
<p class="fb-hint">${icon('lock')} Only you can answer this, on this page. <bdi>${clientName}</bdi> can’t answer it for you. If the price rises or anything in the call changes, your answer does not apply.</p></aside>
${form(
  `/approvals/${approval.id}`,
  parts,
  html`<div class="grant__box"><h2>What you are about to allow</h2><p><b><bdi>${clientName}</bdi></b> may make <b>this call once</b>, whether or not it succeeds, before <b>${clockOf(expiresAt)}</b>, for at most <b>${dollars(most)}</b> of the ${dollars(left)} that its mandate has left.</p>
<p>Its limit stays for every other call. If you do nothing, it is refused at ${clockOf(expiresAt)} and costs nothing.</p>
<div class="fb-actions"><button class="fb-button fb-button--large" type="submit" name="decision" value="once">Allow once, up to ${dollars(most)}</button><button class="fb-button fb-button--large fb-button--quiet" type="submit" name="decision" value="refuse">Refuse</button></div></div>`,
  'grant__say',
)}</div>`,
    foot: html`<a href="/mandates/${mandate.id}">Its mandate</a><a href="/grants">What you allow</a>`,
  })
}

function why({ reason, most }: Approval, callLimit: Nanos | null): Html {
  return reason === 'high_cost'
    ? html`You want to be asked before each costly call, so this one waits for you.`
    : html`This call could cost ${money(most)}, more than the ${callLimit === null ? 'amount' : money(callLimit)} that you allow per call, so it waits for you.`
}

function leftAfter({ budget }: ShownMandate, most: Nanos): Html {
  const { amount, spent, held, left } = budget
  const after = left > most ? nanos(left - most) : nanos(0n)
  return html`<div class="beside"><span>Now</span>${bar({ charged: nanos(spent - held), held, ceiling: amount })}</div>
<p class="fb-hint">${
    most > left
      ? html`${money(left)} is left, which does not cover this call. Raise the mandate first: otherwise the call is refused even if you allow it.`
      : html`If it costs its maximum, ${money(after)} of ${money(amount)} is left.`
  }</p>`
}

const DONE = {
  allowed: ['The call is allowed', 'Go back to the app and repeat the call. It is allowed once.'],
  used: ['The call was made', 'It was allowed once. The mandate shows what it cost.'],
  refused: ['The call is refused', 'Nothing was charged. The app is told when it repeats the call.'],
  over: ['There is nothing to decide', 'The call is already decided, has expired, or belongs to somebody else.'],
} as const

/** What became of it. */
export function approvalDonePage({ card }: Pick<Pages, 'card'>, done: keyof typeof DONE, grantId?: string): Page {
  const [title, text] = DONE[done]
  return card({
    isNarrow: true,
    status: done === 'over' ? 404 : 200,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">${text}</p>
${wayOn(grantId === undefined ? '/grants' : `/mandates/${grantId}`, grantId === undefined ? 'See what you allow' : 'See the mandate', true)}`,
  })
}
