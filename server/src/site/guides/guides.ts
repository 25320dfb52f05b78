import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import { seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { finder } from '../search/finder.ts'
import type { Shell } from '../shell.ts'
import type { Guide, Library } from './library.ts'
import { DOCS_PATH } from './list.ts'

type Parts = { readonly shell: Shell; readonly library: Library }

/** The guides: a list of them, each as a page, as Markdown, and their drawings. */
export function guideRoutes({ shell, library }: Parts): readonly PageRoute[] {
  const { guides, sections, drawings } = library
  const list = shell.page({
    title: 'Guides',
    description: `Guides for ${sections.length} kinds of readers, from the first call to the statement.`,
    path: DOCS_PATH,
    section: 'docs',
    main: listOf(library),
  })
  return [
    { method: 'GET', path: DOCS_PATH, answer: () => list },
    // Where people look for them by the word of the menu.
    { method: 'GET', path: '/guides', answer: () => seeOther(DOCS_PATH) },
    ...guides.flatMap((guide, at): PageRoute[] => {
      const pageNow = () =>
        shell.page({
          title: `${guide.title} · Guides`,
          description: `${guide.note}.`,
          path: guide.path,
          section: 'docs',
          head: html`<link rel="alternate" type="text/markdown" href="${guide.path}.md">\n`,
          main: pageOf(guide, sections, { before: guides[at - 1], after: guides[at + 1] }),
        })
      const markdown = () => shell.text({ type: 'text/markdown; charset=utf-8', body: guide.source() })
      return [
        { method: 'GET', path: guide.path, answer: madeOnce(guide.rendered, pageNow) },
        { method: 'GET', path: `${guide.path}.md`, answer: markdown },
      ]
    }),
    ...[...drawings].map(([path, drawing]): PageRoute => {
      const text = shell.text({ type: 'image/svg+xml', body: drawing })
      return { method: 'GET', path, answer: () => text }
    }),
  ]
}

/** Made again when what it is made of is another. */
function madeOnce<Made>(source: () => unknown, make: () => Made): () => Made {
  let of: unknown
  let made: Made | undefined
  return () => {
    const now = source()
    if (made === undefined || of !== now) made = make()
    of = now
    return made
  }
}

function listOf({ guides, sections: readers }: Library): Html {
  const pathOf = new Map(guides.map(({ name, path }) => [name, path]))
  const sections = readers.map(
    ({ title, who, icon: shape, guides: listed }, at) =>
      html`<section class="reader" aria-labelledby="d${at}"><div><h2 id="d${at}">${icon(shape)}${title}</h2><p>${who}</p></div><ul>${listed.map(({ name, title: one, note }) => html`<li><a href="${pathOf.get(name)}"><b>${one}</b><span>${note}</span></a></li>`)}</ul></section>\n`,
  )
  return html`<div class="fb-wrap"><div class="lead"><h1>Guides</h1><p>Arranged by who you are. Every guide is also Markdown, and <a href="/llms.txt">llms.txt</a> lists them all.</p>
${finder('')}</div>
${sections}</div>`
}

type Beside = { readonly before: Guide | undefined; readonly after: Guide | undefined }

function pageOf(guide: Guide, sections: Library['sections'], { before, after }: Beside): Html {
  const { main, parts: all } = guide.rendered()
  const parts = all.filter(({ depth }) => depth === 2)
  const toc =
    parts.length < 2
      ? html`<div class="docs__toc"></div>`
      : html`<nav class="docs__toc" aria-label="On this page"><h2>On this page</h2><ul>${parts.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`
  return html`<div class="fb-wrap docs">
<nav class="docs__nav" aria-label="Guides">${sections.map(({ title, guides }) => html`<h2>${title}</h2><ul>${guides.map(({ name, title: one }) => html`<li>${link(one, `${DOCS_PATH}/${name}`, guide)}</li>`)}</ul>`)}</nav>
<details class="docs__menu"><summary>Guides: ${guide.title}</summary>${sections.flatMap(({ guides }) => guides.map(({ name, title }) => link(title, `${DOCS_PATH}/${name}`, guide)))}</details>
<div class="prose">
${main}
<p class="fb-hint">This guide as <a href="${guide.path}.md">Markdown</a>.</p>
<nav class="next" aria-label="More guides">${before === undefined ? undefined : html`<a href="${before.path}"><span>Before</span>${before.title}</a>`}${after === undefined ? undefined : html`<a href="${after.path}"><span>Next</span>${after.title}</a>`}</nav>
</div>
${toc}
</div>`
}

function link(title: string, path: string, current: Guide): Html {
  return path === current.path
    ? html`<a href="${path}" aria-current="page">${title}</a>`
    : html`<a href="${path}">${title}</a>`
}
