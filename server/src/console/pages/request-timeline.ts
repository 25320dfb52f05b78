import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import { spanOf } from '../listed-calls.ts'
import { card } from './parts.ts'
import type { ShownRequest } from './request-forms.ts'

type Step = {
  readonly name: Html | string
  readonly label: string
  readonly from: number
  readonly to: number
  readonly kind: 'durable' | 'up' | 'fail' | 'held'
}

/** Where the time went, to scale: what the process noted, in milliseconds since the request had come whole. */
export function timelineCard({ detail }: ShownRequest): Html {
  const steps = detail === null ? [] : stepsOf(detail)
  const last = Math.max(0, ...steps.map(({ to }) => to))
  if (last === 0)
    return card(
      'time',
      'Where the time went',
      html`<p class="fb-soft">That was not kept: it is written behind the answer, and a process that dies may lose it. What the call cost is the ledger’s, and is exact.</p>`,
      { kind: 'fb-c7' },
    )
  const scale = scaleFor(last)
  const firstByte = detail?.first_byte_ms ?? null
  return card(
    'time',
    'Where the time went',
    html`<ol class="fb-gantt"><li class="axis" aria-hidden="true"><span></span><span>${[0, 1, 2, 3, 4].map((at) => html`<span>${tick(at, scale)}</span>`)}</span><span></span></li>${steps.map((step) => shownStep(step, scale))}</ol>
<p class="fb-hint chart-foot">BEGIN: read, checked, priced, and the most it can cost was held. END: charged, and the rest released.${firstByte === null ? '' : ` The first byte of the answer left after ${spanOf(firstByte)}.`}</p>`,
    { kind: 'fb-c7', beside: html`<span class="fb-dim">${spanOf(last)}, to scale</span>` },
  )
}

function stepsOf({ timeline, upstream }: NonNullable<ShownRequest['detail']>): readonly Step[] {
  const { begun, settled } = timeline
  const attempts = upstream.flatMap(({ slot, outcome, status, began_ms: from, ended_ms: to }, at): Step[] =>
    from === null || to === null
      ? []
      : [
          {
            name: `upstream ${at + 1}`,
            label: `Upstream ${at + 1}, ${slot}`,
            from,
            to,
            kind: outcome === 'answered' && (status ?? 200) < 400 ? 'up' : 'fail',
          },
        ],
  )
  const answered = timeline.answered ?? attempts.at(-1)?.to
  return [
    ...(begun === undefined ? [] : [durable('BEGIN', 0, begun)]),
    ...attempts,
    ...(settled === undefined || answered === undefined ? [] : [durable('END', Math.min(answered, settled), settled)]),
    ...(begun === undefined || settled === undefined ? [] : [heldFrom(begun, settled)]),
  ]
}

function durable(name: string, from: number, to: number): Step {
  return { name: html`<b>${name}</b>`, label: name, from, to, kind: 'durable' }
}

function heldFrom(from: number, to: number): Step {
  const name = html`<span class="fb-badge fb-badge--held">${icon('held')}Held</span>`
  return { name, label: 'Money is held', from, to, kind: 'held' }
}

/** The end of the axis: four steps of a round number. */
function scaleFor(last: number): number {
  const step = last / 4
  const ten = 10 ** Math.floor(Math.log10(step))
  const round = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((one) => one * ten >= step) ?? 10
  return round * ten * 4
}

function tick(at: number, scale: number): string {
  const ms = (scale / 4) * at
  const isSeconds = scale >= 4_000
  const text = Number((isSeconds ? ms / 1_000 : ms).toPrecision(6)).toString()
  return at === 4 ? `${text} ${isSeconds ? 's' : 'ms'}` : text
}

const GRID = [0, 25, 50, 75, 100].map((at) => html`<line class="grid" x1="${at}%" x2="${at}%" y1="0" y2="100%"/>`)

function shownStep({ name, label, from, to, kind }: Step, scale: number): Html {
  const [x, width] = [percent(from / scale), percent(Math.max((to - from) / scale, 0.002))]
  const drawn =
    kind === 'held'
      ? html`<rect x="${x}" y="11" width="${width}" height="11" fill="url(#fb-hatch)"/>`
      : html`<rect class="${kind}" x="${x}" y="10" width="${width}" height="13" rx="1"/>`
  return html`<li><span>${name}</span><svg role="img" aria-label="${label}: from ${from.toFixed(1)} to ${to.toFixed(1)} milliseconds">${GRID}${drawn}</svg><span class="ms">${spanOf(to - from)}</span></li>`
}

const percent = (share: number) => `${Number((share * 100).toFixed(2))}%`
