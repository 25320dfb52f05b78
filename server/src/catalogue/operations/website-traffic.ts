import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { isMembers } from '../member-table.ts'
import { defineOperation } from '../operation.ts'
import { dynamic, memberOf } from '../price.ts'

/** Its parameters are not defined, and pass through; these are read to say what the answer can cost. */
const parameters = z.looseObject({
  metrics: z.string().optional(),
  start_date: z.string().optional(),
  end_date: z.string().optional(),
})

const input = parameters.refine(({ start_date, end_date }) => monthsBetween(start_date, end_date) <= MOST_MONTHS, {
  error: `start_date and end_date are at most 37 months apart`,
})

type Input = z.output<typeof parameters>

const ALL_METRICS = 12
/** As far back as such data goes. */
const MOST_MONTHS = 37

/** A credit is one metric of one month. */
function creditsAtMost({ metrics, start_date, end_date }: Input): number {
  return metricsAtMost(metrics ?? '') * monthsAtMost(start_date, end_date)
}

/** The months, and the metrics where there is but one. */
function costlyOf({ metrics = '', start_date, end_date }: Input) {
  const [names, months] = [metricsAtMost(metrics), monthsAtMost(start_date, end_date)]
  return months > 1
    ? {
        name: 'the number of months from start_date to end_date',
        units: months,
        mostOf: (units: number) => names * units,
      }
    : { name: 'the number of metrics', units: names, mostOf: (units: number) => units * months }
}

/** What providers give where a request does not say. */
const USUAL = { metrics: 1, months: 3 }

function creditsExpected(input: Input): number {
  const { metrics = '', start_date, end_date } = input
  const months = monthsBetween(start_date, end_date) || USUAL.months
  return Math.min(creditsAtMost(input), (metrics === '' ? USUAL.metrics : metricsAtMost(metrics)) * months)
}

function assumptionOf({ metrics = '', start_date, end_date }: Input): string {
  const assumed = [
    ...(metrics === '' ? ['one metric, as "metrics" is not given'] : []),
    ...(monthsBetween(start_date, end_date) === 0
      ? ['three months, as "start_date" and "end_date" are not both given as months']
      : []),
  ]
  return `Assumed: ${assumed.length === 0 ? 'every metric is delivered for every month' : assumed.join('; ')}.`
}

/** A name as they all are. What is spelt otherwise may be a list in other separators, or stand for all of them. */
const METRIC = /^(?!all$)\w+$/i

function metricsAtMost(list: string): number {
  const names = list.split(/[\s,]+/).filter((name) => name !== '')
  return names.length > 0 && names.every((name) => METRIC.test(name))
    ? names.length
    : Math.max(ALL_METRICS, names.length)
}

function monthsAtMost(start: string | undefined, end: string | undefined): number {
  return Math.min(MOST_MONTHS, monthsBetween(start, end) || MOST_MONTHS)
}

/** 0 where one of them is missing or is no month. */
function monthsBetween(start: string | undefined, end: string | undefined): number {
  const [from, to] = [monthOf(start), monthOf(end)]
  return from === undefined || to === undefined ? 0 : Math.max(0, to - from + 1)
}

function monthOf(text: string | undefined): number | undefined {
  // What is no date an upstream may leave out of account, and deliver every month that it has.
  const [, year, month, day = '01'] = /^(\d{4})-(0[1-9]|1[0-2])(?:-(\d{2}))?$/.exec(text ?? '') ?? []
  if (year === undefined || !isDate(`${year}-${month}-${day}`)) return undefined
  return Number(year) * 12 + Number(month) - 1
}

/** February has no thirtieth day: a date that does not exist is read as another one, or as none. */
function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

export const websiteTraffic = defineOperation<Input>({
  id: 'website_traffic_engagement',
  summary: 'Visits of a website and what its visitors do, by month',
  asks: `website site web domain page traffic visits visitors visitor people visit views pageviews bounce rate
    engagement duration session sessions audience popularity popular how many monthly unique competitor competitors
    analytics online presence hits users compare time spent`,
  example: { domain: 'example.com', metrics: 'visits', start_date: '2026-01', end_date: '2026-01' },
  category: 'traffic',
  method: 'GET',
  path: '/apis/v1/{traffic_analytics}/website/traffic-engagement',
  dialect: 'data',
  isHidden: true,
  limits: [],
  quotable: true,
  definition: 'pending',
  attempts: { requests: 1, refreshes: 0 },
  input,
  refuses: {
    granularity: 'a finer one delivers many times as much and is not priced',
    format: 'what was delivered is read from JSON',
  },
  priced: {
    metrics: 'metrics=visits,page_views',
    start_date: 'start_date=2026-01',
    end_date: 'end_date=2026-03',
  },
  output: z.looseObject({}),
  price: dynamic({
    unit: 'credit',
    unitPrice: rational(usd('0.002')),
    most: creditsAtMost,
    expected: creditsExpected,
    assumption: assumptionOf,
    costly: costlyOf,
    // Every metric of every month that was delivered, the date of a row apart.
    evidence({ status, json }) {
      const rows = memberOf(json, 'data')
      if (status !== 200) return 0
      if (!Array.isArray(rows)) return undefined
      // What is no row says nothing about what was delivered, however large it is.
      if (!rows.every(isMembers)) return undefined
      return rows.reduce((sum: number, row: object) => sum + Math.max(0, Object.keys(row).length - 1), 0)
    },
  }),
  upstream: {
    slot: 'traffic',
    path: '/v5/website-analysis/websites/traffic-and-engagement',
    adapter: 'pass_through',
    credentialHeader: 'api-key',
    totalMs: 60_000,
    maxBodyBytes: 16 * 1_048_576,
  },
})
