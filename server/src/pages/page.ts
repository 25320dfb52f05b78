import { type Html, html } from '../kernel/html.ts'
import type { Assets } from './assets.ts'
import { brand } from './icons.ts'

/** A page for a person: no style of its own, nothing from elsewhere, and no script but in the console. */
export type Page = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What the browser is to keep, each a value of Set-Cookie. */
  readonly cookies?: readonly string[]
  readonly body: string
  /** It is the same for all who have chosen the same colours, and may be kept by whoever asked. */
  readonly isPublic?: true
}

/** A page as it leaves: it may have been packed. */
export type SentPage = Omit<Page, 'body'> & { readonly body: string | Buffer }

export type Pages = ReturnType<typeof createPages>

type Parts = {
  readonly assets: Assets
  /** Where the website is; undefined where nobody said. */
  readonly siteUrl: string | undefined
  /** What a request that a page makes tells of it; nothing by default. */
  readonly referrerPolicy?: ReferrerPolicy
}

/**
 * The address of a page may have what came from a platform, or a link that works once: never more than its origin is told. A browser that
 * may tell nothing at all sends a form without an origin, by which a form of ours is known.
 */
type ReferrerPolicy = 'no-referrer' | 'strict-origin'

/** Shows another page of ours in place of the answer to a form, so that to load it again sends nothing again. */
export function seeOther(location: string, cookies: readonly string[] = []): Page {
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, cookies, body: '' }
}

type Content = {
  readonly status?: number
  readonly title: string
  readonly main: Html
  /** Below the card. */
  readonly below?: Html
  /** Where the answer to a form may lead, beside pages of ours: sources as a policy names them. */
  readonly formTargets?: readonly string[]
  /** What else stands in the head: nothing that is known to this file. */
  readonly head?: Html
  /** In place of the style sheets of all pages. */
  readonly stylesheets?: readonly string[]
  /** Pages of the console run a script, the one where a client is allowed to spend, and that of a ticket. */
  readonly script?: PageScript
}

/** A script of ours, and whom beside this site it may ask. It writes texts and attributes: the browser refuses markup. */
export type PageScript = { readonly src: string | null; readonly connectTo: readonly string[] }

/** A browser holds a form's answer, wherever that leads on to, against where forms may be sent. */
function policyFor(formTargets: readonly string[], script: PageScript | undefined) {
  const own = (sources: readonly string[]) => ["'self'", ...sources.filter((source) => SOURCE.test(source))].join(' ')
  const scripts =
    script === undefined
      ? ''
      : `; script-src 'self'; connect-src ${own(script.connectTo)}; require-trusted-types-for 'script'; trusted-types 'none'`
  return {
    'content-security-policy': `default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action ${own(formTargets)}; frame-ancestors 'none'; base-uri 'none'${scripts}`,
  }
}

/** A scheme, or an origin: nothing that could begin another directive. */
const SOURCE = /^[a-z][a-z0-9+.-]*:(?:\/\/[a-z0-9.-]+(?::\d{1,5})?)?$/

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
}

/** The one place that knows how a page begins and ends. */
export function createPages({ assets, siteUrl, referrerPolicy = 'no-referrer' }: Parts) {
  const headers = { ...HEADERS, 'referrer-policy': referrerPolicy }

  const { label } = assets

  function whole(content: Omit<Content, 'main'>, body: Html) {
    const { status = 200, title, formTargets = [], head, stylesheets = assets.stylesheets, script } = content
    const text = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${label.name}</title>
${head}<meta name="color-scheme" content="light dark">
<link rel="icon" href="${assets.icon.href}" type="${assets.icon.type}">
<link rel="preload" href="${assets.font}" as="font" type="font/woff2" crossorigin>
${stylesheets.map((href) => html`<link rel="stylesheet" href="${href}">\n`)}${
  script?.src && html`<script type="module" src="${script.src}"></script>\n`
}</head>
<body>
${body}
</body>
</html>
`
    return { status, headers: { ...headers, ...policyFor(formTargets, script) }, body: String(text) }
  }

  return {
    /** A page whose body is made elsewhere. */
    whole,

    /** What every page shows of whose it is. */
    assets,

    /** One card, for whatever a person came to decide, to read, or to fill in: a form is narrow. */
    card: (content: Content & { readonly isNarrow?: boolean }): Page =>
      whole(
        content,
        html`<div class="card-page"><header>${brand(siteUrl, assets)}</header>
<main id="content"><div class="card-page__card${content.isNarrow === true ? '' : ' card-page__card--wide'}">${content.main}</div>
${content.below && html`<p class="card-page__below">${content.below}</p>`}</main>
<footer></footer></div>`,
      ),

    /** What is too much for a card: parts beside each other, with who is signed in above them. */
    open: (content: Content & { readonly who?: Html; readonly foot?: Html }): Page =>
      whole(
        content,
        html`<svg class="fb-defs" aria-hidden="true"><defs><pattern id="fb-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="fb-hatch-paper" width="6" height="6"/><path class="fb-hatch-line" d="M0 0V6"/></pattern></defs></svg>
<div class="card-page"><header>${brand(siteUrl, assets)}${content.who && html`<p class="card-page__who">${content.who}</p>`}</header>
<main id="content">${content.main}</main>
<footer>${content.foot}</footer></div>`,
      ),

    /** The whole width, under the bar of the website. */
    wide: (content: Content & { readonly kind: string }): Page =>
      whole(
        content,
        html`<a class="fb-skip" href="#content">Skip to the content</a>
<header class="fb-top"><div class="fb-wrap">${brand(siteUrl, assets)}</div></header>
<main id="content" class="fb-wrap ${content.kind}">${content.main}</main>`,
      ),
  }
}
