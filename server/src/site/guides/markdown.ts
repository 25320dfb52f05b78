import path from 'node:path'
import { lexer, type Token, type Tokens } from 'marked'
import { type Html, html } from '../../kernel/html.ts'

/** A heading that can be linked to, and the plain text that stands below it. */
export type Part = {
  readonly id: string
  readonly title: string
  readonly depth: number
  readonly text: string
}

export type Rendered = {
  readonly title: string
  readonly main: Html
  readonly parts: readonly Part[]
}

/** Where a link of the document leads on the website; undefined where it leads nowhere there, and is shown as text. */
export type LinkOf = (href: string) => Target | undefined

export type Target = {
  readonly href: string
  /** What it is called there, in place of the name of a file. */
  readonly title?: string
}

/**
 * Markdown of ours as markup. Tokens become markup through `html` alone, which escapes them; markup in the Markdown itself is refused,
 * so that there is one way to write a page.
 */
export function renderMarkdown(source: string, linkOf: LinkOf): Rendered {
  const tokens = lexer(source)
  const writer = createWriter(linkOf)
  const main = html`${tokens.map(writer.block)}`
  const [first] = writer.parts
  if (first?.depth !== 1) throw new Error('a guide begins with a heading of the first level')
  return { title: first.title, main, parts: withTexts(tokens, writer.parts) }
}

function createWriter(linkOf: LinkOf) {
  const parts: Omit<Part, 'text'>[] = []
  const idOf = createIdsOf()
  // Regions that scroll need names that differ.
  let regions = 0

  function region(kind: string): string {
    regions += 1
    const under = parts.at(-1)?.title
    return `${kind} ${regions}${under === undefined ? '' : `: ${under}`}`
  }

  function heading({ depth, tokens = [] }: Tokens.Heading): Html {
    const title = plainText(tokens)
    const id = idOf(title)
    parts.push({ id, title, depth })
    const words = inlineOf(tokens, linkOf)
    if (depth === 1) return html`<h1>${words}</h1>\n`
    const linked = html`${words} <a class="anchor" href="#${id}" aria-label="Link to “${title}”">#</a>`
    if (depth === 2) return html`<h2 id="${id}">${linked}</h2>\n`
    return depth === 3 ? html`<h3 id="${id}">${linked}</h3>\n` : html`<h4 id="${id}">${linked}</h4>\n`
  }

  function code({ text, lang = '' }: Tokens.Code): Html {
    const title = LANGUAGES[lang.split(/\s/)[0] ?? '']
    const head = title === undefined ? undefined : html`<div class="fb-block__head"><span>${title}</span></div>`
    return html`<div class="fb-block">${head}<pre tabindex="0" role="region" aria-label="${region('Code')}"><code>${text}</code></pre></div>\n`
  }

  function table({ header, rows }: Tokens.Table): Html {
    const end = (align: string | null) => (align === 'right' ? html` class="fb-end"` : undefined)
    const head = header.map(({ tokens, align }) => html`<th scope="col"${end(align)}>${inlineOf(tokens, linkOf)}</th>`)
    const body = rows.map(
      (row) =>
        html`<tr>${row.map(({ tokens, align }) => html`<td${end(align)}>${inlineOf(tokens, linkOf)}</td>`)}</tr>\n`,
    )
    return html`<div class="fb-scroll" tabindex="0" role="region" aria-label="${region('Table')}"><table class="fb-table fb-table--plain"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>\n`
  }

  function list({ ordered, items }: Tokens.List): Html {
    const rows = items.map(({ tokens }) => html`<li>${tokens.map(block)}</li>\n`)
    return ordered ? html`<ol>${rows}</ol>\n` : html`<ul>${rows}</ul>\n`
  }

  function block(token: Token): Html {
    if (isOf(token, 'heading')) return heading(token)
    if (isOf(token, 'paragraph')) return html`<p>${inlineOf(token.tokens ?? [], linkOf)}</p>\n`
    if (isOf(token, 'code')) return code(token)
    if (isOf(token, 'table')) return table(token)
    if (isOf(token, 'list')) return list(token)
    if (isOf(token, 'blockquote')) return html`<blockquote>${(token.tokens ?? []).map(block)}</blockquote>\n`
    if (isOf(token, 'text')) return html`${inlineOf(token.tokens ?? [token], linkOf)}`
    if (token.type === 'space') return html``
    if (token.type === 'hr') return html`<hr>\n`
    throw refused(token)
  }

  return { block, parts }
}

const LANGUAGES: Readonly<Record<string, string>> = {
  sh: 'Shell',
  ts: 'TypeScript',
  js: 'JavaScript',
  python: 'Python',
  json: 'JSON',
  toml: 'TOML',
  yaml: 'YAML',
  http: 'HTTP',
  text: 'Text',
}

type ByType = {
  readonly heading: Tokens.Heading
  readonly paragraph: Tokens.Paragraph
  readonly code: Tokens.Code
  readonly table: Tokens.Table
  readonly list: Tokens.List
  readonly blockquote: Tokens.Blockquote
  readonly text: Tokens.Text
  readonly escape: Tokens.Escape
  readonly codespan: Tokens.Codespan
  readonly strong: Tokens.Strong
  readonly em: Tokens.Em
  readonly link: Tokens.Link
  readonly image: Tokens.Image
}

function isOf<Type extends keyof ByType>(token: Token, type: Type): token is ByType[Type] & Token {
  return token.type === type
}

function inlineOf(tokens: readonly Token[], linkOf: LinkOf): readonly Html[] {
  const below = (token: { readonly tokens?: Token[] }) => inlineOf(token.tokens ?? [], linkOf)
  return tokens.map((token) => {
    if (isOf(token, 'codespan')) return html`<code>${token.text}</code>`
    if (isOf(token, 'strong')) return html`<b>${below(token)}</b>`
    if (isOf(token, 'em')) return html`<em>${below(token)}</em>`
    if (isOf(token, 'link')) {
      const target = linkOf(token.href)
      const words = target?.title !== undefined && FILE_NAME.test(token.text) ? html`${target.title}` : below(token)
      return target === undefined ? html`${words}` : html`<a href="${target.href}">${words}</a>`
    }
    if (isOf(token, 'image')) {
      const source = linkOf(token.href)
      return source === undefined ? html`${token.text}` : html`<img src="${source.href}" alt="${token.text}">`
    }
    if (isOf(token, 'text') || isOf(token, 'escape')) return html`${token.text}`
    if (token.type === 'br') return html`<br>`
    throw refused(token)
  })
}

/** In the repository a document is called by its file. */
const FILE_NAME = /^[\w-]+\.md$/

function refused({ type, raw }: Token): Error {
  return new Error(`a guide cannot have ${type}: ${JSON.stringify(raw.slice(0, 80))}`)
}

/** What a person reads of them, without any form. */
function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      const { tokens: below } = Object(token)
      if (Array.isArray(below)) return plainText(below)
      return 'text' in token ? String(token.text) : ''
    })
    .join('')
}

/** Anchors as other readers of Markdown make them, so that the same link works in the repository and here. */
function createIdsOf(): (title: string) => string {
  const taken = new Map<string, number>()
  return (title) => {
    const plain = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-')
    const times = taken.get(plain) ?? 0
    taken.set(plain, times + 1)
    return times === 0 ? plain : `${plain}-${times}`
  }
}

/** What stands below each heading, for whoever searches. */
function withTexts(tokens: readonly Token[], parts: readonly Omit<Part, 'text'>[]): readonly Part[] {
  const texts = parts.map(() => [] as string[])
  let at = -1
  for (const token of tokens) {
    if (token.type === 'heading') at += 1
    else texts[at]?.push(textBelow(token))
  }
  return parts.map((part, place) => ({ ...part, text: (texts[place] ?? []).join(' ').replaceAll(/\s+/g, ' ').trim() }))
}

function textBelow(token: Token): string {
  if (isOf(token, 'table'))
    return [token.header, ...token.rows].map((row) => row.map(({ tokens }) => plainText(tokens)).join(' ')).join(' ')
  if (isOf(token, 'list')) return token.items.map(({ tokens }) => tokens.map(textBelow).join(' ')).join(' ')
  return plainText([token])
}

/** Resolves a link of a document in docs/: to another guide, a drawing beside it, or elsewhere on the web. */
export function createLinkOf(find: (file: string) => Target | undefined): LinkOf {
  return (href) => {
    if (/^https?:\/\//.test(href) || href.startsWith('#') || href.startsWith('/')) return { href }
    const [file = '', anchor] = href.split('#', 2)
    const known = find(path.posix.normalize(file))
    return known === undefined || anchor === undefined ? known : { ...known, href: `${known.href}#${anchor}` }
  }
}
