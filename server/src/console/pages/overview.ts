import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, nanos, usd, ZERO } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { clockOf, dayOf, shortDayOf } from '../../people-pages/views/words.ts'
import { withCommas } from '../../site/money.ts'
import { type EndedCall, type ListedCall, rowOf, spanOf } from '../listed-calls.ts'
import { budgetLabel, type KeyState, type ShownKey } from './key-parts.ts'
import type { ShownBalance, ShownBudget, ShownUsage } from './overview-data.ts'
import { asSet, bar, card, exact, meter, micros } from './parts.ts'
import type { RequestPage } from './request-forms.ts'
import { badgeOf } from './request-parts.ts'
import { type SpendShown, spendCards } from './spend.ts'

type Shown = SpendShown & {
  readonly balance: ShownBalance
  readonly usage: ShownUsage
  /** The latest of all, and those that run. */
  readonly requests: RequestPage
  /** The workspace's own, of a month; null where it has none. */
  readonly budget: ShownBudget | null
  readonly keys: readonly ShownKey[]
  readonly states: ReadonlyMap<string, KeyState>
  /** Where keys and requests are. */
  readonly keysPath: string
  readonly requestsPath: string
  readonly mayMakeKeys: boolean
}

const DAY_MS = 86_400_000

export function overview(shown: Shown): Html {
  const { nowMs, from, keysPath, mayMakeKeys } = shown
  const now = new Date(nowMs)
  const { chart, table } = spendCards(shown)
  return html`<div class="fb-title"><div><h1>Overview</h1><p>${from.getUTCDate()} to ${dayOf(now)}, UTC. Read at ${clockOf(now)}.</p></div>${
    mayMakeKeys
      ? html`<div class="fb-actions"><a class="fb-button" href="${keysPath}/new">${icon('key')}New key</a></div>`
      : undefined
  }</div>
${figures(shown)}
<div class="fb-cols">
${chart}${attention(shown)}${table}${latest(shown)}</div>`
}

function figures({ balance, usage, budget, requests, nowMs, from }: Shown): Html {
  const { totals, buckets } = usage
  const today = buckets.find(({ start }) => start.getTime() === Math.floor(nowMs / DAY_MS) * DAY_MS)
  const tokens = totals.input_tokens + totals.output_tokens
  const share = totals.requests === 0 ? 0 : (totals.failed_requests / totals.requests) * 100
  const count = Math.floor((nowMs - from.getTime()) / DAY_MS) + 1
  const byDay = new Map(buckets.map((bucket) => [bucket.start.getTime(), bucket]))
  const daily = (of: (bucket: ShownUsage['buckets'][number]) => number) =>
    Array.from({ length: count }, (_, at) => {
      const bucket = byDay.get(from.getTime() + at * DAY_MS)
      return bucket === undefined ? 0 : of(bucket)
    })
  return html`<dl class="cells">
<div class="fb-stat"><dt>Balance you can spend</dt><dd class="v">${meter(balance.available)}</dd><dd>${exact(balance.held)} is held</dd></div>
<div class="fb-stat"><dt>Spent today</dt><dd class="v">${meter(today?.charged ?? ZERO)}</dd><dd>${requestsOf(today?.requests ?? 0)}</dd></div>
<div class="fb-stat w6">${month(totals.charged, budget)}</div>
<div class="fb-stat"><dt>Requests this month</dt><dd class="v">${withCommas(totals.requests)}</dd><dd>${spark(daily((one) => one.requests))}</dd></div>
<div class="fb-stat"><dt>Failed</dt><dd class="v">${withCommas(totals.failed_requests)}<small>${share.toFixed(2)} %</small></dd><dd>${spark(
    daily((one) => one.failed_requests),
    'bad',
  )}</dd></div>
<div class="fb-stat"><dt>Tokens</dt><dd class="v">${shortCount(tokens)}</dd><dd>${spark(daily((one) => one.input_tokens + one.output_tokens))}</dd></div>
${timeStat(requests.data)}
</dl>`
}

const requestsOf = (count: number) => `${withCommas(count)} ${count === 1 ? 'request' : 'requests'}`

/** Of what nobody counts one by one. */
function shortCount(count: number): Html {
  if (count < 1_000_000) return html`${withCommas(count)}`
  const [size, word] = count < 1e9 ? [1e6, 'million'] : [1e9, 'billion']
  return html`${(count / size).toFixed(1)}<small>${word}</small>`
}

/** Decoration: its figure is beside it. */
function spark(values: readonly number[], kind = ''): Html {
  const most = Math.max(1, ...values)
  const last = Math.max(1, values.length - 1)
  const points = values.map((value, at) => `${((at / last) * 100).toFixed(1)} ${(30 - (value / most) * 28).toFixed(1)}`)
  const line = points.length === 1 ? [...points, `100 ${points[0]?.split(' ')[1] ?? 30}`] : points
  return html`<svg class="fb-spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true"><path class="area" d="M${line.join('L')}L100 30L0 30Z"/><path class="${kind}" d="M${line.join('L')}"/></svg>`
}

/** Times are kept with each call and added up nowhere: those of the latest are looked at. */
function timeStat(calls: readonly EndedCall[]): Html {
  const times = calls.flatMap(({ begun_at: begun, ended_at: ended, outcome }) =>
    begun === null || outcome !== 'posted' ? [] : [Math.max(0, Date.parse(ended) - Date.parse(begun))],
  )
  const median = times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)]
  return html`<div class="fb-stat"><dt>Median time</dt><dd class="v">${median === undefined ? '–' : unitApart(spanOf(median))}</dd><dd>of the latest ${times.length}${spark(times.toReversed())}</dd></div>`
}

function unitApart(text: string): Html {
  const [, figure = text, unit = ''] = /^([\d.]+) (.*)$/.exec(text) ?? []
  return html`${figure}<small>${unit}</small>`
}

function month(charged: Nanos, budget: ShownBudget | null): Html {
  const state = budget?.state ?? null
  if (budget === null || state === null)
    return html`<dt>Spent this month</dt><dd class="v">${meter(charged)}</dd><dd>The workspace has no budget for a month. The balance bounds it.</dd>`
  const { spent, held, left, resets_at: resets } = state
  const spending = { charged: nanos(spent - held), held, left, limit: budget.amount }
  return html`<dt>Spent this month, of the workspace’s ${asSet(budget.amount)}</dt><dd class="v">${meter(charged)}</dd><dd>${bar(spending, budgetLabel(spending))}</dd><dd>${micros(left)} left${resets === null ? '' : ` until ${shortDayOf(resets)}`}. Then calls are refused, not billed.</dd>`
}

const WEEK_MS = 7 * DAY_MS

/** What waits for somebody, each with one thing to do. */
function attention(shown: Shown): Html {
  const items = waiting(shown)
  return card(
    'attention',
    'Needs attention',
    items.length === 0
      ? html`<div class="fb-card__body"><p class="fb-soft">Nothing. No budget of a key is used up, none expires within a week, and no call of the last hour failed.</p></div>`
      : html`<ul class="attend">${items.map(({ shape, kind, title, text, href, word }) => html`<li><span class="${kind}">${icon(shape)}</span><p><b><bdi>${title}</bdi></b><span class="fb-sub">${text}</span></p><a class="fb-button fb-button--small fb-button--quiet" href="${href}">${word}<span class="fb-hide">: ${title}</span></a></li>`)}</ul>`,
    {
      kind: 'fb-c4',
      isPlain: true,
      beside: html`<span class="fb-dim">${items.length === 0 ? '' : items.length}</span>`,
    },
  )
}

const ITEMS = 5

type Item = {
  readonly shape: Parameters<typeof icon>[0]
  readonly kind: 'bad' | 'warn'
  readonly title: string
  readonly text: string
  readonly href: string
  readonly word: string
}

function waiting({ keys, states, keysPath, requestsPath, requests, nowMs }: Shown): readonly Item[] {
  const usedUp = keys
    .filter(({ id }) => states.get(id)?.budget?.left === ZERO)
    .map(({ id, name }): Item => {
      const text = 'Its budget is used up: calls are refused.'
      return { shape: 'refused', kind: 'bad', title: name, text, href: `${keysPath}/${id}/edit`, word: 'Raise' }
    })
  const ending = keys.flatMap(({ id, name, expires_at: at }): Item[] => {
    if (at === null || at.getTime() - nowMs >= WEEK_MS) return []
    const text = `It expires on ${shortDayOf(at)}.`
    return [{ shape: 'clock', kind: 'warn', title: name, text, href: `${keysPath}/${id}`, word: 'Rotate' }]
  })
  return [...usedUp, ...failing(requests.data, requestsPath, nowMs), ...ending].slice(0, ITEMS)
}

const HOUR_MS = 3_600_000

function failing(calls: readonly EndedCall[], path: string, nowMs: number): readonly Item[] {
  const lately = calls.filter(({ ended_at: at }) => nowMs - Date.parse(at) < HOUR_MS)
  const failed = lately.filter((call) => call.failed)
  if (failed.length === 0) return []
  const charged = failed.filter(({ cost }) => usd(cost.usd) > ZERO).length
  const paid = charged === 0 ? 'None was charged.' : `Charged for what they had used: ${charged}.`
  const title = failed.length === 1 ? 'A call failed' : `${failed.length} calls failed`
  const text = `Of the latest ${lately.length} within an hour. ${paid}`
  const href = `${path}?within=hour${failed.every(({ outcome }) => outcome === 'voided') ? '&outcome=voided' : ''}`
  return [{ shape: 'warn', kind: 'bad', title, text, href, word: 'See them' }]
}

const LATEST = 8

function latest({ requests, requestsPath, nowMs }: Shown): Html {
  const calls: readonly ListedCall[] = [...requests.open.slice(0, LATEST / 2), ...requests.data].slice(0, LATEST)
  const rows = calls.map((call) => {
    const said = rowOf(call, nowMs)
    const { id, at, day, clock, operation, model, maker, took, usd: cost } = said
    const amount = cost === '' ? html`<span class="fb-dim">–</span>` : exact(usd(cost))
    return html`<tr><td class="fb-dim fb-nowrap"><time datetime="${at}">${day === '' ? clock : day}</time></td><td class="cut"><a href="${requestsPath}/${id}" title="${operation}">${operation}</a>${model === '' ? undefined : html`<span class="fb-sub" title="${model}">${model}</span>`}</td><td class="wide cut" title="${maker}"><bdi>${maker}</bdi></td><td>${badgeOf(said)}</td><td class="fb-end fb-dim wide fb-nowrap">${took}</td><td class="fb-end">${amount}</td></tr>`
  })
  return card(
    'latest',
    'Latest requests',
    html`<table class="fb-table fb-table--card fb-table--dense feed"><thead><tr><th scope="col">Time, UTC</th><th scope="col">Operation</th><th scope="col" class="wide">Key or agent</th><th scope="col">State</th><th scope="col" class="fb-end wide">Took</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${rows}</tbody></table>`,
    { kind: 'fb-c8', isPlain: true, beside: html`<a href="${requestsPath}">All requests</a>` },
  )
}
