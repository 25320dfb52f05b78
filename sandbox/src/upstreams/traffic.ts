import { creditsBill } from '../bill.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Reply, Upstream } from '../upstream.ts'

const METRICS: Readonly<Record<string, (random: Random) => number>> = {
  visits: (random) => random.between(1000, 900_000_000),
  unique_visitors: (random) => random.between(500, 90_000_000),
  page_views: (random) => random.between(2000, 2_000_000_000),
  pages_per_visit: (random) => random.decimal(1, 12, 4),
  bounce_rate: (random) => random.decimal(0.1, 0.9, 4),
  average_visit_duration: (random) => random.decimal(10, 900, 2),
}
const MONTHS_LIMIT = 60
const FIRST_MONTH = '2026-01'
const LAST_MONTH = '2026-03'

export const traffic: Upstream = {
  name: 'traffic',
  methodOf: () => 'GET',
  credentials: [{ header: 'api-key', scheme: 'plain' }],
  has: (path) => path === '/v5/website-analysis/websites/traffic-and-engagement',
  answer(asked): Reply {
    const { parameters } = asked
    const domain = parameters.get('domain')
    const metrics = metricsIn(asked)
      .split(',')
      .map((name) => name.trim())
    const unknown = metrics.find((name) => !Object.hasOwn(METRICS, name))
    const months = monthsOf(parameters.get('start_date') || FIRST_MONTH, parameters.get('end_date') || LAST_MONTH)
    if (!domain) return refused('domain is required', asked)
    if (unknown !== undefined) return refused(`metric ${unknown} is not supported`, asked)
    if (months.length === 0) return refused('dates are not in range', asked)
    const body = report(domain, metrics, months, asked)
    return { status: 200, body, tokens: null, isBilled: true, bill: creditsBill(metrics.length * months.length) }
  },
  errorBody: (status, message) => ({ meta: { status: 'Error', error_code: status, error_message: message } }),
}

/** A vendor to whom `metrics` and `metrics[]` are one list takes all that stand there. */
function metricsIn({ parameters, deviance }: Asked): string {
  const names = deviance.mergesBrackets ? parameters.getAll('metrics').join(',') : parameters.get('metrics')
  return names || 'visits'
}

function refused(message: string, asked: Asked): Reply {
  return { status: 400, body: traffic.errorBody(400, message, asked), tokens: null, isBilled: false }
}

function report(domain: string, metrics: readonly string[], months: readonly string[], asked: Asked): JsonObject {
  const granularity = asked.parameters.get('granularity') ?? 'monthly'
  const country = asked.parameters.get('country') ?? 'WW'
  const dates = { start_date: months[0], end_date: months.at(-1), last_updated: months.at(-1) }
  const request = { domain, metrics, granularity, country, ...dates }
  const data = months.map((month) => {
    const random = new Random(hashOf(asked.seed, 'traffic', domain, country, month))
    // Every metric is drawn, so that a figure does not depend on what else was asked for.
    const drawn = Object.fromEntries(Object.entries(METRICS).map(([name, draw]) => [name, draw(random)]))
    return { date: `${month}-01`, ...Object.fromEntries(metrics.map((name) => [name, drawn[name]])) }
  })
  return { meta: { request, status: 'Success', last_updated: dates.last_updated }, data }
}

/** The months from one to another, both included; none where they are no months, or too many. */
function monthsOf(from: string, to: string): string[] {
  const first = monthNumber(from)
  const last = monthNumber(to)
  if (Number.isNaN(first) || Number.isNaN(last) || last - first >= MONTHS_LIMIT) return []
  const months: string[] = []
  for (let at = first; at <= last; at += 1)
    months.push(`${Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`)
  return months
}

function monthNumber(text: string): number {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])(?:-\d\d)?$/.exec(text) ?? []
  return Number(year) * 12 + Number(month) - 1
}
