import { type Html, html } from '../kernel/html.ts'
import type { Assets } from './assets.ts'
import { OWN_NAME } from './label.ts'

/** Drawn on 16 by 16, in one line of the colour of the text. */
const SHAPES = {
  agent: html`<path d="M2.5 5.5h11v8h-11zM8 5.5V2.5M5.8 9.2v.8M10.2 9.2v.8"/>`,
  back: html`<path d="M6 3L2.5 6.5 6 10M2.5 6.5H10a3.5 3.5 0 0 1 0 7H6"/>`,
  charged: html`<path fill="currentColor" d="M2.5 2.5h11v11h-11z"/>`,
  check: html`<path d="M3 8.5l3.2 3.2L13 4.8"/>`,
  chevron: html`<path d="M6 4l4 4-4 4"/>`,
  clock: html`<circle cx="8" cy="8" r="5.8"/><path d="M8 4.8V8l2.2 1.6"/>`,
  copy: html`<path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3"/>`,
  flask: html`<path d="M6 2.2h4M6.8 2.2v4.2L3 12.6a.8.8 0 0 0 .7 1.2h8.6a.8.8 0 0 0 .7-1.2L9.2 6.4V2.2M5 10h6"/>`,
  held: html`<path d="M2.5 2.5h11v11h-11zM2.5 8l5.5-5.5M2.5 13.5l11-11M8 13.5L13.5 8"/>`,
  home: html`<path d="M2.5 13.5v-11h4.5v11zM9 13.5v-5h4.5v5zM9 5.5v-3h4.5v3z"/>`,
  info: html`<circle cx="8" cy="8" r="6"/><path d="M8 7.4v3.4M8 5v.1"/>`,
  key: html`<circle cx="5" cy="10.5" r="3"/><path d="M7.2 8.3L13 2.5M10.6 4.9l2 2"/>`,
  list: html`<path d="M2.5 4h11M2.5 8h11M2.5 12h7"/>`,
  lock: html`<path d="M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2"/>`,
  menu: html`<path d="M2.5 5h11M2.5 11h11"/>`,
  no: html`<path d="M4 4l8 8M12 4l-8 8"/>`,
  pause: html`<path d="M5.5 3.5v9M10.5 3.5v9"/>`,
  person: html`<circle cx="8" cy="5.2" r="2.7"/><path d="M3 13.6c0-2.7 2.1-4.5 5-4.5s5 1.8 5 4.5"/>`,
  play: html`<path d="M4.5 2.8v10.4L13 8z"/>`,
  plus: html`<path d="M8 3v10M3 8h10"/>`,
  refused: html`<path d="M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4"/>`,
  right: html`<path d="M3 8h10M9 4l4 4-4 4"/>`,
  running: html`<path d="M13.5 8A5.5 5.5 0 1 1 8 2.5"/>`,
  search: html`<circle cx="7" cy="7" r="4.5"/><path d="M10.4 10.4L14 14"/>`,
  square: html`<path d="M2.5 2.5h11v11h-11z"/>`,
  team: html`<circle cx="6" cy="5.5" r="2.5"/><path d="M1.8 13.2c0-2.4 1.8-4 4.2-4s4.2 1.6 4.2 4M10.6 3.2a2.5 2.5 0 0 1 0 4.6M12 9.6c1.4.6 2.2 1.9 2.2 3.6"/>`,
  ticket: html`<path d="M2.5 4h11v2.4a1.6 1.6 0 0 0 0 3.2V12h-11V9.6a1.6 1.6 0 0 0 0-3.2zM6.5 4v1.6M6.5 7.2v1.6M6.5 10.4V12"/>`,
  tree: html`<path d="M2.5 2v10.5h4M2.5 6h4M8.5 4.2h5v3.6h-5zM8.5 10.7h5v3.6h-5z"/>`,
  turn: html`<path d="M13 6.5A5.3 5.3 0 0 0 3.4 5M3 2.6V5.4h2.8M3 9.5a5.3 5.3 0 0 0 9.6 1.5M13 13.4v-2.8h-2.8"/>`,
  unsettled: html`<path d="M2.5 2.5h11v11h-11z" stroke-dasharray="2.4 2.2"/><path d="M8 5v3.6M8 11v.1"/>`,
  warn: html`<path d="M8 2.2l6.3 11.3H1.7zM8 6.6v3.2M8 11.9v.1"/>`,
} satisfies Readonly<Record<string, Html>>

export function icon(name: keyof typeof SHAPES): Html {
  return html`<svg class="fb-icon" viewBox="0 0 16 16" aria-hidden="true">${SHAPES[name]}</svg>`
}

const TICKET =
  'M6 0h20a6 6 0 0 1 6 6v4a3 3 0 0 0 0 6v10a6 6 0 0 1-6 6H6a6 6 0 0 1-6-6V16a3 3 0 0 0 0-6V6a6 6 0 0 1 6-6z'
const LETTER =
  'M8.5 5.8h15a.7.7 0 0 1 .7.7v4a.7.7 0 0 1-.7.7h-15a.7.7 0 0 1-.7-.7v-4a.7.7 0 0 1 .7-.7zM8.5 14.8h11.6a.7.7 0 0 1 .7.7v4a.7.7 0 0 1-.7.7h-7.1v5.6a.7.7 0 0 1-.7.7H8.5a.7.7 0 0 1-.7-.7V15.5a.7.7 0 0 1 .7-.7z'
/** Seven letters of one stroke. */
const WORD = [
  'M9.8 3.2H8.6A3.4 3.4 0 0 0 5.2 6.6V20M1.4 9.6H9.6',
  'M20.9 8V20M20.9 14A4.4 4.4 0 1 1 12.1 14A4.4 4.4 0 1 1 20.9 14',
  'M26.6 20V8M26.6 13.4A3.9 3.9 0 0 1 32.2 9.9',
  'M34.9 13.9H43.7A4.4 4.4 0 1 0 42.3 17.1',
  'M49 2V20M49 14A4.4 4.4 0 1 1 57.8 14A4.4 4.4 0 1 1 49 14',
  'M62 14A4.4 4.4 0 1 1 70.8 14A4.4 4.4 0 1 1 62 14',
  'M74.4 8.4L83 19.6M83 8.4L74.4 19.6',
].join('')

const GLYPH = html`<svg class="fb-brand__glyph" viewBox="0 0 32 32" aria-hidden="true"><path fill="#ffcb2e" d="${TICKET}"/><path fill="#14161a" d="${LETTER}"/></svg>`
const NAME = html`<svg class="fb-brand__word" viewBox="0 0 85 22" role="img" aria-label="${OWN_NAME}"><path d="${WORD}" fill="none" stroke="currentColor" stroke-width="3.2"/></svg>`

/** The mark and the name; a link where there is a website to lead to. */
export function brand(home: string | undefined, assets: Pick<Assets, 'label' | 'logo'>): Html {
  const shown = markOf(assets)
  return home === undefined
    ? html`<span class="fb-brand">${shown}</span>`
    : html`<a class="fb-brand" href="${home}">${shown}</a>`
}

/** An operator's logo, or its name; ours where it has our name. */
function markOf({ label: { name }, logo }: Pick<Assets, 'label' | 'logo'>): Html {
  if (logo !== null) return html`<img class="fb-brand__logo" src="${logo}" alt="${name}">`
  return name === OWN_NAME ? html`${GLYPH}${NAME}` : html`<b class="fb-brand__name">${name}</b>`
}
