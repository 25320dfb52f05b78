import { type Html, html } from '../../kernel/html.ts'
import { formatUsd, type Nanos, nanos } from '../../kernel/money.ts'
import { shortDayOf } from '../../people-pages/views/words.ts'
import { withCommas } from '../../site/money.ts'
import type { ShownUsage } from './overview-data.ts'
import { asSet, card, exact } from './parts.ts'

/** By what a month's spend is told apart; each is a link, so that it has an address. */
const WAYS = [
  ['operation', 'Operation', 'No operation'],
  ['model', 'Model', 'No model'],
  ['key', 'Key', 'No key'],
  ['end_user', 'End user', 'Nobody named'],
] as const

const TAG = /^tag:([^=\0]{1,64})$/

export type SpendShown = {
  readonly usage: ShownUsage
  readonly nowMs: number
  /** The first day of the month, UTC. */
  readonly from: Date
  /** As the account API groups usage. */
  readonly by: string
  /** Names of tags that may be told apart. */
  readonly tags: readonly string[]
  /** Of keys and grants, by id. */
  readonly names: ReadonlyMap<string, string>
  /** Where this page is. */
  readonly path: string
}

/** That which somebody has chosen; operations otherwise. */
export function groupingIn(text: string | undefined): string {
  return text !== undefined && (TAG.test(text) || WAYS.some(([way]) => way === text)) ? text : 'operation'
}

/** What a chart tells apart; the others are one. */
const TOLD_APART = 5
const DAY_MS = 86_400_000

type Ranked = {
  readonly name: string
  readonly colour: number
  readonly calls: number
  readonly charged: Nanos
  readonly days: ReadonlyMap<number, Nanos>
}

/** Those that cost most, and the others as one: together they are the month, to the nano. */
function ranked({ usage: { groups }, by, names }: SpendShown): readonly Ranked[] {
  const none = WAYS.find(([way]) => way === by)?.[2] ?? 'Without it'
  const nameOf = ({ value, label }: (typeof groups)[number]) =>
    label ?? (value === null ? none : by === 'key' ? (names.get(value) ?? `key …${value.slice(-8)}`) : value)
  const sorted = groups.toSorted((one, other) => (one.totals.charged < other.totals.charged ? 1 : -1))
  const apart = sorted.filter(({ kind }) => kind !== 'other').slice(0, TOLD_APART)
  const rest = sorted.filter((group) => !apart.includes(group))
  const daysOf = (some: typeof sorted) => {
    const days = new Map<number, Nanos>()
    for (const { start, charged } of some.flatMap(({ buckets }) => buckets))
      days.set(start.getTime(), nanos((days.get(start.getTime()) ?? 0n) + charged))
    return days
  }
  const rows = apart.map((group, at) => ({
    name: nameOf(group),
    colour: at + 1,
    calls: group.totals.requests,
    charged: group.totals.charged,
    days: daysOf([group]),
  }))
  if (rest.length === 0) return rows
  const calls = rest.reduce((sum, { totals }) => sum + totals.requests, 0)
  const charged = nanos(rest.reduce((sum, { totals }) => sum + totals.charged, 0n))
  return [...rows, { name: 'other', colour: TOLD_APART + 1, calls, charged, days: daysOf(rest) }]
}

/** Bars by day, and the table that is their legend and has the sums. */
export function spendCards(shown: SpendShown): { readonly chart: Html; readonly table: Html } {
  const rows = ranked(shown)
  return { chart: chart(shown, rows), table: table(shown, rows) }
}

function wordOf(by: string): string {
  return WAYS.find(([way]) => way === by)?.[1].toLowerCase() ?? `tag ${TAG.exec(by)?.[1] ?? ''}`
}

function ways({ by, tags, path }: SpendShown): Html {
  const all = [
    ...WAYS.map(([way, word]) => [way, word] as const),
    ...new Set([...tags, ...(TAG.exec(by)?.slice(1) ?? [])]),
  ].map((one) => (typeof one === 'string' ? ([`tag:${one}`, `Tag ${one}`] as const) : one))
  return html`<nav class="segments" aria-label="Spend by">${all.map(([way, word]) => html`<a href="${path}${way === 'operation' ? '' : `?by=${encodeURIComponent(way)}`}"${way === by ? html` aria-current="true"` : undefined}><bdi>${word}</bdi></a>`)}</nav>`
}

/** Tenths of a power of ten at which an axis may end, and in how many steps. */
const TOPS = [
  [10n, 2],
  [15n, 3],
  [20n, 2],
  [30n, 3],
  [40n, 2],
  [60n, 3],
  [80n, 2],
  [100n, 2],
] as const
const LEAST_TEN = 1_000n

/** A round amount above the largest day, with four labels at the most. */
function scaleFor(most: bigint): { readonly top: bigint; readonly steps: number } {
  let ten = LEAST_TEN
  while (ten * 10n <= most) ten *= 10n
  const [tenths, steps] = TOPS.find(([tenths]) => (tenths * ten) / 10n >= most) ?? [100n, 2]
  return { top: (tenths * ten) / 10n, steps }
}

function chart(shown: SpendShown, rows: readonly Ranked[]): Html {
  const { from, nowMs, by } = shown
  const count = Math.floor((nowMs - from.getTime()) / DAY_MS) + 1
  const days = Array.from({ length: count }, (_, at) => from.getTime() + at * DAY_MS)
  const sumOf = (day: number) => rows.reduce((sum, { days: own }) => sum + (own.get(day) ?? 0n), 0n)
  const most = days.reduce((top, day) => (sumOf(day) > top ? sumOf(day) : top), 0n)
  const { top, steps } = scaleFor(most)
  const width = 100 / count
  const bars = days.flatMap((day, at) => {
    let y = 100
    return rows.flatMap(({ colour, days: own }) => {
      const height = Number(((own.get(day) ?? 0n) * 10_000n) / top) / 100
      y -= height
      return height <= 0
        ? []
        : [
            html`<rect class="fb-v${colour}" x="${(at * width + width * 0.16).toFixed(2)}" y="${y.toFixed(2)}" width="${(width * 0.68).toFixed(2)}" height="${height.toFixed(2)}"/>`,
          ]
    })
  })
  const labels = Array.from({ length: steps + 1 }, (_, at) => nanos((top * BigInt(steps - at)) / BigInt(steps)))
  const [first = 0, last = 0] = [days[0], days.at(-1)]
  const usd = (day: number) => formatUsd(nanos(sumOf(day)))
  const label = `Spend a day by ${wordOf(by)}, from ${usd(first)} dollars on ${shortDayOf(new Date(first))} to ${usd(last)} dollars on ${shortDayOf(new Date(last))} so far. The most was ${formatUsd(nanos(most))}. The table has the sums.`
  const shownDays = new Set([0, 1, 2, 3, 4].map((one) => Math.round(((count - 1) * one) / 4)))
  const grid = labels.slice(0, -1).map((_, at) => `M0 ${((at * 100) / steps).toFixed(2)}H100`)
  return card(
    'spend',
    `Spend by ${wordOf(by)}`,
    html`${ways(shown)}<div class="fb-card__body"><div class="fb-chart"><div class="fb-chart__y">${labels.map((amount) => html`<span>${amount === 0n ? '0' : asSet(amount)}</span>`)}</div><svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="fb-grid-line" d="${grid.join('')}"/>${bars}<path class="fb-base-line" d="M0 100H100"/></svg><div class="fb-chart__x" aria-hidden="true">${days.map((day, at) => html`<span>${shownDays.has(at) ? new Date(day).getUTCDate() : ''}</span>`)}</div></div><div class="chart-foot"><ul class="fb-legend">${rows.map(({ name, colour }) => html`<li>${swatch(colour)}<bdi>${name}</bdi></li>`)}</ul></div></div>`,
    { kind: 'fb-c8', isPlain: true, beside: html`<span class="fb-dim">USD a day, UTC</span>` },
  )
}

function swatch(colour: number): Html {
  return html`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="fb-v${colour}" width="10" height="10" rx="1.5"/></svg>`
}

function table({ usage, by }: SpendShown, rows: readonly Ranked[]): Html {
  const shown = rows.map(
    ({ name, colour, calls, charged }) =>
      html`<tr><td class="name" title="${name}">${swatch(colour)}<bdi>${name}</bdi></td><td class="fb-end fb-dim">${withCommas(calls)}</td><td class="fb-end">${exact(charged)}</td></tr>`,
  )
  const { requests, charged } = usage.totals
  const word = wordOf(by)
  return card(
    'sums',
    `By ${word}`,
    html`<table class="fb-table fb-table--dense rank"><thead><tr><th scope="col">${word.charAt(0).toUpperCase()}${word.slice(1)}</th><th scope="col" class="fb-end">Calls</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${shown}<tr class="fb-total"><td>Month</td><td class="fb-end">${withCommas(requests)}</td><td class="fb-end">${exact(charged)}</td></tr></tbody></table>`,
    { kind: 'fb-c4' },
  )
}
