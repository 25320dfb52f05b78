import { type Html, html } from '../kernel/html.ts'

/** Pieces of code, each under a title and in a region that scrolls by itself. */
export function codeBlock(...pieces: readonly Piece[]): Html {
  const isWrapped = pieces.some((piece) => piece.isWrapped === true)
  return html`<div class="fb-block${isWrapped ? ' fb-block--wrap' : ''}">${pieces.map(({ title, code, label = title }) => html`<div class="fb-block__head"><span>${title}</span></div>${pre(label, code)}`)}</div>`
}

type Piece = {
  readonly title: string
  readonly code: string | Html
  /** What the region is called, where the title does not say it. */
  readonly label?: string
  readonly isWrapped?: boolean
}

export type Tab = { readonly title: string; readonly code: string | Html }

/** One of several pieces at a time, by radio buttons and without a script; all of them where a browser can't do that. */
export function codeTabs(id: string, label: string, tabs: readonly Tab[], end?: Html): Html {
  const choice = ({ title }: Tab, at: number) =>
    html`<label><input type="radio" name="${id}"${at === 0 ? html` checked` : undefined}>${title}</label>`
  const panel = ({ title, code }: Tab) =>
    html`<section class="fb-panel" aria-label="${title}">${pre(`${label}: ${title}`, code)}</section>`
  return html`<div class="fb-block fb-tabbed"><div class="fb-block__head"><fieldset class="fb-tabs"><legend class="fb-hide">${label}</legend>${tabs.map(choice)}</fieldset>${end}</div>${tabs.map(panel)}</div>`
}

function pre(label: string, code: string | Html): Html {
  return html`<pre tabindex="0" role="region" aria-label="${label}"><code>${typeof code === 'string' ? coloured(code) : code}</code></pre>`
}

/** Texts in quotes, as most languages write them; and a line that begins with a comment. */
const PIECES = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|(^[ \t]*(?:#|\/\/)[^\n]*)/gm

/** Enough colour to see what may be changed. It says nothing that the text does not. */
export function coloured(code: string): Html {
  const shown: Html[] = []
  let at = 0
  for (const match of code.matchAll(PIECES)) {
    const [piece, text] = match
    shown.push(html`${code.slice(at, match.index)}`)
    shown.push(text === undefined ? html`<span class="c">${piece}</span>` : html`<span class="s">${piece}</span>`)
    at = match.index + piece.length
  }
  return html`${shown}${code.slice(at)}`
}
