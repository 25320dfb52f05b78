import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { type DataOperation, defineOperation, type Upstream } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

/** The envelope in which the reseller answers everything. */
const envelope = z.looseObject({
  code: z.int(),
  request_id: z.string(),
  message: z.string(),
  message_zh: z.string(),
  support: z.string(),
  time: z.string(),
  time_stamp: z.int(),
  time_zone: z.string(),
  docs: z.string(),
  cache_message: z.string().nullable(),
  cache_message_zh: z.string().nullable(),
  cache_url: z.string(),
  router: z.string(),
  params: z.looseObject({}),
  data: z.unknown(),
})

const BASE_PRICE = '0.00145'

type Endpoint = Pick<DataOperation, 'id' | 'summary' | 'asks' | 'example' | 'input'> & {
  readonly suffix: string
  readonly price?: string
  readonly definition?: DataOperation['definition']
}

/** All endpoints of the reseller are alike: a GET that passes through, charged when the body says 200. */
export function resellerEndpoint({
  id,
  summary,
  asks,
  example,
  suffix,
  input,
  price = BASE_PRICE,
  definition = 'complete',
}: Endpoint) {
  return defineOperation({
    id,
    summary,
    asks,
    example,
    category: 'social',
    method: 'GET',
    path: `/apis/v1/{reseller}${suffix}`,
    dialect: 'data',
    limits: [],
    quotable: true,
    definition,
    attempts: { requests: 1, refreshes: 0 },
    input,
    output: envelope,
    price: perCall({
      unitPrice: rational(usd(price)),
      // Whatever the HTTP status says, but for a failure of the reseller's own.
      isCharged: ({ status, json }) => status < 500 && memberOf(json, 'code') === 200,
    }),
    isScaledByCustomerPlan: true,
    upstream: { ...UPSTREAM, path: `/api/v1${suffix}` },
  })
}

const UPSTREAM: Omit<Upstream, 'path'> = {
  slot: 'reseller',
  adapter: 'pass_through',
  credentialHeader: 'authorization',
  totalMs: 45_000,
  maxBodyBytes: 16 * 1_048_576,
}
