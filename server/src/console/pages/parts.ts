import { type Html, html } from '../../kernel/html.ts'
import { formatUsd, type Nanos, ZERO } from '../../kernel/money.ts'
import type { Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import { shownUsd } from '../../site/money.ts'
import { IDEMPOTENCY_KEY } from '../visits.ts'

/** What pages of the console are put together from. */

/** Nine places, as the ledger has it. */
export function exact(amount: Nanos): Html {
  return shownUsd(formatUsd(amount))
}

/** As it was set: two places or more. */
export function asSet(amount: Nanos): Html {
  return shownUsd(formatUsd(amount).replace(/0{1,7}$/, ''))
}

const PLACES = 6
const MICRO = 1_000n

/** Six places, rounded down; an amount too small for them is exact, so that spend never reads as nothing. */
export function micros(amount: Nanos): Html {
  return amount > ZERO && amount < MICRO ? exact(amount) : shownUsd(cut(amount))
}

function cut(amount: Nanos): string {
  return formatUsd(amount).slice(0, PLACES - 9)
}

/** As on a meter: cents, and what is finer smaller. */
export function meter(amount: Nanos): Html {
  const text = cut(amount)
  const [whole = '', places = ''] = text.split('.')
  return html`<data class="fb-money fb-money--meter" value="${text}">$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${places.slice(0, 2)}<i>${places.slice(2)}</i></data>`
}

type Spending = { readonly charged: Nanos; readonly held: Nanos; readonly limit: Nanos }

/** The least of what is held that can be seen. */
const LEAST_SHARE = 0.8

/** Charged, held and left of a ceiling, to scale: nothing is drawn beyond its stop. */
export function bar({ charged, held, limit }: Spending, label: string, size: 'small' | 'usual' = 'usual'): Html {
  const share = (amount: Nanos) => (limit <= ZERO ? 0 : Math.min(100, Number((amount * 1000n) / limit) / 10))
  const from = share(charged)
  const width = held > ZERO ? Math.min(100 - from, Math.max(LEAST_SHARE, share(held))) : 0
  const height = size === 'small' ? 8 : 14
  const hatch =
    width > 0
      ? html`<rect x="${from}%" width="${width}%" height="100%" fill="url(#fb-hatch)"/><rect class="edge" x="${from}%" y=".5" width="${width}%" height="${height - 1}"/>`
      : undefined
  return html`<svg class="fb-bar${size === 'small' ? ' fb-bar--small' : ''}" role="img" aria-label="${label}"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="${from}%" height="100%" rx="1"/>${hatch}<rect class="stop" x="100%" y="${size === 'small' ? -3 : -4}" width="3" height="${height + (size === 'small' ? 6 : 8)}" rx="1"/></svg>`
}

export function card(
  id: string,
  title: string | Html,
  body: Html,
  { beside, kind = '', isPlain = false }: CardOptions = {},
): Html {
  return html`<section class="fb-card${kind === '' ? '' : ` ${kind}`}" aria-labelledby="${id}"><div class="fb-card__head"><h2 id="${id}">${title}</h2>${beside}</div>${isPlain ? body : html`<div class="fb-card__body">${body}</div>`}</section>
`
}

type CardOptions = { readonly beside?: Html; readonly kind?: string; readonly isPlain?: boolean }

/** Without a script there is nothing that could copy: the island shows it. */
export function copyButton(of: string): Html {
  return html`<button class="fb-copy" type="button" data-copy="${of}" hidden>${icon('copy')}<span>Copy</span></button>`
}

/** A whole key or link, the one time that it is shown. */
export function reveal(secret: string): Html {
  return html`<div class="fb-reveal"><code id="secret">${secret}</code>${copyButton('secret')}</div>`
}

/** What every form that changes something has, so that it changes once. */
export function changesOnce(key: string): Html {
  return html`<input type="hidden" name="${IDEMPOTENCY_KEY}" value="${key}">`
}

/** Where a page is, with the way back. */
export function crumbs(way: readonly (readonly [href: string, title: string])[], here: string): Html {
  return html`<nav class="fb-crumbs" aria-label="Where you are">${way.map(([href, title]) => html`<a href="${href}"><bdi>${title}</bdi></a>${icon('chevron')}`)}<span aria-current="page"><bdi>${here}</bdi></span></nav>
`
}

/** What was refused, above what was sent. */
export function troubled(trouble: Trouble | null | undefined): Html | undefined {
  if (trouble === null || trouble === undefined) return undefined
  return html`<div class="fb-callout fb-callout--bad" role="alert">${icon('refused')}<div><strong>${trouble.title}</strong><p>${trouble.text}</p></div></div>
`
}

const SWATCHES = {
  charged: html`<rect class="fb-key-charged" width="14" height="14" rx="2"/>`,
  held: html`<rect width="14" height="14" rx="2" fill="url(#fb-hatch)"/><rect class="fb-key-edge" x=".5" y=".5" width="13" height="13" rx="1.5"/>`,
  left: html`<rect class="fb-key-left" x=".5" y=".5" width="13" height="13" rx="1.5"/>`,
} as const

/** The three states of money, with their amounts. */
export function legend(amounts: Readonly<Record<keyof typeof SWATCHES, Html>>): Html {
  const item = (name: keyof typeof SWATCHES) =>
    html`<li><svg width="14" height="14" aria-hidden="true">${SWATCHES[name]}</svg><span>${name} <b>${amounts[name]}</b></span></li>`
  return html`<ul class="fb-legend">${item('charged')}${item('held')}${item('left')}</ul>`
}
