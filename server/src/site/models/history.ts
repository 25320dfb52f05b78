import { type Html, html } from '../../kernel/html.ts'
import type { PriceStep } from '../../pricing/price-book.ts'
import { dayOf } from '../dates.ts'
import { asPrice, shownUsd } from '../money.ts'

/** One price of a model through time: decimal USD, the newest first. */
type Line = readonly { readonly since: Date; readonly version: number; readonly usd: string }[]

const WIDTH = 100
const HEIGHT = 90
const VERSIONS_SHOWN = 10

/** What a model cost and costs, as steps to scale, and as the table that says the same. */
export function priceHistory(steps: readonly PriceStep[], nowMs: number): Html | undefined {
  const [newest] = steps
  if (newest === undefined) return undefined
  const { name, line } = lineOf(steps)
  const rows = line.slice(0, VERSIONS_SHOWN)
  const oldest = rows.at(-1)?.version ?? 1
  return html`<section aria-labelledby="history"><h2 id="history">Price history <small>${name}</small></h2>
${chart(line, name, nowMs)}
<table class="fb-table fb-table--dense"><thead><tr><th scope="col">Version</th><th scope="col">Since</th><th scope="col" class="fb-end">${name}</th></tr></thead><tbody>${rows.map(({ version, since, usd }) => html`<tr><th scope="row">${version}</th><td>${dayOf(since)}</td><td class="fb-end">${shownUsd(asPrice(usd))}</td></tr>`)}</tbody></table>${oldest > 1 ? html`<p class="fb-hint">Versions before ${oldest} are not in this table.</p>` : undefined}</section>`
}

/** What callers pay for most: the output of a conversation, the input of vectors, the dearest picture or second. */
function lineOf(steps: readonly PriceStep[]): { readonly name: string; readonly line: Line } {
  const [newest] = steps
  const pick = (read: (step: PriceStep) => string | undefined) =>
    steps.flatMap((step) => {
      const usd = read(step)
      return usd === undefined ? [] : [{ since: step.since, version: step.version, usd: plain(usd) }]
    })
  const kinds = Object.entries(newest?.images ?? newest?.videos ?? {})
  const dearest = kinds.toSorted(([, one], [, other]) => Number(other) - Number(one))[0]?.[0]
  if (dearest !== undefined) {
    const unit = newest?.images === null ? 'a second' : 'a picture'
    return { name: `${dearest}, USD ${unit}`, line: pick((step) => (step.images ?? step.videos)?.[dearest]) }
  }
  const hasOutput = Number(newest?.output ?? 0) > 0
  return hasOutput
    ? { name: 'output, USD a million tokens', line: pick(({ output }) => output) }
    : { name: 'input, USD a million tokens', line: pick(({ input }) => input) }
}

/** Without zeros at the end, as PostgreSQL may keep them. */
function plain(usd: string): string {
  return usd.includes('.') ? usd.replace(/\.?0+$/, '') : usd
}

/** To scale in time and in money. Only the picture is reckoned with inexact numbers. */
function chart(line: Line, name: string, nowMs: number): Html | undefined {
  const oldest = line.at(-1)
  const [newest] = line
  if (oldest === undefined || newest === undefined) return undefined
  const from = oldest.since.getTime()
  const span = Math.max(1, nowMs - from)
  const top = Math.max(...line.map(({ usd }) => Number(usd))) * 1.25 || 1
  const x = (time: Date) => Math.round(((time.getTime() - from) / span) * WIDTH * 10) / 10
  const y = (usd: string) => Math.round((1 - Number(usd) / top) * HEIGHT * 10) / 10
  const path = line
    .toReversed()
    .map(({ since, usd }, at) => (at === 0 ? `M0 ${y(usd)}` : `H${x(since)}V${y(usd)}`))
    .join('')
  const label = `${name}: ${oldest.usd} in version ${oldest.version} from ${dayOf(oldest.since)}${line.length === 1 ? '' : `, ${newest.usd} in version ${newest.version} from ${dayOf(newest.since)}`}`
  const places = Math.max(2, plain(newest.usd).split('.')[1]?.length ?? 0)
  const marks = [1, 2 / 3, 1 / 3, 0].map((share) => html`<span>$${(top * share).toFixed(Math.min(places, 4))}</span>`)
  return html`<div class="fb-chart"><div class="fb-chart__y steps-y">${marks}</div><svg class="steps" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="fb-grid-line" d="M0 0H100M0 30H100M0 60H100"/><path class="fb-base-line" d="M0 90H100"/><path class="price" d="${path}H${WIDTH}"/></svg><div class="fb-chart__x ends"><span>${dayOf(oldest.since)}</span><span>today</span></div></div>`
}
