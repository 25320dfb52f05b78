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

Written by \`node scripts/errors.ts\` from the table by which the service refuses: ${entries.length} codes, none of which is ever renamed. The
sentence is what you are told, often with the particulars of your case: the limit, what was needed and what is left. Each protocol has
the code in its own place: \`error.code\` for OpenAI and data endpoints, \`error.details.error_code\` for Anthropic, \`details[].reason\` for Gemini.

What an upstream says in its own words is passed on with its status and is not in this list. What may be repeated, and how:
[idempotency.md](idempotency.md).

${sections.join('\n')}`
}

function section(code: string, { text, retryable }: Row): string {
  const more = retryable ? 'Safe to send again, after `Retry-After`.' : EXPLAINED[code]
  const said = more === undefined ? text : `${text} ${more}`
  // What looks like markup is text.
  return `### ${code}\n\n${said.replaceAll('<', '\\<')}\n`
}

/** Where more has to be said than the sentence of the table does. */
const EXPLAINED: Readonly<Record<string, string>> = {
  internal_error: 'The outcome is unknown: look it up by its request id before you send it again.',
  upstream_transport: 'Nothing was charged, but the work may have been done: check before you send it again.',
  managed_upstream_transport: 'Nothing was charged, but the work may have been done: check before you send it again.',
  upstream_unreadable: 'The work was done: if you send it again, it is done again.',
  output_limit_passed: 'Raise the output limit, or use another model.',
  idempotency_completed: 'Nothing is done again.',
  outcome_unknown: 'Nothing is done again until the outcome is known.',
  upstream_account: 'The operator has to act.',
  upstream_not_found: 'The operator has to act.',
}
