import type { Fault } from '../kernel/fault.ts'
import { type Html, html } from '../kernel/html.ts'
import type { FaultPage } from '../pages/fault-page.ts'
import { createFaultPage } from '../pages/fault-page.ts'
import { icon } from '../pages/icons.ts'
import type { Pages } from '../pages/page.ts'
import { asAsked } from './as-asked.ts'
import { finder } from './search/finder.ts'
import type { Shell } from './shell.ts'

type Parts = { readonly shell: Shell; readonly pages: Pick<Pages, 'wide'> }

/** What is not there, and what can't be answered now, under the bar of the website, with where to go on. Neither needs PostgreSQL. */
export function createSiteFaultPage({ shell, pages }: Parts): FaultPage {
  const plain = createFaultPage(pages)
  return (fault, requestId) => {
    const main = mainOf(fault, requestId, shell)
    if (main === undefined) return plain(fault, requestId)
    const { title, markup } = main
    const head = html`<meta name="robots" content="noindex">\n`
    const description = 'What happened, and where to go next.'
    return asAsked(
      shell.page({ title, description, path: '/', section: 'home', status: fault.status, main: markup, head }),
    )
  }
}

type Main = { readonly title: string; readonly markup: Html }

function mainOf(fault: Fault, requestId: string, shell: Shell): Main | undefined {
  const near = NEAR.filter(([path]) => shell.isShown(path))
  if (fault.code === 'not_sold') return { title: 'Not sold here', markup: missing(fault, requestId, near) }
  if (fault.status === 404) return { title: 'There is no such page', markup: missing(fault, requestId, near) }
  if (fault.status === 503) return { title: 'We can’t answer this now', markup: unavailable(fault, requestId) }
  return undefined
}

const NEAR = [
  ['/catalogue', 'Every operation, with its price'],
  ['/models', 'Models and prices'],
  ['/docs', 'Guides, by who you are'],
  ['/reference', 'Methods, paths and schemas'],
] as const

function missing({ code, message }: Fault, requestId: string, near: readonly (readonly [string, string])[]): Html {
  const isOff = code === 'not_sold'
  return html`<div class="fb-wrap fault"><div><p class="fault__code">404</p><h1>${isOff ? 'Not sold here' : 'There is no such page'}</h1><p class="fault__say">${isOff ? message : 'There is no page at this address. Nothing was charged.'}</p>
${finder('')}</div>
<section aria-labelledby="n1"><h2 id="n1">Where to go next</h2><ul class="near">${near.map(([path, words]) => html`<li><a class="fb-code" href="${path}">${path}</a><span>${words}</span></li>`)}</ul>
<p class="fb-hint">A program that asks for JSON gets 404 <code>${code}</code>, and the same text.</p>${named(requestId)}</section></div>`
}

function unavailable({ code, message }: Fault, requestId: string): Html {
  return html`<div class="fb-wrap fault"><div><p class="fault__code">503</p><h1>We can’t answer this now</h1><p class="fault__say">${message}</p><div class="fb-actions"><a class="fb-button fb-button--large" href="/">${icon('turn')}Go to the home page</a><a class="fb-button fb-button--large fb-button--quiet" href="/status">See the status</a></div></div>
<section aria-labelledby="u1"><h2 id="u1">What that means for</h2><table class="fb-table fb-table--plain"><tbody><tr><th scope="row">Running calls</th><td>They finish. Calls that can’t be settled are not charged.</td></tr><tr><th scope="row">New paid calls</th><td>If the ledger does not answer: 503 <code>billing_dependency_timeout</code> with Retry-After. Safe to send again.</td></tr><tr><th scope="row">Your balance</th><td>Unchanged. Money of calls whose outcome is unknown stays held for at most 24 hours.</td></tr><tr><th scope="row">Catalogue, prices, guides</th><td>Still available, from memory.</td></tr></tbody></table><p class="fault__id"><span class="fb-dim">Code</span> <code>${code}</code></p>${named(requestId)}</section></div>`
}

function named(requestId: string): Html {
  return html`<p class="fault__id"><span class="fb-dim">Request</span> <span class="fb-code">${requestId}</span></p>`
}
