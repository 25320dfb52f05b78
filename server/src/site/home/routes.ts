import { isSoldByUnit } from '../../catalogue/operation.ts'
import { type Html, html } from '../../kernel/html.ts'
import { breakable } from '../../pages/breakable.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { PriceBook } from '../../pricing/price-book.ts'
import type { HeaderNames } from '../../wording/header-names.ts'
import { priceOf } from '../catalogue/words.ts'
import { codeBlock } from '../code.ts'
import { dayOf } from '../dates.ts'
import type { KeptPrices } from '../kept-prices.ts'
import { asPrice, shownUsd } from '../money.ts'
import type { Shell } from '../shell.ts'
import { CEILING, WAYS } from './ceiling.ts'
import { FIGURES } from './figures.ts'
import { pathOfACall } from './path-of-a-call.ts'
import { RECORDED_CALL } from './recorded-call.ts'

type Parts = {
  readonly shell: Shell
  /** Under whose name the website is shown. */
  readonly name: string
  readonly prices: Pick<KeptPrices, 'now'>
  readonly headerNames: HeaderNames
}

const LISTED = 6
const PLACES = 5

/** What it is, in one screen, with a call and what it cost; below it, why that can be relied on. */
export function homeRoutes({ shell, name, prices, headerNames }: Parts): readonly PageRoute[] {
  return [
    {
      method: 'GET',
      path: '/',
      answer: () =>
        shell.page({
          title: 'A metered gateway with a hard ceiling on spend',
          description:
            'One credential for models and data. The price before the call, a hard ceiling on spend, and a ledger that explains every charge.',
          path: '/',
          section: 'home',
          main: html`${hero(name, headerNames)}
<section class="band" aria-labelledby="path"><div class="fb-wrap"><div class="band__head"><h2 id="path">The path of a call</h2><p>Every call takes the same path. The hold is durable before the upstream is asked. The charge is durable before the answer ends.</p></div>
${pathOfACall({ held: grouped(RECORDED_CALL.heldUsd), charged: grouped(RECORDED_CALL.chargedUsd) })}</div></section>
<section class="band" aria-labelledby="ceiling"><div class="fb-wrap"><div class="band__head"><h2 id="ceiling">A ceiling, not an alert</h2><p>Give a key 5 dollars. Let 1,000 calls of at most 10 cents race for it from three processes. Drawn to scale, this is what happens each time.</p></div>
${CEILING}<p class="source"><span>3 processes, 15 rounds with large batches and 15 with small ones: 50 each time. Recorded on 16 November 2026, ${proofLink(shell, 'ledger-races')}.</span></p>
${WAYS}</div></section>
${shell.isShown('/proof') ? proofs() : undefined}
${offers(prices.now())}`,
        }),
    },
  ]
}

function proofLink(shell: Shell, name: string): Html {
  return shell.isShown('/proof') ? html`<a href="/proof">${name}</a>` : html`${name}`
}

function hero(name: string, headers: HeaderNames): Html {
  const { on, path, body, maxCostUsd, priceVersion, chargedUsd } = RECORDED_CALL
  const request = `curl -i $BASE_URL${path} \\
  -H "Authorization: Bearer $API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "${headers.maxCost}: ${maxCostUsd}" \\
  -d '{"model": "${body.model}", "max_tokens": ${body.max_tokens},
       "messages": [{"role": "user", "content":
       "${body.messages[0].content}"}]}'`
  const answer = html`HTTP/1.1 200 OK
<span class="k">${headers.priceVersion}</span>: ${priceVersion}
<span class="h"><span class="k">${headers.cost}</span>: ${chargedUsd}</span>`
  return html`<section class="fb-wrap hero">
<div><h1>Nobody spends more than they have.</h1>
<p class="hero__lead">${name} is a metered gateway for models and data. One credential, the price before you pay, and a hard ceiling on spend: for your app, your team and your agents.</p>
<div class="fb-actions"><a class="fb-button fb-button--large" href="/docs/quick-start">Start</a><a class="fb-button fb-button--large fb-button--quiet" href="/catalogue">See the catalogue</a></div>
<p class="hero__note">The call shown here was made in the sandbox on ${on}.</p></div>
<div class="call">${codeBlock({ title: 'A call', code: request, label: 'The request' }, { title: 'Its answer, headers', code: answer, label: 'The headers of the answer' })}${ticket()}</div>
</section>`
}

function ticket(): Html {
  const { model, prices, tokens, costs, heldUsd, chargedUsd, backUsd } = RECORDED_CALL
  const row = (what: string, usd: string, kind = '') =>
    html`<div${kind === '' ? undefined : html` class="${kind}"`}><dt>${what}</dt><dd>${shownUsd(usd)}</dd></div>`
  return html`<div class="fb-ticket" role="group" aria-label="What the call cost">
<div><p class="ticket__title"><b>What this call cost</b><span>tokens of ${model}</span></p>
<dl class="fb-rows">${row(`${tokens.input} input × $${prices.input}`, costs.input)}${row(`${tokens.output} output × $${prices.output}`, costs.output)}${row('Charged', chargedUsd, 'sum')}</dl></div>
<div><dl class="fb-rows">${row('Held before the call', heldUsd)}${row('Back at once', backUsd)}</dl></div></div>`
}

/** As in the drawing, where there is no markup for gaps. */
function grouped(usd: string): string {
  return `$${usd.replace(/(\.\d{3})(\d{3})(\d{3})$/, '$1\u2009$2\u2009$3')}`
}

function proofs(): Html {
  const row = ({ figure, what, proof, on }: (typeof FIGURES)[number]) =>
    html`<tr><td class="fig fb-num">${figure}</td><td class="what">${what}</td><td class="src"><a href="/proof">${proof}</a>, ${dayOf(new Date(on))}</td></tr>`
  return html`<section class="band" aria-labelledby="shown"><div class="fb-wrap"><div class="band__head"><h2 id="shown">Shown, not claimed</h2><p>Each figure was recorded by a test that can be run again with its seed. Goals that were missed stand beside those that were met: <a href="/proof">all proofs</a>.</p></div>
<table class="fb-table fb-table--plain proofs"><thead><tr><th scope="col">Figure</th><th scope="col">What was shown</th><th scope="col" class="fb-end">Recorded</th></tr></thead><tbody>${FIGURES.map(row)}</tbody></table></div></section>`
}

function soldText({ models, soldIn }: PriceBook): string {
  return soldIn === 'live'
    ? `${models.length} models are sold here.`
    : `${models.length} models can be tried here with test keys; none is sold in live mode.`
}

function offers(book: PriceBook): Html {
  const priced = book.sold.filter(isSoldByUnit).flatMap((operation) => {
    const price = priceOf(operation, book)
    return price.by === 'unit' && operation.price.unit !== 'token' ? [{ operation, price }] : []
  })
  const row = ({ operation: { id, summary }, price: { usd, unit } }: (typeof priced)[number]) =>
    html`<tr><th scope="row"><a class="fb-code" href="/catalogue/${id}">${breakable(id)}</a><span class="fb-sub">${summary}</span></th><td class="fb-end">${shownUsd(asPrice(usd), { places: PLACES })}</td><td class="fb-dim">${unit}</td></tr>`
  return html`<section class="band" aria-label="For agents, and at published prices"><div class="fb-wrap"><div class="pair">
<div><h2>Give an agent a budget</h2><p class="say">A mandate says what an agent may call, how much in total and per call, how often and until when. It can’t spend more, however it is prompted. You can pause or end it at any time. Agents connect over MCP; they need only the address.</p>
<p class="more"><a href="/docs/mandates">How mandates work</a> · <a href="/docs/agents">Connect an agent</a></p></div>
<div><h2>One key, published prices</h2><p class="say">Models in three protocols, pictures, videos, and data. What an operation costs is on its page as a published estimate, and in its quote, before you call it. ${soldText(book)}</p>
<table class="fb-table"><thead><tr><th scope="col">Operation</th><th scope="col" class="fb-end">USD</th><th scope="col">per</th></tr></thead><tbody>${priced.slice(0, LISTED).map(row)}</tbody></table>
<p class="more"><a href="/catalogue">All ${book.sold.length} operations</a> · <a href="/models">All models</a></p></div>
</div></div></section>`
}
