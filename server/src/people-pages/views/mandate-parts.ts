import type { MandateTerms } from '../../grants/mandates.ts'
import { type Html, html } from '../../kernel/html.ts'
import { formatUsd, type Nanos } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { DAY_MS, isTicked, LASTS, mayField, SEEN, type Values } from '../mandate-form.ts'
import type { Offer } from '../offer.ts'
import { dayOf, dollars, many, shortDayOf } from './words.ts'

/** What pages about mandates are made of: fields, the ticket, the sentence, and amounts. */

export type Problems = Readonly<Partial<Record<string, string>>>

type Affixed = {
  readonly name: string
  readonly label: string
  readonly before?: string
  readonly after?: string
  readonly hint?: Html | string
  readonly isNumeric?: boolean
}

/** A field with a sign before or a word behind what is typed. */
export function affixed(
  { name, label, before, after, hint, isNumeric = false }: Affixed,
  values: Values,
  problems: Problems,
): Html {
  const problem = problems[name]
  const described = [problem === undefined ? '' : `${name}-e`, hint === undefined ? '' : `${name}-h`].filter(Boolean)
  return html`<div class="fb-field"><label for="${name}">${label}</label><div class="fb-affix">${before === undefined ? null : html`<span>${before}</span>`}<input class="fb-input" id="${name}" name="${name}" inputmode="${isNumeric ? 'numeric' : 'decimal'}" autocomplete="off" required value="${values[name] ?? ''}"${
    described.length === 0 ? null : html` aria-describedby="${described.join(' ')}"`
  }${problem === undefined ? null : html` aria-invalid="true"`}>${after === undefined ? null : html`<span>${after}</span>`}</div>${
    problem === undefined ? null : error(name, problem)
  }${hint === undefined ? null : html`<p class="fb-hint" id="${name}-h">${hint}</p>`}</div>
`
}

function error(name: string, problem: string): Html {
  return html`<p class="fb-error" id="${name}-e">${icon('refused')}<span>${problem}</span></p>`
}

/** What it may call: categories to tick, and names for who wants less, or more, than a whole category. */
export function scopeFields({ categories }: Pick<Offer, 'categories'>, values: Values, problems: Problems): Html {
  const named = values.only ?? ''
  const isOpen = named !== '' || problems.only !== undefined
  return html`<fieldset><legend id="may">What it may call</legend><div class="fb-choices">${categories.map(
    ({ id, name, note, price, operations }) =>
      html`<label class="fb-check"><input type="checkbox" name="${mayField(id)}" value="yes"${isTicked(values, mayField(id)) ? html` checked` : null}><span class="fb-check__name">${name}</span><span class="fb-check__price">${price}</span><span class="fb-check__note">${note}. ${many(operations, 'operation')}.</span></label>`,
  )}</div>${problems.may === undefined ? null : error('may', problems.may)}
<details class="fb-more"${isOpen ? html` open` : null}><summary>Single operations or models</summary><div class="fb-field"><label for="only">Also allow these</label><input class="fb-input" id="only" name="only" autocomplete="off" spellcheck="false" value="${named}" aria-describedby="${problems.only === undefined ? '' : 'only-e '}only-h"${problems.only === undefined ? null : html` aria-invalid="true"`}>${
    problems.only === undefined ? null : error('only', problems.only)
  }<p class="fb-hint" id="only-h">Ids of operations and names of models, such as <span class="fb-code">rerank, model:sandbox/text</span>. To allow only these, tick nothing above.</p></div></details>
<label class="fb-check"><input type="checkbox" name="costly" value="yes"${isTicked(values, 'costly') ? html` checked` : null}><span class="fb-check__name">Ask me before each costly call</span><span class="fb-check__note">Deep research and videos, whatever they cost.</span></label></fieldset>
`
}

/** As the fields of a mandate are called, where something is wrong with them. */
export const MANDATE_LABELS = {
  ...{ amount: 'In total, at most', call: 'Per call, at most', rate: 'How often', days: 'Until' },
  ...{ may: 'What it may call', only: 'Single operations or models' },
}

/** When it would end, for each choice of how long. */
export function lastsOptions(now: Date): Readonly<Record<string, string>> {
  const until = (days: string) => shortDayOf(new Date(now.getTime() + Number(days) * DAY_MS))
  return Object.fromEntries(Object.entries(LASTS).map(([days, name]) => [days, `${name}: ${until(days)}`]))
}

export type Ticket = {
  readonly client: string
  readonly terms: MandateTerms
  readonly operations: number
  /** Whose money, where that is not plain from the page. */
  readonly from?: string
}

/** One ticket a page: what is promised. */
export function ticket({ client, terms, operations, from }: Ticket): Html {
  const { amount, asks, requestsPerMinute, expiresAt } = terms
  return html`<div class="fb-ticket"><div><p class="mandate__sum"><small>Mandate for <bdi>${client}</bdi></small>${dollars(amount)}</p></div>
<div><dl class="fb-rows"><div><dt>Per call, at most</dt><dd>${money(asks.callLimit ?? amount)}</dd></div><div><dt>Calls per minute</dt><dd>${requestsPerMinute}</dd></div><div><dt>Until</dt><dd>${dayOf(expiresAt)}</dd></div><div><dt>It may call</dt><dd>${many(operations, 'operation')}</dd></div>${
    from === undefined ? null : html`<div><dt>From</dt><dd><bdi>${from}</bdi></dd></div>`
  }</dl></div></div>
`
}

export type Sentence = {
  readonly client: string
  readonly workspace: string
  readonly mode: string
  readonly terms: MandateTerms
  readonly offer: Pick<Offer, 'categories'>
  /** Whether it can create keys, which no amount of its own bounds. */
  readonly canMakeKeys?: boolean
}

/** What somebody is about to allow, all of it. */
export function sentence({ client, workspace, mode, terms, offer, canMakeKeys = false }: Sentence): Html {
  const { amount, asks, requestsPerMinute, scopes, expiresAt } = terms
  const until = html`Until <b>${dayOf(expiresAt)}</b>, <b><bdi>${client}</bdi></b>`
  const money = mode === 'test' ? 'test' : 'live'
  const keys = html`<p><b>It can create API keys that spend all of <bdi>${workspace}</bdi>’s ${money} balance.</b> Those keys work until they are revoked, also after you end this. You can revoke them together with it under <a href="/grants">what you allow</a>.</p>
<p>${mode === 'test' ? 'It can also change keys and budgets of test money, and nothing of live money.' : html`It can also change keys and budgets, rename <bdi>${workspace}</bdi>, ask for higher limits and export all data, as far as your role allows.`} It can’t invite, change or remove members.</p>`
  if (amount === 0n && canMakeKeys)
    return html`<p>${until} may act for <bdi>${workspace}</bdi>, as far as your role allows.</p>
${keys}`
  if (amount === 0n) return html`<p>${until} may act for <bdi>${workspace}</bdi> and <b>can’t pay</b> for anything.</p>`
  return html`<p>${until} may spend up to <b>${dollars(amount)}</b> of <bdi>${workspace}</bdi>’s ${money} money on <b>${namesOf(scopes, offer)}</b>: at most <b>${dollars(asks.callLimit ?? amount)}</b> per call without asking you, and <b>${requestsPerMinute}</b> calls per minute.${
    asks.asksHighCost ? ' It has to ask you before each costly call.' : ''
  }</p>
${canMakeKeys ? keys : null}<p>${canMakeKeys ? '' : 'It can’t spend more. '}You can pause, change or end this at any time under <a href="/grants">what you allow</a>.</p>`
}

/** By what they are called on the page. */
function namesOf(scopes: readonly string[], { categories }: Pick<Offer, 'categories'>): string {
  const named = scopes.map((scope) => categories.find(({ id }) => id === scope)?.name.toLowerCase() ?? scope)
  const last = named.at(-1)
  return named.length < 2 ? (last ?? 'nothing') : `${named.slice(0, -1).join(', ')} and ${last}`
}

/** By which the decision is known to be about the sentence beside it. */
export function seenField(seal: string | null): Html {
  return html`<input type="hidden" name="${SEEN}" value="${seal ?? ''}">`
}

/** An amount, whole: nine places in groups, where that many are told. */
export function money(amount: Nanos, isExact = false): Html {
  const whole = formatUsd(amount)
  if (!isExact) return html`<data class="fb-money" value="${whole}">${dollars(amount)}</data>`
  const [units = '0', fraction = ''] = whole.split('.')
  const [first, second, third] = [0, 3, 6].map((at) => fraction.padEnd(9, '0').slice(at, at + 3))
  return html`<data class="fb-money" value="${whole}">$${units}.${first}<i>${second}</i><i>${third}</i></data>`
}

type Bar = { readonly charged: Nanos; readonly held: Nanos; readonly ceiling: Nanos }

/** Charged, held and left of a ceiling. The stop stands at its end, and nothing beyond it. */
export function bar({ charged, held, ceiling }: Bar): Html {
  const label = `${formatUsd(charged)} dollars charged and ${formatUsd(held)} held of a ceiling of ${formatUsd(ceiling)} dollars`
  const [chargedWide, heldWide] = [partOf(charged, ceiling), partOf(held, ceiling)]
  const wide = Math.max(heldWide, HELD_LEAST)
  const at = Math.min(chargedWide, 100 - wide)
  return html`<svg class="fb-bar fb-bar--big" role="img" aria-label="${label}"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="${chargedWide}%" height="100%" rx="1"/>${
    heldWide === 0
      ? null
      : html`<rect x="${at}%" width="${wide}%" height="100%" fill="url(#fb-hatch)"/><rect class="edge" x="${at}%" y=".5" width="${wide}%" height="25"/>`
  }<rect class="stop" x="100%" y="-4" width="3" height="34" rx="1"/></svg>
`
}

/** So that what is held is seen, however little. */
const HELD_LEAST = 0.8

/** In per cent, of one place. */
function partOf(amount: Nanos, ceiling: Nanos): number {
  return ceiling === 0n ? 0 : Math.min(100, Number((amount * 1_000n) / ceiling) / 10)
}
