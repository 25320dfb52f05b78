import { ACCOUNT_PREFIX } from '../../account/route.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { codeBlock, codeTabs } from '../../site/code.ts'
import { copyButton, legend } from './parts.ts'
import { type SnippetParts, snippets } from './snippets.ts'

/**
 * What the holder of a ticket sees, without an account. The server never sees whose ticket it is: the secret stands behind the # of the address, and the island asks with it
 * what is left. Without the script the page says how to ask.
 */
export function ticketPage({
  pages,
  ...parts
}: SnippetParts & { readonly pages: Pick<Pages, 'open' | 'assets'> }): Page {
  return pages.open({
    title: 'Your ticket',
    head: html`<meta name="robots" content="noindex">`,
    script: { src: pages.assets.console.script, connectTo: [] },
    main: html`<div class="keep" data-island="ticket" data-ask="${ACCOUNT_PREFIX}/ticket"><div class="keep__main">
<div class="grant__who"><span class="grant__face">${icon('ticket')}</span><h1 data-slot="name" dir="auto">Your ticket</h1><p class="keep__meta"><span class="fb-badge" data-slot="badge" hidden></span><span data-slot="lead">Somebody gave you an amount to spend on calls. You need no account.</span></p></div>
<div class="fb-callout fb-callout--warn" role="status" data-slot="trouble" hidden>${icon('warn')}<div><strong data-slot="trouble-title"></strong><p data-slot="trouble-text"></p></div></div>
${withoutScript(parts)}<section class="keep__card" aria-labelledby="left" data-slot="state" hidden><div class="keep__sum"><h2 id="left">Left of <span data-slot="amount"></span></h2><p>${exactly('left')}</p></div>
${emptyBar()}${legend({ charged: exactly('charged'), held: exactly('held'), left: exactly('left') })}<p class="fb-hint" data-slot="ends"></p></section>
<section class="keep__card" aria-labelledby="use"><h2 id="use">How to use it</h2><p class="fb-soft">It is an API key like any other: give it to a program where that takes a key, with the address <code>${parts.baseUrl ?? 'http://127.0.0.1:8700'}</code>. To try it, put it into your terminal first.</p>
<div class="fb-block fb-block--wrap"><div class="fb-block__head"><span>Your terminal</span>${copyButton('secret')}</div><pre tabindex="0" role="region" aria-label="Your terminal"><code id="secret">export FAREBOX_KEY='what stands behind the # of this address'</code></pre></div>
${codeTabs('call', 'A call', snippets(parts, null), copyButton('call'))}<p class="fb-hint" data-slot="sample" hidden>This sample calls rerank, which your ticket may not. Call what is listed beside it: <a href="/docs">how</a>.</p>
<p class="fb-hint">Each answer says what the call cost, in its header <code>${parts.headerNames.cost}</code>. A call that does not fit is refused before it costs anything.</p></section></div>
<aside class="keep__side" aria-label="The ticket"><div class="fb-ticket" data-slot="ticket" hidden><div><p class="mandate__sum"><small>Ticket</small><span data-slot="sum"></span></p></div>
<div><dl class="fb-rows"><div><dt>From</dt><dd data-slot="from" dir="auto"></dd></div><div><dt>Money</dt><dd data-slot="mode"></dd></div><div><dt>Until</dt><dd data-slot="until"></dd></div><div><dt>It may call</dt><dd data-slot="scopes"></dd></div></dl></div></div>
<p class="fb-hint">${icon('lock')} Whoever has this link can spend what is left. Keep it as you keep a password: what stands behind the # is sent to nobody who serves this page.</p></aside></div>`,
  })
}

/** Nine places in groups, once the island has filled them in. */
function exactly(name: 'charged' | 'held' | 'left'): Html {
  return html`<data class="fb-money" data-money="${name}"><span></span><i></i><i></i></data>`
}

/** What the page has to say by itself. The island hides it. */
function withoutScript({ baseUrl }: SnippetParts): Html {
  return html`<section class="keep__card" aria-labelledby="ask" data-slot="without"><h2 id="ask">What is left</h2><p class="fb-soft">This page shows it with a script, because no server is sent what stands behind the # of the address. Without the script, ask for it yourself:</p>
${codeBlock({
  title: 'Your terminal',
  label: 'How to ask what is left',
  code: `export FAREBOX_KEY='what stands behind the #'
curl -s ${baseUrl ?? 'http://127.0.0.1:8700'}/v1/balance \\
  -H "Authorization: Bearer $FAREBOX_KEY"`,
})}<p class="fb-hint"><code>budget</code> has the amount, what was spent, and what is left.</p></section>
`
}

/** Drawn to scale by the island. */
function emptyBar(): Html {
  return html`<svg class="fb-bar fb-bar--big" role="img" aria-label="What is left" data-slot="bar"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="0%" height="100%" rx="1"/><rect width="0%" height="100%" fill="url(#fb-hatch)"/><rect class="edge" width="0%" y=".5" height="25"/><rect class="stop" x="100%" y="-4" width="3" height="34" rx="1"/></svg>
`
}
