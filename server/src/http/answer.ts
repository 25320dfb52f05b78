import type { Fault } from '../kernel/fault.ts'
import { withAnthropicRates } from '../limits/headers.ts'
import type { FaultPage } from '../pages/fault-page.ts'
import type { FaultDialect, RenderFault } from '../wire/answer.ts'
import { renderAnthropic } from './dialects/anthropic.ts'
import { renderData } from './dialects/data.ts'
import { renderGemini } from './dialects/gemini.ts'
import { renderOauth } from './dialects/oauth.ts'
import { renderOpenai } from './dialects/openai.ts'
import { renderPlain } from './dialects/plain.ts'
import { renderProblem } from './dialects/problem.ts'
import { mustForbidRetry, retryAfterSecondsOf } from './retry-after.ts'

/** The shapes in which a refusal is told: one for each protocol that callers' SDKs speak, and those of our other interfaces. */
export const DIALECTS = {
  openai: renderOpenai,
  anthropic: renderAnthropic,
  gemini: renderGemini,
  data: renderData,
  plain: renderPlain,
  problem: renderProblem,
  oauth: renderOauth,
} satisfies Readonly<Record<Exclude<FaultDialect, 'html'>, unknown>>

export const renderFault: RenderFault = (dialect, fault, requestId) => {
  const shape = dialect === 'html' ? 'problem' : dialect
  const told = dialect === 'anthropic' ? withAnthropicRates(headersOf(fault)) : headersOf(fault)
  const headers = { ...told, 'content-type': TYPES[shape] ?? JSON_TYPE }
  return { status: fault.status, headers, body: JSON.stringify(DIALECTS[shape](fault, requestId)) }
}

/** The same where people come too: they get a page. */
export function withPages(faultPage: FaultPage): RenderFault {
  return (dialect, fault, requestId) => {
    if (dialect !== 'html') return renderFault(dialect, fault, requestId)
    const { status, headers, body } = faultPage(fault, requestId)
    return { status, headers: { ...headersOf(fault), ...headers }, body }
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'
const TYPES: Readonly<Record<string, string>> = { problem: 'application/problem+json; charset=utf-8' }

function headersOf(fault: Fault): Record<string, string> {
  // A shared cache may keep some errors by itself, and would then serve one caller's refusal to another.
  const headers: Record<string, string> = { ...fault.headers, 'cache-control': 'no-store' }
  const retryAfterSeconds = retryAfterSecondsOf(fault)
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds)
  if (mustForbidRetry(fault)) headers['x-should-retry'] = 'false'
  if (fault.status === 401) headers['www-authenticate'] = 'Bearer'
  return headers
}
