import { request } from 'undici'
import { z } from 'zod'
import { FAULTS } from '../../server/src/kernel/fault.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { argumentsOf, callBody, callHeaders } from '../mcp/raw-agent.ts'
import type { Told } from './history.ts'
import { addressOf, type Key } from './people.ts'

const money = z
  .string()
  .transform((text) => usd(text))
  .optional()
const form = z.object({
  request_id: z.string().optional(),
  status: z.int().optional(),
  cost_usd: money,
  left: z.object({ balance_usd: money }).optional(),
  error: z.object({ code: z.string(), first_request_id: z.string().nullish() }).optional(),
})
/** More than any call here costs. */
const CAP_USD = 100

type Answered = { readonly told: Told; readonly outcome: 'ok' | 'fail' | 'unknown' }

/** What is asked, as over HTTP. */
type Asked = {
  readonly path: string
  readonly body?: string
  readonly key: Key
  readonly operation?: string
  readonly idempotencyKey?: string
}

/** The same call as a tool of an agent, of one of the gateways. It is told by what HTTP would have said. */
export async function sendByTool(url: string, asked: Asked, signal: AbortSignal): Promise<Answered> {
  const { path, body, key, idempotencyKey, operation } = asked
  const given = {
    operation_id: operation,
    arguments: argumentsOf({ path, ...(body !== undefined && { body: JSON.parse(body) }) }),
    max_price_usd: CAP_USD,
  }
  const meta = idempotencyKey === undefined ? {} : { 'farebox/idempotency-key': idempotencyKey }
  const answer = await request(`${url}/mcp`, {
    method: 'POST',
    signal,
    headers: {
      authorization: `Bearer ${key.secret}`,
      'x-forwarded-for': addressOf(key),
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...callHeaders('use'),
    },
    body: JSON.stringify(callBody('use', given, meta)),
  })
  const message = Object(await answer.body.json())
  if (answer.statusCode !== 200) {
    const { code, request_id: id } = message
    return { told: { status: answer.statusCode, code, id }, outcome: 'fail' }
  }
  const { request_id: id, status, cost_usd, left, error } = form.parse(message.result.structuredContent)
  const known = status ?? statusOf(error?.code)
  const told = {
    status: known,
    ...(id !== undefined && { id }),
    ...(cost_usd !== undefined && { costNanos: cost_usd }),
    ...(left?.balance_usd !== undefined && { balanceNanos: left.balance_usd }),
    ...(error !== undefined && { code: error.code }),
    ...(typeof error?.first_request_id === 'string' && { firstId: error.first_request_id }),
  }
  return { told, outcome: known < 400 ? 'ok' : 'fail' }
}

function statusOf(code = 'internal_error'): number {
  return Object.entries(FAULTS).find(([name]) => name === code)?.[1].status ?? 500
}
