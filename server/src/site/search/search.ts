import { type Html, html } from '../../kernel/html.ts'
import { WORD, wordsOf } from '../../kernel/search-index.ts'
import type { Asked, PageRoute } from '../../pages/page-route.ts'
import { asAsked } from '../as-asked.ts'
import { chip, queryText } from '../filter.ts'
import type { Shell } from '../shell.ts'
import { finder, LONGEST_QUERY } from './finder.ts'
import { createSiteIndex, type Found, type IndexParts, KINDS, type Kind } from './site-index.ts'

const TITLES: Readonly<Record<Kind, string>> = {
  guides: 'Guides',
  operations: 'Operations',
  models: 'Models',
  errors: 'Errors',
}

type Parts = IndexParts & { readonly shell: Shell }

const MOST_OF_KIND = 12
const EXCERPT = 220

/** Looks for words in all of the website, in memory. */
export function searchRoutes({ shell, ...parts }: Parts): readonly PageRoute[] {
  const search = createSiteIndex(parts)
  return [
    {
      method: 'GET',
      path: '/search',
      async answer({ query }: Asked) {
        const asked = queryText(query, 'q', LONGEST_QUERY).trim()
        const kind = KINDS.find((one) => one === query.get('kind'))
        const found = await search(asked)
        return asAsked(
          shell.page({
            title: asked === '' ? 'Search' : `Search: ${asked}`,
            description: 'Search over guides, operations, models and errors.',
            path: '/search',
            section: 'search',
            head: html`<meta name="robots" content="noindex">\n`,
            main: pageOf(asked, kind, found),
          }),
        )
      },
    },
  ]
}

function pageOf(asked: string, only: Kind | undefined, found: readonly Found[]): Html {
  const counts = KINDS.map((kind) => [kind, found.filter((one) => one.kind === kind)] as const).filter(
    ([, some]) => some.length > 0,
  )
  const title =
    asked === '' ? 'Search' : `${found.length === 1 ? '1 result' : `${found.length} results`} for “${asked}”`
  const shown = counts.filter(([kind]) => only === undefined || kind === only)
  return html`<div class="fb-wrap"><div class="lead"><h1>${title}</h1>
${finder(asked)}
${counts.length < 2 ? undefined : chips(asked, only, counts, found.length)}</div>
${asked === '' || found.length > 0 ? undefined : nothing()}
<div class="found">${shown.map(([kind, some]) => section(kind, some, asked))}</div></div>`
}

function nothing(): Html {
  return html`<p>No results. Try a single word, or browse the <a href="/catalogue">catalogue</a>, the <a href="/models">models</a> or the <a href="/docs">guides</a>.</p>`
}

type Counts = readonly (readonly [Kind, readonly Found[]])[]

function chips(asked: string, only: Kind | undefined, counts: Counts, all: number): Html {
  const q = encodeURIComponent(asked)
  return html`<nav class="chips" aria-label="Kinds">${chip(`/search?q=${q}`, `All ${all}`, only === undefined)}${counts.map(([kind, some]) => chip(`/search?q=${q}&kind=${kind}`, `${TITLES[kind]} ${some.length}`, kind === only))}</nav>`
}

function section(kind: Kind, some: readonly Found[], asked: string): Html {
  const words = new Set(wordsOf(asked))
  const rows = some.slice(0, MOST_OF_KIND).map((one) => {
    const { href, title, where, isCode } = one
    const link = isCode ? html`<a class="fb-code" href="${href}">${title}</a>` : html`<a href="${href}">${title}</a>`
    return html`<li><h3>${link}</h3>${where === '' ? undefined : html`<p class="found__where">${marked(where, words)}</p>`}<p>${marked(excerpt(one, words), words)}</p></li>\n`
  })
  return html`<section aria-labelledby="r-${kind}"><h2 id="r-${kind}">${TITLES[kind]}</h2><div><ol>${rows}</ol>${some.length > rows.length ? html`<p class="fb-hint">The best ${rows.length} of ${some.length}. Another word narrows them down.</p>` : undefined}</div></section>\n`
}

/** As much of a text as shows where the words are. */
function excerpt({ text, places }: Found, words: ReadonlySet<string>): string {
  if (text.length <= EXCERPT) return text
  const found = [...words].flatMap((word) => places?.get(word) ?? [])
  const from = found.length === 0 ? 0 : Math.max(0, Math.min(...found) - EXCERPT / 3)
  const start = from === 0 ? 0 : text.indexOf(' ', from) + 1
  return `${start === 0 ? '' : '… '}${text.slice(start, start + EXCERPT).replace(/\s\S*$/, '')} …`
}

/** The words that were looked for are told apart from the others. */
function marked(text: string, words: ReadonlySet<string>): readonly Html[] {
  const shown: Html[] = []
  let from = 0
  for (const match of text.matchAll(WORD)) {
    const [word] = match
    if (!wordsOf(word).some((one) => words.has(one))) continue
    shown.push(html`${text.slice(from, match.index)}<mark>${word}</mark>`)
    from = match.index + word.length
  }
  return [...shown, html`${text.slice(from)}`]
}
