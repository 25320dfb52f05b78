import { z } from 'zod'
import { defineOperation } from '../../server/src/catalogue/operation.ts'
import { dynamic, memberOf, perCall } from '../../server/src/catalogue/price.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { rational } from '../../server/src/kernel/rational.ts'

const UPSTREAM = {
  slot: 'imagined',
  adapter: 'pass_through',
  credentialHeader: 'x-api-key',
  totalMs: 10_000,
  maxBodyBytes: 100_000,
} as const

const input = z.looseObject({ place: z.string().min(1), days: z.coerce.number().int().min(1).max(16).default(1) })

/** What somebody writes who sells one more thing. */
export const imaginedForecast = defineOperation<z.output<typeof input>>({
  id: 'imagined_forecast',
  summary: 'The weather of the days to come at a place',
  asks: 'rain sun temperature tomorrow umbrella',
  example: { place: 'Paris', days: 2 },
  category: 'traffic',
  method: 'GET',
  path: '/apis/v1/{social_a}/imagined/forecast',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  input,
  refuses: { history: 'the past has another price' },
  output: z.looseObject({ days: z.array(z.unknown()) }),
  price: dynamic({
    unit: 'day',
    unitPrice: rational(usd('0.0123')),
    most: ({ days }) => days,
    evidence({ json }) {
      const days = memberOf(json, 'days')
      return Array.isArray(days) ? days.length : undefined
    },
  }),
  upstream: { ...UPSTREAM, path: '/v9/forecast' },
})

/** The same in the place of another protocol. */
export const imaginedModel = defineOperation({
  id: 'imagined_model',
  summary: 'The weather as a model imagines it',
  asks: 'imagine rain sun',
  example: { contents: [1] },
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/imagined',
  dialect: 'gemini',
  limits: [],
  quotable: false,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  input: z.looseObject({ contents: z.array(z.unknown()).min(1) }),
  output: z.looseObject({}),
  price: perCall({ unitPrice: rational(usd('0.7')), isCharged: ({ status }) => status === 200 }),
  upstream: { ...UPSTREAM, path: '/v9/models/imagined' },
})
