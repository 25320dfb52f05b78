import type { Dialect } from '../catalogue/operation.ts'
import type { Fault } from '../kernel/fault.ts'
import { renderAnthropic } from './dialects/anthropic.ts'
import { renderData } from './dialects/data.ts'
import { renderGemini } from './dialects/gemini.ts'
import { renderOpenai } from './dialects/openai.ts'
import { renderPlain } from './dialects/plain.ts'
import { mustForbidRetry, retryAfterSecondsOf } from './retry-after.ts'

/** The shapes in which a refusal is told, one for each protocol that callers' SDKs speak. */
export const DIALECTS = {
  openai: renderOpenai,
  anthropic: renderAnthropic,
  gemini: renderGemini,
  data: renderData,
} satisfies Readonly<Record<Dialect, unknown>>

/** A fault as it goes over the wire. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function renderFault(dialect: Dialect | 'plain', fault: Fault, requestId: string): Answer {
  const body = dialect === 'plain' ? renderPlain(fault) : DIALECTS[dialect](fault, requestId)
  return { status: fault.status, headers: headersOf(fault), body: JSON.stringify(body) }
}

function headersOf(fault: Fault): Record<string, string> {
  const headers: Record<string, string> = {
    ...fault.headers,
    'content-type': 'application/json; charset=utf-8',
    // A shared cache may keep some errors by itself, and would then serve one caller's refusal to another.
    'cache-control': 'no-store',
  }
  const retryAfterSeconds = retryAfterSecondsOf(fault)
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds)
  if (mustForbidRetry(fault)) headers['x-should-retry'] = 'false'
  if (fault.status === 401) headers['www-authenticate'] = 'Bearer'
  return headers
}
