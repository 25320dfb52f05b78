import { isSoldByUnit, type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { FaultCode } from '../../kernel/fault.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Model } from '../../pricing/models.ts'
import type { PriceBook } from '../../pricing/price-book.ts'
import type { HeaderNames } from '../../wording/header-names.ts'
import { codeTabs } from '../code.ts'
import { shownUsd } from '../money.ts'
import type { Reference } from '../reference/described.ts'
import { errorsOf, parametersOf, shortAnswersOf, shortBodyOf, shownMethod, shownPath } from '../reference/parts.ts'
import { testModeNote } from '../test-mode-note.ts'
import { exampleAnswer } from './example-answer.ts'
import { pendingBadge } from './list.ts'
import { agentOf, curlOf, needsModel, pythonOf, sampleCall, typescriptOf } from './samples.ts'
import { CATEGORIES, limitsOf, priceOf, type ShownPrice, tiersOf } from './words.ts'

export type OperationParts = {
  readonly names: Names
  /** The word in names of headers. */
  readonly provider: string
  readonly headerNames: HeaderNames
  readonly baseUrl: string | undefined
  readonly reference: Reference | null
  /** Whether the reference has pages. */
  readonly hasReference: boolean
  /** What is to be said above all of it. */
  readonly note: () => Html | undefined
}

type Shown = {
  readonly book: PriceBook
  /** That can be asked by this operation, in the order of their names. */
  readonly models: readonly Model[]
  readonly model: string | undefined
}

const MILLISECONDS = 1_000

/** What an operation does, what it costs, how it is called and how it refuses. */
export function operationPage(operation: Operation, parts: OperationParts, shown: Shown): Html {
  const { names, headerNames, reference } = parts
  const { id, summary, example, method, path, definition, category, quotable } = operation
  const price = priceOf(operation, shown.book)
  const described = reference?.find(id)
  // Tools answer whole.
  const isTool = operation.protocol !== 'gemini_stream'
  const call = sampleCall(operation, example, shown.model, { names, headerNames })
  const taken = described && reference && (shortBodyOf(described, reference) ?? parametersOf(described, reference))
  const answers = described && reference && shortAnswersOf(described, reference)
  const errors = described && errorsOf(described, OFTEN)
  const answered = exampleAnswer(id, headerNames)
  return html`<div class="fb-wrap">
<div class="lead"><nav class="fb-crumbs" aria-label="Where you are"><a href="/catalogue">Catalogue</a>${icon('right')}<a href="/catalogue?category=${category}">${CATEGORIES[category].title}</a>${icon('right')}<span aria-current="page">${id}</span></nav>
<h1><code>${id}</code></h1><p>${summary}.</p>
<p class="route">${shownMethod(method)}${shownPath(spell(path, { ...names, model: '{model}' }))}${definition === 'complete' ? html`<span class="fb-badge fb-badge--ok">${icon('check')}Complete</span>` : pendingBadge()}${quotable ? html`<span class="fb-badge">${icon('check')}Can be quoted</span>` : undefined}</p></div>
${parts.note()}
<div class="op"><div>
<section><h2 id="call">Call it</h2>${needsModel(example) ? modelForm(operation, shown) : undefined}${codeTabs('code', 'Code', [{ title: 'curl', code: curlOf(call) }, { title: 'TypeScript', code: typescriptOf(call, parts.provider) }, { title: 'Python', code: pythonOf(call, headerNames) }, ...(isTool ? [{ title: 'Agent tool', code: agentOf(call, price) }] : [])])}<p class="fb-soft"><code>BASE_URL</code> is ${parts.baseUrl === undefined ? 'the address of the gateway' : html`<code>${parts.baseUrl}</code>`}, <code>API_KEY</code> a key of yours. ${isTool ? html`For agents, these are the arguments of the tool <code>use</code>.` : 'Streaming works over HTTP only.'} ${isSoldByUnit(operation) && operation.actsFor ? 'A user must have linked an account to the key first.' : ''}</p></section>
${answered && html`<section><h2 id="example">The answer</h2>${answered}</section>`}
<section><h2 id="fields">What it takes</h2>${definition === 'pending' ? html`<p class="fb-soft">Its definition is pending: apart from what is listed here, request and answer pass through unchanged.</p>` : undefined}${taken ?? html`<p class="fb-soft">It has no documented parameters.</p>`}<p class="more">${described && parts.hasReference ? html`<a href="/reference/${id}">Whole reference: every member, headers, answers, refusals</a>` : undefined}</p></section>
${answers && html`<section><h2 id="answer">What an answer has</h2>${answers}</section>`}
${errors && html`<section><h2 id="errors">When it is refused</h2><p class="fb-soft">A refusal before the call costs nothing. These are common${parts.hasReference ? html`; <a href="/reference/${id}#refusals">all are in the reference</a>` : undefined}.</p>${errors}</section>`}
</div>
<aside class="op__side" aria-label="Price and limits">
<div class="fb-card"><div class="fb-card__head"><h2>Price and limits</h2></div><div class="fb-card__body"><dl class="fb-rows">
${priceRows(price)}
${sideRows(operation)}</dl><p class="fb-hint">Limits per key, in the tiers free, starter and growth.</p></div></div>
<p class="fb-hint">A price on this page is a published estimate: a quote tells what you pay. <a href="${price.by === 'model' ? '/models' : '/docs/pricing'}">${price.by === 'model' ? 'Prices by model, and a calculator' : 'How prices and holds work'}</a></p>
</aside></div>
</div>`
}

/** What callers meet, beside mistakes of their own that say what they are. */
const OFTEN: ReadonlySet<FaultCode> = new Set([
  ...(['invalid_request', 'insufficient_balance', 'budget_exceeded', 'cost_cap_exceeded'] as const),
  ...(['idempotency_running', 'link_required', 'rate_limit_exceeded'] as const),
  ...(['upstream_transport', 'upstream_unreachable', 'not_configured'] as const),
])

function modelForm({ id }: Operation, { book, models, model }: Shown): Html | undefined {
  if (models.length === 0) return html`<p class="fb-soft">No model is sold for it at the moment.</p>`
  return html`${testModeNote(book)}<form class="finder" action="/catalogue/${id}"><label for="model">Model</label><select class="fb-input fb-input--small" id="model" name="model">${models.map((one) => html`<option${one.id === model ? html` selected` : undefined}>${one.id}</option>`)}</select><button class="fb-button fb-button--quiet" type="submit">Show</button></form>`
}

function priceRows(price: ShownPrice): Html {
  const row = (name: string, value: Html | string) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`
  if (price.by === 'nothing') return row('Price', 'Free')
  if (price.by === 'nobody') return row('Price', 'Not sold at the moment')
  if (price.by === 'model') return row(`Price per ${price.unit}`, html`<a href="/models">by model</a>`)
  const { usd, million, unit, version } = price
  return html`${row(`Price per ${unit}`, shownUsd(usd))}${million === undefined ? undefined : row('Price per million', shownUsd(million))}${row('Price version', version === '0' ? '0, published' : version)}`
}

function sideRows(operation: Operation): Html {
  const { limits, attempts } = operation
  const rows: readonly (readonly [string, string])[] = [
    ['Requests per minute', tiersOf('requestsPerMinute')],
    ...(limits.includes('tokens') ? [['Tokens a minute', tiersOf('tokensPerMinute')] as const] : []),
    ...(limits.includes('concurrency') ? [['Calls at once', tiersOf('concurrency')] as const] : []),
    ...limitsOf({ ...operation, limits: limits.filter((name) => name !== 'tokens' && name !== 'concurrency') }).map(
      (text) => ['Of its own', text] as const,
    ),
    ...(isSoldByUnit(operation)
      ? [['Upstream’s time', `${operation.upstream.totalMs / MILLISECONDS} s`] as const]
      : []),
    ['Requests to upstreams, at most', String(attempts.requests)],
  ]
  return html`${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}`
}
