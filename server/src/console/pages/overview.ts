import { type Html, html } from '../../kernel/html.ts'
import { formatUsd, type Nanos, nanos, ZERO } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { dayOf, momentOf, shortDayOf, timeOf } from '../../people-pages/views/words.ts'
import { withCommas } from '../../site/money.ts'
import { budgetLabel, type KeyState, type ShownKey } from './key-parts.ts'
import type { EndedCall, ShownBalance, ShownBudget, ShownUsage } from './overview-data.ts'
import { asSet, bar, card, exact, meter, micros } from './parts.ts'

type Shown = {
  readonly nowMs: number
  /** The first day of the month, UTC. */
  readonly from: Date
  readonly balance: ShownBalance
  readonly usage: ShownUsage
  readonly calls: readonly EndedCall[]
  /** The workspace's own, of a month; null where it has none. */
  readonly budget: ShownBudget | null
  readonly keys: readonly ShownKey[]
  readonly states: ReadonlyMap<string, KeyState>
  /** Where keys are. */
  readonly keysPath: string
  readonly mayMakeKeys: boolean
}

/** Operations that a chart tells apart; the others are one. */
const TOLD_APART = 5
const DAY_MS = 86_400_000

export function overview(shown: Shown): Html {
  const { nowMs, from, keysPath, mayMakeKeys } = shown
  const now = new Date(nowMs)
  return html`<div class="fb-title"><div><h1>Overview</h1><p>${dayOf(from)} to ${dayOf(now)}, UTC. Read at ${timeOf(now)}.</p></div>${
    mayMakeKeys
      ? html`<div class="fb-actions"><a class="fb-button" href="${keysPath}/new">${icon('key')}New key</a></div>`
      : undefined
  }</div>
${figures(shown)}
<div class="fb-cols">
${chart(shown)}${attention(shown)}${byOperation(shown)}${latest(shown)}</div>`
}

function figures({ balance, usage, budget, nowMs }: Shown): Html {
  const { totals, buckets } = usage
  const today = buckets.find(({ start }) => start.getTime() === Math.floor(nowMs / DAY_MS) * DAY_MS)
  const tokens = totals.input_tokens + totals.output_tokens
  const share = totals.requests === 0 ? 0 : (totals.failed_requests / totals.requests) * 100
  return html`<dl class="cells">
<div class="fb-stat"><dt>Balance you can spend</dt><dd class="v">${meter(balance.available)}</dd><dd>${exact(balance.held)} is held</dd></div>
<div class="fb-stat"><dt>Spent today</dt><dd class="v">${meter(today?.charged ?? ZERO)}</dd><dd>${requestsOf(today?.requests ?? 0)}</dd></div>
<div class="fb-stat w6">${month(totals.charged, budget)}</div>
<div class="fb-stat w4"><dt>Requests this month</dt><dd class="v">${withCommas(totals.requests)}</dd></div>
<div class="fb-stat w4"><dt>Failed</dt><dd class="v">${withCommas(totals.failed_requests)}<small>${share.toFixed(2)} %</small></dd></div>
<div class="fb-stat w4"><dt>Tokens</dt><dd class="v">${withCommas(tokens)}</dd></div>
</dl>`
}

const requestsOf = (count: number) => `${withCommas(count)} ${count === 1 ? 'request' : 'requests'}`

function month(charged: Nanos, budget: ShownBudget | null): Html {
  const state = budget?.state ?? null
  if (budget === null || state === null)
    return html`<dt>Spent this month</dt><dd class="v">${meter(charged)}</dd><dd>The workspace has no budget for a month. The balance bounds it.</dd>`
  const { spent, left, resets_at: resets } = state
  const held = nanos(spent > charged ? spent - charged : 0n)
  const spending = { charged: nanos(spent - held), held, left, limit: budget.amount }
  return html`<dt>Spent this month, of the workspace’s ${asSet(budget.amount)}</dt><dd class="v">${meter(charged)}</dd><dd>${bar(spending, budgetLabel(spending))}</dd><dd>${micros(left)} left${resets === null ? '' : ` until ${shortDayOf(resets)}`}. Then calls are refused, not billed.</dd>`
}

type Ranked = {
  readonly name: string
  readonly colour: number
  readonly calls: number
  readonly charged: Nanos
  readonly days: ReadonlyMap<number, Nanos>
}

/** The operations that cost most, and the others as one: together they are the month, to the nano. */
function ranked({ groups }: ShownUsage): readonly Ranked[] {
  const sorted = groups.toSorted((one, other) => (one.totals.charged < other.totals.charged ? 1 : -1))
  const isOther = ({ kind }: (typeof sorted)[number], at: number) => kind !== 'group' || at >= TOLD_APART
  const apart = sorted.filter((group, at) => !isOther(group, at))
  const rest = sorted.filter(isOther)
  const daysOf = (some: typeof sorted) => {
    const days = new Map<number, Nanos>()
    for (const { buckets } of some)
      for (const { start, charged } of buckets)
        days.set(start.getTime(), nanos((days.get(start.getTime()) ?? 0n) + charged))
    return days
  }
  const rows = apart.map((group, at) => ({
    ...{ name: group.value ?? '', colour: at + 1, calls: group.totals.requests, charged: group.totals.charged },
    days: daysOf([group]),
  }))
  if (rest.length === 0) return rows
  const calls = rest.reduce((sum, { totals }) => sum + totals.requests, 0)
  const charged = nanos(rest.reduce((sum, { totals }) => sum + totals.charged, 0n))
  return [...rows, { name: 'other', colour: TOLD_APART + 1, calls, charged, days: daysOf(rest) }]
}

function chart({ usage, from, nowMs }: Shown): Html {
  const rows = ranked(usage)
  const count = Math.floor((nowMs - from.getTime()) / DAY_MS) + 1
  const days = Array.from({ length: count }, (_, at) => from.getTime() + at * DAY_MS)
  const sumOf = (day: number) => rows.reduce((sum, { days: own }) => sum + (own.get(day) ?? 0n), 0n)
  const most = days.reduce((top, day) => (sumOf(day) > top ? sumOf(day) : top), 0n)
  const width = 100 / count
  const bars = days.map((day, at) => {
    let y = 100
    return rows.map(({ colour, days: own }) => {
      const height = most === 0n ? 0 : Number(((own.get(day) ?? 0n) * 10_000n) / most) / 100
      y -= height
      return height === 0
        ? undefined
        : html`<rect class="fb-v${colour}" x="${(at * width + width * 0.16).toFixed(2)}" y="${y.toFixed(2)}" width="${(width * 0.68).toFixed(2)}" height="${height.toFixed(2)}"/>`
    })
  })
  const label = `Spend a day by operation. The most was ${formatUsd(nanos(most))} dollars. The table has the sums.`
  const first = new Set([0, count - 1, Math.floor((count - 1) / 2)])
  return card(
    'spend',
    'Spend by operation',
    html`<div class="fb-chart"><div class="fb-chart__y"><span>${micros(nanos(most))}</span><span>0</span></div><svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="fb-grid-line" d="M0 0H100M0 50H100"/>${bars.flatMap((day) => day.filter((one) => one !== undefined))}<path class="fb-base-line" d="M0 100H100"/></svg><div class="fb-chart__x">${days.map((day, at) => html`<span>${first.has(at) ? new Date(day).getUTCDate() : ''}</span>`)}</div></div>`,
    { kind: 'fb-c8', beside: html`<span class="fb-dim">USD a day</span>` },
  )
}

function byOperation({ usage }: Shown): Html {
  const rows = ranked(usage).map(
    ({ name, colour, calls, charged }) =>
      html`<tr><td><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="fb-v${colour}" width="10" height="10" rx="1.5"/></svg>${name}</td><td class="fb-end fb-dim">${withCommas(calls)}</td><td class="fb-end">${exact(charged)}</td></tr>`,
  )
  const { requests, charged } = usage.totals
  return card(
    'operations',
    'By operation',
    html`<table class="fb-table fb-table--dense rank"><thead><tr><th scope="col">Operation</th><th scope="col" class="fb-end">Calls</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${rows}<tr class="fb-total"><td>Month</td><td class="fb-end">${withCommas(requests)}</td><td class="fb-end">${exact(charged)}</td></tr></tbody></table>`,
    { kind: 'fb-c4' },
  )
}

const WEEK_MS = 7 * DAY_MS

/** What waits for somebody, each with one thing to do. */
function attention(shown: Shown): Html {
  const items = waiting(shown)
  return card(
    'attention',
    'Needs attention',
    items.length === 0
      ? html`<div class="fb-card__body"><p class="fb-soft">Nothing. No budget of a key is used up, and none expires within a week.</p></div>`
      : html`<ul class="attend">${items.map(({ title, text, href, word }) => html`<li>${icon('warn')}<p><b><bdi>${title}</bdi></b><span class="fb-sub">${text}</span></p><a class="fb-button fb-button--small fb-button--quiet" href="${href}">${word}<span class="fb-hide"> ${title}</span></a></li>`)}</ul>`,
    {
      kind: 'fb-c4',
      isPlain: true,
      beside: html`<span class="fb-dim">${items.length === 0 ? '' : items.length}</span>`,
    },
  )
}

const ITEMS = 5

function waiting({ keys, states, keysPath, nowMs }: Shown) {
  const usedUp = keys
    .filter(({ id }) => states.get(id)?.budget?.left === ZERO)
    .map(({ id, name }) => ({
      title: name,
      text: 'Its budget is used up: calls are refused.',
      href: `${keysPath}/${id}/edit`,
      word: 'Raise',
    }))
  const ending = keys.flatMap(({ id, name, expires_at: at }) =>
    at !== null && at.getTime() - nowMs < WEEK_MS
      ? [{ title: name, text: `It expires on ${shortDayOf(at)}.`, href: `${keysPath}/${id}`, word: 'Rotate' }]
      : [],
  )
  return [...usedUp, ...ending].slice(0, ITEMS)
}

function latest({ calls, nowMs }: Shown): Html {
  const rows = calls.map(
    ({ operation, model, outcome, failed, cost, begun_at: begun, ended_at: at }) =>
      html`<tr><td class="fb-dim fb-nowrap">${momentOf(at, new Date(nowMs))}</td><td>${operation ?? '–'}${model === null ? undefined : html`<span class="fb-sub">${model}</span>`}</td><td>${stateOf(outcome, failed)}</td><td class="fb-end fb-dim wide fb-nowrap">${begun === null ? '' : `${withCommas(Math.max(0, at.getTime() - begun.getTime()))} ms`}</td><td class="fb-end">${exact(cost)}</td></tr>`,
  )
  return card(
    'latest',
    'Latest calls',
    html`<table class="fb-table fb-table--card fb-table--dense feed"><thead><tr><th scope="col">Time, UTC</th><th scope="col">Operation</th><th scope="col">State</th><th scope="col" class="fb-end wide">Took</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${rows}</tbody></table>`,
    { kind: 'fb-c8', isPlain: true },
  )
}

function stateOf(outcome: EndedCall['outcome'], failed: boolean): Html | string {
  if (outcome === 'posted') return failed ? 'Charged, failed' : 'Charged'
  return html`<span class="fb-badge">${icon('square')}Not charged</span>`
}
