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
\`error.details[].reason\` for Gemini, \`error.code\` in the result of an agent's tool, \`code\` in errors of the website.

- **Charges**: a request that ends with one of these errors costs nothing, unless its entry or its message says otherwise. A stream that
  fails after its first words costs its input and what was delivered: \`cost_usd\` in the error says how much.
- **Retries**: _safe to send again_ means that the same request can be repeated and may then succeed. An entry that does not say so
  asks for something else first: the same request, sent again, would fail again or could be carried out twice.
- **Where to mend it**: 402, 403 and 429 for money, a right or a limit have \`fix_url\`, the page of the website where somebody changes what is in
  the way: beside the code in OpenAI, data endpoints, tools and the website, in \`error.details\` for Anthropic, in \`error.details[].metadata\` for
  Gemini. Installations without a website have none.
- **One form without a code**: \`GET /v1/usage\` answers an invalid request with 400 and \`{"error": "…"}\`, only the message. The request id is
  in the header \`X-Request-ID\`, as always.

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
  billing_dependency_timeout: 'Safe to send again, after `Retry-After`, unless a stream had begun.',
}

const BY_ID = '`GET /v1/requests/{id}`; the id is the `X-Request-ID` of the answer'
const CARRIED_OUT = `A whole answer that did not come is not charged; a stream is charged for its input and what was delivered (\`cost_usd\`). The provider may have carried the request out: before you repeat one that changes something, check whether it already has. What was tried and what it cost: ${BY_ID}.`
const NO_USE = 'Sending the request again does not help until that is fixed.'
const managed = (code: string) =>
  `The same as [${code}](#${code}), with status 503 in place of 502: the operator has set this provider up as managed (\`farebox upstreams add --managed\`).`

/** Where more has to be said than the sentence of the table does. */
const EXPLAINED: Readonly<Record<string, string>> = {
  quote_invalid:
    'The message ends with the cause: the quote has expired (after five minutes), or it was made for another key, another account or another request, or this installation did not issue it. A quote is valid only for exactly the request that it was made for.',
  invalid_credential: 'A key that was revoked, and an access token that has expired, get this too: get a new one.',
  insufficient_balance:
    'Ask the operator to add credit, or lower the maximum cost of the call, for example its output limit (`max_tokens`). The error has `needed_usd` and `left_usd`. A part of the balance may be held by calls that still run: what they do not use returns when they end (`held` of `GET /v1/balance`).',
  account_suspended:
    'A refund or a chargeback of money that was already spent leaves a debt: `debt` of `GET /v1/balance`. New calls are refused, and a stream that runs may end early, until the operator has booked a payment that covers the debt (`farebox credit`).',
  budget_exceeded:
    'The error names the tightest budget in the way (`budget_kind`, `budget_period`, and `budget_subject` if there is one), what the call needs (`needed_usd`), and what is left (`left_usd`). `budget_resets_at` is when all budgets in the way have begun again; it is left out if waiting does not help: [budgets.md](budgets.md#what-is-left).',
  forbidden:
    'The message names what is missing: a scope of a key ([keys.md](keys.md#scopes)) or of an access token, or the role of a person.',
  link_required:
    'Start with `POST /apis/v1/{social_a}/auth_{social_a}`. `{social_a}` is the word that the setting `names.social_a` has, by default `social_a`: [links.md](links.md).',
  loss_ceiling_account:
    'Losses of the last 60 minutes and of the last 24 hours count, so the limit opens again by itself as they get older. Nobody knows when, so there is no `Retry-After`. Nothing was carried out: the same request is safe to send again later.',
  idempotency_completed:
    'The error has `first_request_id`, and `status` and `cost_usd` of the first call. The answer itself is not stored; a task can still be polled (`task_id`). This request costs nothing and is not carried out. To make and pay for another call, use a new idempotency key.',
  idempotency_running: 'The first call is charged when it completes; this request costs nothing.',
  outcome_unknown:
    'The error has the id of the first call as `first_request_id`. That call is not charged yet: its money stays held until the operator settles it by what the provider reports. If nobody does within 24 hours, it is voided: it costs nothing, its money is free again, and the same request with the same idempotency key is carried out as a new call. Until then nothing is carried out with this idempotency key. With another one, the request could be carried out and charged twice.',
  idempotency_mismatch:
    'An idempotency key belongs to the first request that was sent with it (`first_request_id`): while that call runs or its outcome is unknown, and for 24 hours after its end if it was charged. A call that ended uncharged frees its key. This request was not carried out and costs nothing.',
  unsupported_media_type: 'The API accepts `Content-Type: application/json`, and no `Content-Encoding` (no gzip).',
  rate_limit_exceeded:
    'The message says which limit it is and whose: requests per minute, tokens per minute, or concurrent calls, of your key, of your tier or of this endpoint (`limited_by`). The headers `X-RateLimit-*` have what is left: [limits.md](limits.md).',
  missing_credential:
    'The SDKs of Anthropic and Google send one of the two other headers by themselves. A key in the URL is never accepted.',
  quote_used:
    'The quote belongs to an earlier call that was charged, or that still runs. A call that ended uncharged frees its quote.',
  approval_required:
    'An approval is valid for 15 minutes and for one execution, whether or not it succeeds: [mandates.md](mandates.md).',
  billing_dependency_timeout:
    'A stream that had begun is cut with this error. Its message then says that what you received is charged (`cost_usd` has the input and what was delivered): do not simply send it again.',
  upstream_rate_limit: "It is the limit of the operator's account with the provider, not yours.",
  contract_hash_mismatch:
    'The hash is the parameter `hash` of `GET /api/contracts/source`. The error has the hash that is served as `content_hash`. Older contracts are kept for a time that the operator sets (`contract.kept_days`).',
  contract_unavailable:
    'It concerns only the OpenAPI contract (`GET /api/contracts/…`) and the API reference on the website. Other calls are not affected.',
  sales_data_unavailable:
    'It concerns only `GET /api/sales-api-data`, and comes only if there is no snapshot at all: an old one is served, marked `stale`. Calls and quotes are not affected.',
  task_not_cancelable: 'The task is charged if it succeeds.',
  misdirected_request:
    'The Host header is none that this listener serves. Operators set the names with `http.site_url` (website), `http.mcp_url` (agents) and `http.admin_hosts` (metrics); the API answers under every name.',
  quota_exceeded:
    'Its `Retry-After` is an hour, and `x-should-retry` is `false`: do not wait for it. Mostly it is the limit of tokens per minute of your key or tier: the call may use more (`needed_tokens`) than a whole minute has (`limit_tokens`). Lower `max_tokens`, shorten the input, or ask the operator for a higher tier. When something is created, it is the limit on how many there may be (keys, budgets, grants, workspaces): the message says which, and what to remove.',
  internal_error: `The outcome is unknown, and the call may have been charged: look it up before you send it again, with ${BY_ID}.`,
  unsupported_uri:
    'These two words are the whole message. Send the id of a task in the path, `GET /apis/v1/services/aigc/tasks/{task_id}`, and not as a query parameter.',
  upstream_transport: CARRIED_OUT,
  managed_upstream_transport: managed('upstream_transport'),
  managed_upstream_unreachable: managed('upstream_unreachable'),
  upstream_unreadable:
    'Only data endpoints answer like this. The request was carried out: if you send it again, it is carried out again. Use another endpoint until the operator has fixed it.',
  output_limit_passed:
    'Only a stream ends like this. Its HTTP status was 200 already: this error is its last event, and 502 is the status in it. `cost_usd` says what was charged. Raise the output limit, or use another model.',
  settlement_timeout: `The provider had answered, but the ledger did not in time. A whole answer is withheld; a stream breaks off before its end. Neither is charged, also not the part of a stream that you received. Sent again, the request is carried out again, and charged. Look it up: ${BY_ID}. Its cost is 0, or it is shown as running until the ledger has voided it. If it has a cost a minute later, our process died before the charge could be given back: ask the operator to give it back.`,
  upstream_account: `Report it to the operator. ${NO_USE}`,
  upstream_not_found: `Report it to the operator. ${NO_USE}`,
  invalid_billing_configuration: NO_USE,
  not_configured:
    'No provider is set up for this operation and this kind of key (live or test), or a setting that it needs is missing, such as `secrets.master_key` for videos. Sending the request again does not help until the operator has set it up.',
}
