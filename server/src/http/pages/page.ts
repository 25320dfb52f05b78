import type { FastifyReply } from 'fastify'
import { type Html, html } from '../../kernel/html.ts'
import type { Assets } from './assets.ts'
import { brand } from './icons.ts'

/** A page for a person: no script, no style of its own, nothing from elsewhere. */
export type Page = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What the browser is to keep, each a value of Set-Cookie. */
  readonly cookies?: readonly string[]
  readonly body: string
}

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

export function sendPage(reply: FastifyReply, { status, headers, cookies = [], body }: Page): FastifyReply {
  for (const cookie of cookies) reply.header('set-cookie', cookie)
  return reply.code(status).headers(headers).send(body)
}

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
}

/** A browser holds a form's answer, wherever that leads on to, against where forms may be sent. */
function policyFor(formTargets: readonly string[]) {
  const forms = ["'self'", ...formTargets.filter((source) => SOURCE.test(source))].join(' ')
  return {
    'content-security-policy': `default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action ${forms}; frame-ancestors 'none'; base-uri 'none'`,
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

  function whole({ status = 200, title, formTargets = [] }: Content, body: Html): Page {
    const text = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Farebox</title>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${assets.icon}" type="image/svg+xml">
<link rel="preload" href="${assets.font}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${assets.stylesheet}">
</head>
<body>
${body}
</body>
</html>
`
    return { status, headers: { ...headers, ...policyFor(formTargets) }, body: String(text) }
  }

  return {
    /** One card, for whatever a person came to decide, to read, or to fill in: a form is narrow. */
    door: (content: Content & { readonly isNarrow?: boolean }): Page =>
      whole(
        content,
        html`<div class="door"><header>${brand(siteUrl)}</header>
<main id="content"><div class="door__card${content.isNarrow === true ? '' : ' door__card--wide'}">${content.main}</div>
${content.below && html`<p class="door__below">${content.below}</p>`}</main>
<footer></footer></div>`,
      ),

    /** The whole width, under the bar of the website. */
    wide: (content: Content & { readonly kind: string }): Page =>
      whole(
        content,
        html`<a class="fb-skip" href="#content">Skip to the content</a>
<header class="fb-top"><div class="fb-wrap">${brand(siteUrl)}</div></header>
<main id="content" class="fb-wrap ${content.kind}">${content.main}</main>`,
      ),
  }
}
