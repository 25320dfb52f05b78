import { type Html, html } from '../kernel/html.ts'
import { brand, icon } from '../pages/icons.ts'
import type { Page, Pages } from '../pages/page.ts'
import { THEMES, type Theme } from '../pages/theme.ts'
import { SIGN_IN_BUTTON, SIGN_IN_LINK } from '../pages/viewer.ts'

type Parts = {
  readonly pages: Pick<Pages, 'whole' | 'assets'>
  /** Where the website is; undefined where nobody said, and then no page says where it truly is. */
  readonly siteUrl: string | undefined
  /** Pages that not every operator shows. */
  readonly show: ReadonlySet<ShownPages>
}

/** What an operator shows or leaves out (`site.show`). */
export type ShownPages = 'operator_guides' | 'proof' | 'reference'

/** Which entry of the navigation a page belongs to. */
export type Section = 'home' | 'catalogue' | 'models' | 'docs' | 'reference' | 'proof' | 'status' | 'search'

export type SitePage = {
  readonly title: string
  /** A sentence or two, for search engines and for whoever passes the address on. */
  readonly description: string
  /** Below site_url, without a query. */
  readonly path: string
  readonly section: Section
  /** What stands in `<main>`. */
  readonly main: Html
  readonly status?: number
  readonly head?: Html
}

type Text = { readonly type: string; readonly body: string }

export type Shell = {
  /** Whether a page of ours is there to be linked to. */
  readonly isShown: (path: string) => boolean
  readonly page: (content: SitePage) => Page
  /** What is no page, and is the same for all too: Markdown, drawings, lists for machines. */
  readonly text: (content: Text) => Page
}

const NAVIGATION: readonly (readonly [Section, string, string])[] = [
  ['catalogue', '/catalogue', 'Catalogue'],
  ['models', '/models', 'Models'],
  ['docs', '/docs', 'Guides'],
  ['reference', '/reference', 'API'],
  ['proof', '/proof', 'Proof'],
  ['status', '/status', 'Status'],
]

const COLUMNS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'Use it',
    [
      ['/catalogue', 'Catalogue'],
      ['/models', 'Models and prices'],
      ['/reference', 'API reference'],
      ['/docs', 'Guides'],
    ],
  ],
  [
    'Learn it',
    [
      ['/docs/quick-start', 'Quick start'],
      ['/docs/pricing', 'Pricing and holds'],
      ['/docs/agents', 'Agents'],
      ['/docs/errors', 'Errors and their fixes'],
    ],
  ],
  [
    'Check it',
    [
      ['/proof', 'Proof'],
      ['/status', 'Status'],
      ['/search', 'Search'],
      ['/llms.txt', 'For agents'],
    ],
  ],
]

const DEFINITIONS = html`<svg class="fb-defs" aria-hidden="true"><defs><pattern id="fb-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="fb-hatch-paper" width="6" height="6"/><path class="fb-hatch-line" d="M0 0V6"/></pattern></defs></svg>`

/** How every page of the website begins and ends. */
export function createShell({ pages, siteUrl, show }: Parts): Shell {
  const isShown = (path: string) =>
    (path !== '/proof' || show.has('proof')) && (path !== '/reference' || show.has('reference'))
  const navigation = NAVIGATION.filter(([, href]) => isShown(href))
  const columns = COLUMNS.map(([title, links]) => [title, links.filter(([href]) => isShown(href))] as const)
  const { label } = pages.assets
  const mark = brand('/', pages.assets)

  function headOf({ description, path, head }: SitePage): Html {
    const canonical =
      siteUrl === undefined ? undefined : html`<link rel="canonical" href="${new URL(path, siteUrl).href}">\n`
    return html`<meta name="description" content="${description}">\n${canonical}${head}`
  }

  function top(section: Section): Html {
    const links = navigation.map(([name, href, title]) => [href, title, name === section] as const)
    return html`<a class="fb-skip" href="#content">Skip to the content</a>
<header class="fb-top"><div class="fb-wrap">${mark}
<nav aria-label="Main">${links.map((one) => linkTo(...one))}</nav>
<div class="fb-top__end"><form class="fb-find" role="search" aria-label="This site" action="/search"><label class="fb-hide" for="find">Search</label>${icon('search')}<input id="find" name="q" type="search" maxlength="100" placeholder="Search" autocomplete="off"></form>${SIGN_IN_BUTTON}
<details class="fb-menu"><summary aria-label="Menu">${icon('menu')}</summary><ul>${[...links, ['/search', 'Search', section === 'search'] as const].map((one) => html`<li>${linkTo(...one)}</li>`)}${SIGN_IN_LINK}</ul></details></div>
</div></header>`
  }

  function foot(path: string): Html {
    const { legal, support, name } = label
    const own = [...legal, ...(support === null ? [] : [support])]
    return html`<footer class="fb-foot"><div class="fb-wrap">
<div>${mark}<p>${name}: models and data by the call, with a hard ceiling on spend.</p>${own.length === 0 ? undefined : html`<ul class="fb-legal">${own.map(({ href, title }) => html`<li><a href="${href}">${title}</a></li>`)}</ul>`}${themeForm(path)}</div>
${columns.map(([title, links]) => column(title, links))}
</div></footer>`
  }

  return {
    isShown,
    page(content) {
      const { title, status, section, main, path } = content
      const page = pages.whole(
        { title, ...(status !== undefined && { status }), head: headOf(content) },
        html`${DEFINITIONS}
${top(section)}
<main id="content">${main}</main>
${foot(path)}`,
      )
      return { ...page, isPublic: true }
    },
    text: ({ type, body }) => ({
      status: 200,
      headers: { 'content-type': type, 'x-content-type-options': 'nosniff', 'content-security-policy': TEXT_POLICY },
      body,
      isPublic: true,
    }),
  }
}

/** A drawing that somebody opens by itself asks for nothing and runs nothing. */
const TEXT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

function linkTo(href: string, title: string, isCurrent: boolean): Html {
  return isCurrent ? html`<a href="${href}" aria-current="page">${title}</a>` : html`<a href="${href}">${title}</a>`
}

function column(title: string, links: readonly (readonly [string, string])[]): Html {
  return html`<div><h2>${title}</h2><ul>${links.map(([href, text]) => html`<li><a href="${href}">${text}</a></li>`)}</ul></div>`
}

const THEME_WORDS: Readonly<Record<Theme, string>> = { system: 'System', light: 'Light', dark: 'Dark' }

/** Without a script the server has to hear of it: it answers with a cookie and leads back. */
function themeForm(path: string): Html {
  return html`<form class="fb-theme" method="post" action="/theme"><input type="hidden" name="back" value="${path}"><fieldset><legend>Colours</legend>${THEMES.map((theme) => html`<button name="theme" value="${theme}" aria-pressed="false">${THEME_WORDS[theme]}</button>`)}</fieldset></form>`
}
