import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Metric, Proof } from './read-proofs.ts'

/** What a measured name means. One that has no words here is told by its name. */
const WORDS: Readonly<Record<string, string>> = {
  added_p50_us: 'Added to the median at 500 calls a second',
  capacity_ratio_portkey: 'Calls that a core serves, beside Portkey',
  cpu_ratio_bare: 'CPU of a call beside a bare proxy, 50 connections',
  cpu_ratio_bare_c200: 'CPU of a call beside a bare proxy, 200 connections',
  cpu_per_chunk_ratio_bare: 'CPU of a piece of a stream beside a bare proxy',
  cpu_per_chunk_ratio_portkey: 'CPU of a piece of a stream beside Portkey',
  cpu_ratio_token: 'CPU of a call by access token beside one by key',
  goodput_ratio_peak: 'Calls answered at five times the load, beside the peak',
  refused_p99_ms: 'Time to a refusal when overloaded, slowest percentile',
  rss_mb: 'Memory when overloaded',
  recovery_s: 'Time until the median is back after an overload',
  spread_ratio_bare: 'Holds and charges beside bare SQL, many accounts',
  hot_ratio_bare: 'Holds and charges beside bare SQL, one account',
  hot_ratio_unbatched: 'Holds and charges of one account beside statements one by one',
  hold_p50_ratio_commit: 'Median of a hold beside a commit',
  use_cpu_ratio_http: 'CPU of a tool call beside the same call over HTTP',
  use_cpu_ratio_http_2025: 'The same, in the protocol of 2025',
}

export type Goal = {
  readonly proof: string
  readonly words: string
  readonly measured: string
  readonly goal: string
  readonly isMet: boolean
  /** How many times its goal it is away from nothing: above one is missed. */
  readonly times: number
}

/** Every metric that has a goal, those missed by most first. */
export function goalsOf(proofs: readonly Proof[]): readonly Goal[] {
  return proofs
    .flatMap(({ name, metrics }) => metrics.flatMap((metric) => goalOf(name, metric) ?? []))
    .toSorted((a, b) => b.times - a.times)
}

function goalOf(proof: string, { name, value, unit, goal, ok }: Metric): Goal | undefined {
  const [, sign, text] = /^(<=|>=|=|<|>)\s*(\d+(?:\.\d+)?)$/.exec(goal ?? '') ?? []
  if (sign === undefined || text === undefined) return undefined
  const limit = Number(text)
  const isMost = sign.startsWith('<')
  const times = isMost ? value / (limit || 1) : (limit || 1) / (value || Number.EPSILON)
  const words = WORDS[name] ?? name.replaceAll('_', ' ')
  const bound = { '<': 'below', '<=': 'at most', '>': 'above', '>=': 'at least', '=': 'exactly' }[sign]
  return { proof, words, measured: amount(value, unit), goal: `${bound} ${amount(limit, unit)}`, isMet: ok, times }
}

const UNITS: Readonly<Record<string, string>> = { x: '×', us: 'µs' }

function amount(value: number, unit: string): string {
  const text = value.toLocaleString('en', { maximumSignificantDigits: 4 })
  return `${text} ${UNITS[unit] ?? unit}`
}

/** The axis ends here; what is farther stands at its end, with its figure beside it. */
const MOST_TIMES = 5

export function goalTable(goals: readonly Goal[]): Html {
  const at = (times: number) => `${(Math.min(times, MOST_TIMES) / MOST_TIMES) * 100}%`
  const rows = goals.map(
    ({ proof, words, measured, goal, isMet, times }) =>
      html`<tr><th scope="row">${words}<span class="fb-sub">${proof}.json</span></th><td class="fb-end">${measured}</td><td class="fb-end fb-soft">${goal}</td><td class="far"><svg role="img" aria-label="${times.toFixed(2)} times its goal"><line class="goal" x1="${at(1)}" x2="${at(1)}" y1="0" y2="100%"/><line class="lead-line" x1="0" x2="${at(times)}" y1="50%" y2="50%"/><circle class="${isMet ? 'met' : 'missed'}" cx="${at(times)}" cy="50%" r="4.5"/></svg></td><td class="fb-end">${isMet ? html`<span class="fb-badge fb-badge--ok">${icon('check')}Met</span>` : html`<span class="fb-badge fb-badge--bad">${icon('refused')}Missed</span>`}</td></tr>\n`,
  )
  return html`<div class="fb-scroll" tabindex="0" role="region" aria-label="Goals of speed"><table class="fb-table fb-table--plain fb-table--dense goals"><thead><tr><th scope="col">What is measured</th><th scope="col" class="fb-end">Measured</th><th scope="col" class="fb-end">Goal</th><th scope="col" class="far"><span class="axis"><span>0</span><span>1 ×</span><span>2</span><span>3</span><span>4</span><span>5</span></span></th><th scope="col" class="fb-end">Result</th></tr></thead><tbody>${rows}</tbody></table></div>`
}
