import { type Html, html } from '../../kernel/html.ts'
import type { Proof } from './read-proofs.ts'

const SERIES = [
  ['regulars', 'Accounts kept, of which 1,000 call'],
  ['accounts', 'Accounts, all of which call'],
  ['charges', 'Charges kept'],
  ['in_flight', 'Calls at once'],
  ['processes', 'Processes'],
] as const

type Step = { readonly size: number; readonly gateway: number; readonly postgres: number }

/** How the CPU of a call changes with the size of things, each as bars over a table of its figures. */
export function growthCharts(proof: Proof | undefined): readonly Html[] {
  if (proof === undefined) return []
  const values = new Map(proof.metrics.map(({ name, value }) => [name, value]))
  return SERIES.flatMap(([name, title]) => {
    const steps = [...values.keys()].flatMap((key): Step[] => {
      const [, size] = new RegExp(`^gateway_us_${name}_(\\d+)$`).exec(key) ?? []
      const postgres = values.get(`postgres_us_${name}_${size}`)
      return size === undefined || postgres === undefined
        ? []
        : [{ size: Number(size), gateway: values.get(key) ?? 0, postgres }]
    })
    return steps.length < 2 ? [] : [chart(title, steps)]
  })
}

const STEP = 400
const PLACE = 100

function chart(title: string, steps: readonly Step[]): Html {
  const most = Math.ceil(Math.max(...steps.flatMap(({ gateway, postgres }) => [gateway, postgres])) / STEP) * STEP
  const lines = Array.from({ length: most / STEP + 1 }, (_, at) => at * STEP).toReversed()
  const width = steps.length * PLACE
  const bars = steps.map(
    ({ gateway, postgres }, at) =>
      html`<rect class="fb-v1" x="${at * PLACE + 18}" y="${most - gateway}" width="30" height="${gateway}"/><rect class="fb-v3" x="${at * PLACE + 52}" y="${most - postgres}" width="30" height="${postgres}"/>`,
  )
  const said = steps.map(
    ({ size, gateway, postgres }) => `at ${short(size)} the gateway takes ${gateway} and PostgreSQL ${postgres} µs`,
  )
  return html`<figure class="fb-card grow"><figcaption class="fb-card__head"><h3>${title}</h3><span class="fb-dim">CPU of a call, µs</span></figcaption><div class="fb-card__body"><div class="fb-chart"><div class="fb-chart__y" aria-hidden="true">${lines.map((line) => html`<span>${line.toLocaleString('en')}</span>`)}</div><svg viewBox="0 0 ${width} ${most}" preserveAspectRatio="none" role="img" aria-label="${title}: ${said.join('; ')}">${lines.map((line) => html`<line class="fb-grid-line" x1="0" x2="${width}" y1="${most - line}" y2="${most - line}"/>`)}${bars}<line class="fb-base-line" x1="0" x2="${width}" y1="${most}" y2="${most}"/></svg><div class="fb-chart__x" aria-hidden="true">${steps.map(({ size }) => html`<span>${short(size)}</span>`)}</div></div></div></figure>`
}

function short(size: number): string {
  return size >= 1_000_000 ? `${size / 1_000_000} million` : size.toLocaleString('en')
}
