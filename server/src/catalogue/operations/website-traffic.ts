import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { dynamic, memberOf } from '../price.ts'

/** Its parameters are not defined, and pass through; these are read to say what the answer can cost. */
const input = z.looseObject({
  metrics: z.union([z.string(), z.array(z.string())]).optional(),
  start_date: z.string().optional(),
  end_date: z.string().optional(),
})

type Input = z.output<typeof input>

const ALL_METRICS = 12
/** As far back as such data goes. */
const MOST_MONTHS = 37

/** A credit is one metric of one month. */
function creditsAtMost({ metrics, start_date, end_date }: Input): number {
  const names = [metrics ?? []].flat().flatMap((list) => list.split(','))
  const asked = names.filter((name) => name.trim() !== '').length
  return (asked === 0 ? ALL_METRICS : asked) * monthsAtMost(start_date, end_date)
}

function monthsAtMost(start: string | undefined, end: string | undefined): number {
  const [from, to] = [monthOf(start), monthOf(end)]
  if (from === undefined || to === undefined || to < from) return MOST_MONTHS
  return Math.min(MOST_MONTHS, to - from + 1)
}

function monthOf(text: string | undefined): number | undefined {
  const [, year, month] = /^(\d{4})-(\d{2})(?:-\d{2})?$/.exec(text ?? '') ?? []
  return year === undefined ? undefined : Number(year) * 12 + Number(month) - 1
}

export const websiteTraffic = defineOperation<Input>({
  id: 'website_traffic_engagement',
  summary: 'Visits of a website and what its visitors do, by month',
  category: 'traffic',
  method: 'GET',
  path: '/apis/v1/{traffic_analytics}/website/traffic-engagement',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'pending',
  input,
  output: z.looseObject({}),
  price: dynamic({
    unit: 'credit',
    unitPrice: rational(usd('0.002')),
    most: creditsAtMost,
    // Every metric of every month that was delivered, the date of a row apart.
    evidence({ status, json }) {
      const rows = memberOf(json, 'data')
      if (status !== 200) return 0
      if (!Array.isArray(rows)) return undefined
      return rows.reduce((sum: number, row: unknown) => sum + Math.max(0, Object.keys(Object(row)).length - 1), 0)
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
