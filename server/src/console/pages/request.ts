import { type Html, html } from '../../kernel/html.ts'
import { nanos, usd, ZERO } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { dayOf } from '../../people-pages/views/words.ts'
import { shownUsd, withCommas } from '../../site/money.ts'
import { hrefWith, momentParts } from '../listed-calls.ts'
import { bar, card, copyButton, exact } from './parts.ts'
import type { OpenRequest, RefusedRequest, ShownRequest } from './request-forms.ts'
import { ledgerCard } from './request-ledger.ts'
import { refusedBadge } from './request-parts.ts'
import { type RefusedShown, refusedCards } from './request-refused.ts'
import { timelineCard } from './request-timeline.ts'

type Where = {
  /** Where requests and keys are. */
  readonly path: string
  readonly keysPath: string
  readonly nowMs: number
}

type Call = Pick<ShownRequest, 'id' | 'operation' | 'model' | 'made_by' | 'end_user' | 'tags'>

/** One call that has ended: what it cost and why, where its time went, what it did to the balance, and who was asked. */
export function requestView(call: ShownRequest, where: Where): Html {
  return html`${head(call, where, html`${stateBadge(call)}${call.detail?.status === undefined || call.detail.status === null ? undefined : html`<span>status ${call.detail.status}</span>`}`, call.ended_at)}
<div class="fb-cols">
${costCard(call)}${timelineCard(call)}${ledgerCard(call.postings, where.nowMs)}<div class="fb-c5 fb-cols top">${heldCard(call)}${attemptsCard(call)}${aboutCard(call, where)}</div>
</div>`
}

/** One that runs, or whose outcome nobody knows yet. With a script it becomes the one that has ended. */
export function openRequestView(call: OpenRequest, where: Where & { readonly live: string }): Html {
  const isRunning = call.outcome === 'running'
  const badge = isRunning
    ? html`<span class="fb-badge fb-badge--held">${icon('held')}Held</span>`
    : html`<span class="fb-badge fb-badge--warn">${icon('unsettled')}Unsettled</span>`
  const held = usd(call.held.usd)
  const postings = [
    { at: call.begun_at, entry: 'hold', debit: 'available', credit: 'held', amount: call.held } as const,
  ].filter(() => held > ZERO)
  return html`${head(call, where, badge, call.begun_at)}
<div class="fb-cols" data-island="open-request" data-live="${where.live}" data-id="${call.id}">
${card(
  'cost',
  isRunning ? 'It runs' : 'Nobody knows yet what it used',
  html`<p class="sumline">${exact(held)}</p><p class="fb-soft">${
    isRunning
      ? 'Held: the most that it can cost. When it ends, what it used is charged, and the rest comes back at once.'
      : 'Held: its process died while it ran. The money stays set aside until the upstream’s word is known, for 24 hours at the most. Then it comes back, and what was used is our loss.'
  }</p>`,
  { kind: 'fb-c5 top' },
)}${ledgerCard(postings, where.nowMs)}${aboutCard(call, where)}</div>`
}

/** One that was refused before it began: why, and what would have let it through. */
export function refusedRequestView(call: RefusedRequest, where: Where, shown: RefusedShown): Html {
  return html`${head(call, where, refusedBadge(call.refusal.status), call.ended_at)}
<div class="fb-cols">
${refusedCards(call, shown)}</div>`
}

function head(call: Call, { path, keysPath, nowMs }: Where, badge: Html, at: string): Html {
  const { id, operation, model, made_by: maker } = call
  const [, clock, fraction] = momentParts(at, nowMs)
  const alike = hrefWith(path, { ...(operation !== null && { operation }), ...(maker !== null && { key: maker.id }) })
  return html`<nav class="fb-crumbs" aria-label="Where you are"><a href="${path}">Requests</a>${icon('chevron')}<span aria-current="page" class="id" id="request-id">${id}</span>${copyButton('request-id')}</nav>
<div class="fb-title"><div><h1>${operation ?? 'A call that never began'}</h1><p class="meta">${badge}${model === null ? undefined : html`<span><bdi>${model}</bdi></span>`}${makerShown(maker, keysPath)}<span>${dayOf(new Date(at))}, ${clock}<span class="fb-dim">${fraction}</span> UTC</span></p></div><div class="fb-actions"><a class="fb-button fb-button--quiet" href="${alike}">Others like it</a></div></div>
`
}

function makerShown(maker: Call['made_by'], keysPath: string): Html | undefined {
  if (maker === null) return undefined
  const href = maker.kind === 'key' ? `${keysPath}/${maker.id}` : '/grants'
  return html`<span>${maker.kind === 'key' ? 'key' : 'agent'} <a href="${href}"><bdi>${maker.name}</bdi></a></span>`
}

function stateBadge({ ledger: [first] }: ShownRequest): Html {
  return first !== undefined && usd(first.charged.usd) > ZERO
    ? html`<span class="fb-badge">${icon('charged')}Charged</span>`
    : html`<span class="fb-badge">${icon('square')}Not charged</span>`
}

function costCard(call: ShownRequest): Html {
  const { terms, detail, overrun, cost, outcome } = call
  const lost = usd(overrun.usd)
  const back = givenBack(call)
  const rows = terms.map(({ count, unit, price_usd: price, cost_usd: product }) =>
    line(`${withCommas(count)} ${unit}`, html`× ${shownUsd(price)}`, shownUsd(atLeastNanos(product))),
  )
  const corrections = [
    ...(lost > ZERO && rows.length > 0
      ? [line('Beyond what was held: our loss', undefined, html`−${exact(lost)}`)]
      : []),
    ...(back > ZERO ? [line('Given back', undefined, html`−${exact(back)}`)] : []),
  ]
  const source = detail?.evidence.usage_source
  return card(
    'cost',
    'What it cost',
    html`<p class="sumline">${exact(usd(cost.usd))}</p>
${rows.length === 0 && corrections.length === 0 ? undefined : html`<div class="formula">${rows}${corrections}<div class="sum"><span>Charged</span><span></span>${exact(usd(cost.usd))}</div></div>`}
<p class="fb-hint chart-foot">${whyOf(call)}${rows.length > 0 && outcome === 'posted' ? ' Added up exactly, and rounded once to the nano-dollar.' : ''}${typeof source === 'string' ? html` ${source === 'provider' ? 'Usage as the upstream reported it' : 'Usage as we counted it'} (<code>usage_source: ${source}</code>).` : undefined}</p>`,
    { kind: 'fb-c5' },
  )
}

/** A term may be finer than what is charged, and never looks coarser. */
function atLeastNanos(text: string): string {
  const [whole = '', fraction] = text.split('.')
  return text.includes('/') ? text : `${whole}.${(fraction ?? '').padEnd(9, '0')}`
}

function line(name: string, factor: Html | undefined, amount: Html): Html {
  return html`<div><span>${name}</span><span class="fb-dim">${factor}</span><span>${amount}</span></div>`
}

function whyOf({ outcome, detail, failed, held, terms, cost }: ShownRequest): string {
  if (outcome === 'voided') {
    const back = usd(held.usd) > ZERO ? ' What was held came back at once.' : ''
    const failing = detail?.upstream.at(-1)
    if (failing !== undefined && failing.outcome !== 'answered')
      return `Nothing was charged, because no usable answer came: ${reasonOf(failing.reason)}.${back}`
    return `Nothing was charged: this answer is not one that is paid for.${back}`
  }
  if (failed)
    return usd(cost.usd) > ZERO
      ? 'It failed, and was charged for what the upstream had done until then.'
      : 'It failed, and the upstream reported no usage: nothing was charged.'
  if (detail === null) return 'How it was worked out was not kept. The amount is the ledger’s, and exact.'
  return terms.length === 0 ? `${detail.formula ?? 'It has a fixed price'}.` : ''
}

function givenBack({ cost, ledger }: ShownRequest) {
  const [charge] = ledger
  const charged = charge === undefined ? ZERO : usd(charge.charged.usd)
  return nanos(charged - usd(cost.usd))
}

function heldCard(call: ShownRequest): Html {
  const [first] = call.ledger
  const held = usd(call.held.usd)
  const charged = first === undefined ? ZERO : usd(first.charged.usd)
  const promotional = usd(first?.promotional?.usd ?? '0')
  const back = givenBack(call)
  const pairs = [
    ['The most it could cost, held', held],
    ['Charged', charged],
    ['Back at once', nanos(held - charged)],
    ...(back > ZERO ? [['Given back later', back] as const] : []),
    ...(promotional > ZERO ? [['Of the charge, paid by credit that was given', promotional] as const] : []),
    ['Overrun, our loss', usd(call.overrun.usd)],
  ] as const
  return card(
    'held',
    'Held and charged',
    html`${held === ZERO ? undefined : bar({ charged, held: ZERO, limit: held }, `Charged ${first?.charged.usd ?? '0'} dollars of ${call.held.usd} that were held`)}<dl class="fb-kv">${pairs.map(([name, amount]) => html`<div><dt>${name}</dt><dd>${exact(amount)}</dd></div>`)}</dl>`,
    { kind: 'budget' },
  )
}

const REASONS: Readonly<Record<string, string>> = {
  connect: 'no connection could be made in time',
  dns: 'its name could not be resolved',
  tls: 'no secure connection could be made',
  breaker: 'it kept failing, and was left alone for a moment',
  quota: 'its quota was used up',
  headers_timeout: 'its answer did not begin in time',
  idle_timeout: 'its answer stopped coming',
  total_timeout: 'its answer did not end in time',
  reset: 'the connection was closed before its answer ended',
  too_large: 'its answer was too large',
  protocol: 'what came is not proper HTTP',
  aborted: 'the call was given up on our side',
  internal: 'a mistake on our side',
}

function reasonOf(reason: string | null): string {
  return reason === null ? 'nobody knows why' : (REASONS[reason] ?? reason.replaceAll('_', ' '))
}

const ROUTES: Readonly<Record<string, string>> = {
  only: 'It is the only one of the model.',
  sticky: 'It is the first for this conversation: its prompt cache is there.',
  spill: 'The first had too much of this key.',
  failover: 'Those before it had failed, or could not be asked.',
}

function attemptsCard({ detail, route }: ShownRequest): Html | undefined {
  if (detail === null) return undefined
  const { upstream, routing } = detail
  const why =
    routing === null
      ? undefined
      : html`<div class="fb-card__body"><p class="fb-soft">By the route <b><bdi>${routing.upstream_model}</bdi></b> of <b>${routing.slot}</b>. ${ROUTES[routing.reason]}</p></div>`
  if (upstream.length === 0)
    return card(
      'asked',
      'Upstreams asked',
      html`<p class="fb-soft">None${route === null ? '' : ` but ${route}`}: it was answered here.</p>`,
    )
  const rows = upstream.map(
    ({ slot, outcome, status, reason }, at) =>
      html`<tr><td>${slot}<span class="fb-sub">${ORDER[at] ?? `${at + 1}th`}</span></td><td>${attemptBadge(outcome, status)}${outcome === 'answered' ? undefined : html`<span class="fb-sub">${reasonOf(reason)}${at < upstream.length - 1 ? ', so another was asked' : ''}</span>`}</td><td class="fb-end">${status ?? '–'}</td></tr>`,
  )
  return card(
    'asked',
    'Upstreams asked',
    html`<table class="fb-table fb-table--card fb-table--dense"><thead><tr><th scope="col">Slot</th><th scope="col">Outcome</th><th scope="col" class="fb-end">Status</th></tr></thead><tbody>${rows}</tbody></table>${why}`,
    {
      isPlain: true,
      beside: html`<span class="fb-dim">${upstream.length} ${upstream.length === 1 ? 'attempt' : 'attempts'}</span>`,
    },
  )
}

const ORDER = ['first', 'second', 'third']

const STATUSES: Readonly<Record<number, string>> = {
  429: 'Rate limited',
  503: 'Overloaded',
  529: 'Overloaded',
  500: 'Failed',
  502: 'Failed',
}

function attemptBadge(outcome: string, status: number | null): Html {
  if (outcome === 'answered' && (status === null || status < 400))
    return html`<span class="fb-badge fb-badge--ok">${icon('check')}Answered</span>`
  const word =
    outcome === 'answered' ? (STATUSES[status ?? 0] ?? 'Refused') : outcome === 'not_sent' ? 'Not asked' : 'Failed'
  return html`<span class="fb-badge fb-badge--bad">${icon('refused')}${word}</span>`
}

/** For whom and for what it was made: each leads to the others of the same. */
function aboutCard({ end_user: endUser, tags }: Call, { path }: Where): Html {
  const pairs: (readonly [string, Html | string])[] = [
    ...(endUser === null
      ? []
      : [
          [
            'End user',
            html`<a href="${hrefWith(path, { end_user: endUser.id })}"><bdi>${endUser.label ?? endUser.id}</bdi></a>`,
          ] as const,
        ]),
    ...Object.entries(tags).map(
      ([name, value]) =>
        [
          `Tag ${name}`,
          html`<a href="${hrefWith(path, { tag: `${name}=${value}` })}"><bdi>${value}</bdi></a>`,
        ] as const,
    ),
  ]
  return card(
    'about',
    'Made for',
    pairs.length === 0
      ? html`<p class="fb-soft">No end user and no tag was named. <a href="/docs/budgets">How to name them</a>.</p>`
      : html`<dl class="fb-kv">${pairs.map(([name, value]) => html`<div><dt><bdi>${name}</bdi></dt><dd>${value}</dd></div>`)}</dl>`,
  )
}
