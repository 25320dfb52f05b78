import { type Html, html } from '../kernel/html.ts'
import { oneLine } from './names.ts'
import { STYLE } from './style.ts'

/** A letter is written once, as blocks, from which both its HTML and its text are made: nobody reads less than others. */
export type Letter = {
  readonly subject: string
  readonly title: string
  readonly blocks: readonly Block[]
}

export type Block =
  | { readonly kind: 'paragraph' | 'small'; readonly words: Words }
  /** What to do, and the address in full for whoever does not trust buttons. */
  | { readonly kind: 'button'; readonly label: string; readonly url: string }
  /** What can be done besides. */
  | { readonly kind: 'link'; readonly label: string; readonly url: string }
  | { readonly kind: 'table'; readonly rows: readonly Row[] }

type Row = readonly [label: string, value: string]

type Strong = { readonly strong: string }
type Words = readonly (string | Strong)[]

/** Joins our words with what others gave, which is shown as it is and never read as markup of any kind. */
export function words(ours: TemplateStringsArray, ...given: readonly (string | Strong)[]): Words {
  return ours.flatMap((word, at) => [word, ...given.slice(at, at + 1).map(shown)])
}

function shown(given: string | Strong): string | Strong {
  return typeof given === 'string' ? oneLine(given) : strong(oneLine(given.strong))
}

export const strong = (text: string): Strong => ({ strong: text })

const TEXT_WIDTH = 72
const TABLE_WIDTH = 46

/** Under whose name letters are sent. */
export type Brand = {
  readonly name: string
  /** Sent along with each letter, because nothing is fetched. */
  readonly logo?: { readonly name: string; readonly bytes: Buffer } | undefined
}

const OWN: Brand = { name: 'farebox' }
export const LOGO_CID = 'logo'

export function textOf({ title, blocks }: Letter, { name }: Brand = OWN): string {
  return [wrap(title), ...blocks.map(blockAsText), `-- \n${name}\n`].join('\n\n')
}

function blockAsText(block: Block): string {
  if (block.kind === 'button' || block.kind === 'link') return `${block.label}:\n${block.url}`
  if (block.kind === 'table') return block.rows.map(rowAsText).join('\n')
  return wrap(block.words.map((part) => (typeof part === 'string' ? part : part.strong)).join(''))
}

function rowAsText([label, value]: Row): string {
  return `${label}  ${value.padStart(TABLE_WIDTH - label.length - 2)}`
}

/** Breaks lines between words. A word that is longer than a line has one of its own. */
function wrap(text: string): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= TEXT_WIDTH) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}

/** No script and nothing from elsewhere: whoever opens it is told to nobody. */
export function htmlOf({ subject, title, blocks }: Letter, { name, logo }: Brand = OWN): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${subject}</title>
${STYLE}
</head>
<body>
<main>
<div class="sheet">
<p class="brand">${logo === undefined ? undefined : html`<img src="cid:${LOGO_CID}" alt="" height="28"> `}${name}</p>
<div class="in">
<h1>${title}</h1>
${blocks.map(blockAsHtml)}
</div></div>
</main>
</body>
</html>
`)
}

function blockAsHtml(block: Block): Html {
  if (block.kind === 'button')
    return html`<p><a class="button" href="${block.url}">${block.label}</a></p>
<p class="small">Or open this address:<br><span class="mono">${block.url}</span></p>
`
  if (block.kind === 'link')
    return html`<p>${block.label}:<br><a class="mono" href="${block.url}">${block.url}</a></p>
`
  if (block.kind === 'table')
    return html`<table class="lines">${block.rows.map(([label, value]) => html`<tr><td>${label}</td><td>${value}</td></tr>`)}</table>
`
  const parts = block.words.map((part) => (typeof part === 'string' ? html`${part}` : html`<b>${part.strong}</b>`))
  return block.kind === 'small' ? html`<p class="small">${parts}</p>\n` : html`<p>${parts}</p>\n`
}
