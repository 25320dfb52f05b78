import { STATUS_CODES } from 'node:http'
import { FAULTS } from '../kernel/fault.ts'

type Row = { readonly status: number; readonly text: string; readonly retryable: boolean }

/** Every fault for people, as a page of Markdown, from the table that the service refuses by. */
export function errorGuide(faults: Readonly<Record<string, Row>> = FAULTS): string {
  const entries = Object.entries(faults)
  const statuses = [...new Set(entries.map(([, { status }]) => status))].toSorted((a, b) => a - b)
  const sections = statuses.map((status) => {
    const some = entries.filter(([, row]) => row.status === status)
    return `## ${status} ${STATUS_CODES[status] ?? ''}\n\n${some.map(([code, row]) => section(code, row)).join('\n')}`
  })
  return `# Errors and their fixes

Written by \`node scripts/errors.ts\` from the table of faults in the code: ${entries.length} codes. A code is never renamed. The first
paragraph of an entry is the message, often with the details of your case: the limit, what was needed and what is left. Each protocol
has the code in its own place: \`error.code\` for OpenAI and data endpoints, \`error.details.error_code\` for Anthropic,
\`details[].reason\` for Gemini.

- **Charges**: a request that ends with one of these errors costs nothing, unless its entry or its message says otherwise. A stream that
  fails after its first words costs what you received of it: \`cost_usd\` in the error says how much.
- **Retries**: _safe to send again_ means that the same request can be repeated and may then succeed. An entry that does not say so
  asks for something else first: the same request, sent again, would fail again or could be carried out twice.

An error of the upstream in its own words is passed on with its status and is not in this list. How to repeat calls without paying
twice: [idempotency.md](idempotency.md).

${sections.join('\n')}`
}

function section(code: string, { text, retryable }: Row): string {
  const more = [
    ...(retryable ? [AGAIN[code] ?? 'Safe to send again, after `Retry-After`.'] : []),
    ...(code in EXPLAINED ? [EXPLAINED[code]] : []),
  ]
  // What looks like markup is text.
  return `### ${code}\n\n${text.replaceAll('<', '\\<')}\n${more.length === 0 ? '' : `\n${more.join(' ')}\n`}`
}

const AGAIN: Readonly<Record<string, string>> = {
  request_timeout: 'Safe to send again.',
  not_configured: 'Safe to send again, but that helps only once the operator has set it up: do not retry in a loop.',
}

const CARRIED_OUT =
  'The request may have been carried out: before you repeat one that changes something, check whether it already has.'
const NO_USE = 'Sending the request again does not help until that is fixed.'

/** Where more has to be said than the sentence of the table does. */
const EXPLAINED: Readonly<Record<string, string>> = {
  link_required: 'Start with `POST /apis/v1/{social_a}/auth_{social_a}`: [links.md](links.md).',
  loss_ceiling_account:
    'Losses of the last 60 minutes and of the last 24 hours count, so the limit opens again by itself as they get older.',
  idempotency_completed: 'The first call was charged. It is not carried out again, and this request costs nothing.',
  idempotency_running: 'The first call is charged when it completes; this request costs nothing.',
  outcome_unknown:
    'This error has the id as `first_request_id`. The first call is not charged yet and may still be: its money stays held until the outcome is known, for at most 24 hours. Until then nothing is carried out with this key. Do not send the request with another key: it could be carried out twice.',
  task_not_cancelable: 'The task is charged if it succeeds.',
  internal_error:
    'The outcome is unknown, and the call may have been charged: look it up with `GET /v1/requests/{id}` before you send it again. Its id is the `X-Request-ID` of the answer.',
  unsupported_uri:
    'These two words are the whole message. Send the id of a task in the path, `GET /apis/v1/services/aigc/tasks/{task_id}`, and not as a query parameter.',
  upstream_transport: CARRIED_OUT,
  managed_upstream_transport: CARRIED_OUT,
  upstream_unreadable: 'The request was carried out: if you send it again, it is carried out again.',
  output_limit_passed: 'Raise the output limit, or use another model.',
  settlement_timeout: 'Use `GET /v1/requests/{id}`; the id is the `X-Request-ID` of the answer.',
  upstream_account: `Report it to the operator. ${NO_USE}`,
  upstream_not_found: `Report it to the operator. ${NO_USE}`,
  invalid_billing_configuration: NO_USE,
}
