import { type Html, html } from '../kernel/html.ts'

/** Up to so many places are read at a glance; more are grouped. */
const PLAIN_PLACES = 6
const GROUP = 3

type Options = {
  /** So many places take up room also where they are not there, so that points stand under each other. */
  readonly places?: number
}

/**
 * An exact amount of decimal USD. Places are grouped by space that is not copied, and zeros in front are dim. A price that has no end as a
 * decimal is a fraction, and is shown as it is.
 */
export function shownUsd(text: string, { places: wanted = 0 }: Options = {}): Html {
  const [whole = '', fraction = ''] = text.split('.')
  if (!/^\d+$/.test(whole) || !/^\d*$/.test(fraction)) return html`<span class="fb-money">$${text}</span>`
  const places = Math.max(fraction.length, wanted)
  const size = places > PLAIN_PLACES ? GROUP : places
  const groups = places === 0 ? [] : Array.from({ length: Math.ceil(places / size) }, (_, at) => at * size)
  const isSmall = /^0+$/.test(whole) && places > PLAIN_PLACES && /[1-9]/.test(fraction)
  const firstDigit = fraction.search(/[1-9]/)
  const head = `$${withCommas(whole)}${fraction === '' ? '' : '.'}`

  const group = (from: number): Html => {
    const real = fraction.slice(from, from + size)
    const missing = Math.min(size, places - from) - real.length
    const dim = isSmall ? Math.max(0, Math.min(real.length, firstDigit - from)) : 0
    const text = html`${dim > 0 ? html`<span class="z">${real.slice(0, dim)}</span>` : undefined}${real.slice(dim)}${missing > 0 ? html`<span class="p" aria-hidden="true">${'0'.repeat(missing)}</span>` : undefined}`
    return from === 0 ? text : html`<i>${text}</i>`
  }

  return html`<data class="fb-money" value="${text}">${isSmall ? html`<span class="z">${head}</span>` : head}${groups.map(group)}</data>`
}

/** At least two places, as prices are written. */
export function asPrice(text: string): string {
  const [whole = '', fraction = ''] = text.split('.')
  return /^\d*$/.test(fraction) ? `${whole}.${fraction.padEnd(2, '0')}` : text
}

export function withCommas(count: number | string): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}
