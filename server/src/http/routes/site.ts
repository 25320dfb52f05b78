import { html } from '../../kernel/html.ts'
import type { Family } from '../families.ts'
import { addPageRoutes, type PageRoute } from '../page-routes.ts'
import { type Pages, sendPage } from '../pages/page.ts'

type Parts = {
  readonly pages: Pick<Pages, 'wide'>
  /** Under which callers reach the gateway; undefined where nobody said. */
  readonly baseUrl: string | undefined
  /** What other rooms show there. */
  readonly routes: readonly PageRoute[]
}

/** The most that a form of ours has. */
const FORM_BYTES = 16_384

/** What people find at site_url. */
export function siteFamily({ pages, baseUrl, routes }: Parts): Family {
  const home = pages.wide({
    kind: 'fault',
    title: 'A metered gateway',
    main: html`<div><h1>Models and data, with a hard ceiling on spend</h1>
<p class="fault__say">One key for models and data. The price is known before it is paid, and a call that does not fit into the budget is refused before anything is asked.</p></div>
<section aria-labelledby="call"><h2 id="call">Where to call</h2>
<dl class="fb-kv"><div><dt>Address</dt><dd>${baseUrl === undefined ? 'Ask the operator' : html`<code>${baseUrl}</code>`}</dd></div>
<div><dt>Protocols</dt><dd>OpenAI, Anthropic and Gemini</dd></div>
<div><dt>Key</dt><dd>From the operator, sent as <code>Authorization: Bearer</code></dd></div></dl></section>`,
  })
  return {
    name: 'site',
    prefix: '/',
    dialect: 'html',
    bodies: 'form',
    bodyBytes: FORM_BYTES,
    register(scope) {
      scope.get('', { config: { access: 'public' }, exposeHeadRoute: true }, (_request, reply) => sendPage(reply, home))
      addPageRoutes(scope, routes)
    },
  }
}
