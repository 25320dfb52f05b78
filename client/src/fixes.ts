/** What to do about each code, in the words of this client. What is not here is for the operator. */
const CREDIT = 'Add credit, or lower the maximum cost of the call, which farebox.quote() tells.'
const LATER = 'Try again later. The client has already retried as often as maxRetries allows.'
const OPERATOR = 'Report the request id to the operator. Sending the call again does not help.'
const INPUT = 'Correct the input. The message says what is wrong with it.'

const PERSON = 'Ask the person who gave the mandate. Nothing was charged.'
const CARRIED_OUT =
  'A whole answer is not charged; of a stream, the input and what was delivered are (cost_usd). The provider may have carried it out: check before you call again.'
const ELSEWHERE = 'Use another model or endpoint, try again later, or ask the operator. Nothing was charged.'

/** What to do about an error. What nobody knows is told as something on the way has told it. */
export function fixOf(code: string, { budget_period }: Readonly<Record<string, unknown>> = {}): string {
  if (code === 'budget_exceeded' && budget_period === 'total')
    return 'Raise the budget of the key: it is a total, so waiting does not help. farebox.balance() tells what is left.'
  return FIXES[code] ?? 'See `body` for the answer of the provider, or of a proxy on the way.'
}

export const FIXES: Readonly<Record<string, string>> = {
  invalid_request: INPUT,
  invalid_json: INPUT,
  body_too_deep: INPUT,
  body_too_large: INPUT,
  uri_too_long: INPUT,
  headers_too_large: INPUT,
  unsupported_media_type: INPUT,
  model_not_found: 'Check the name of the model. farebox.models() lists all models.',
  not_sold:
    'Use another operation or model: farebox.models() lists the models, and the contract has the operations. Ask the operator if you need this one.',
  resource_not_found: 'Check the name or the id. farebox.models() lists all models.',
  route_not_found: 'Check baseUrl and names: the gateway has no such endpoint.',
  method_not_allowed: 'Check the method: the endpoint does not support this one.',
  expectation_failed: 'Leave out the Expect header.',
  misdirected_request: 'Check baseUrl: the gateway does not serve this host.',
  missing_credential: 'Pass an apiKey.',
  invalid_credential: 'Check the apiKey, or create a new one.',
  expired_credential: 'Create a new key: this one has expired.',
  insufficient_balance: CREDIT,
  budget_exceeded:
    'Raise the budget of the key, or wait for its next period if the call fits into one. farebox.balance() tells both.',
  budget_required: 'Ask the person who granted the access token to set an amount.',
  approval_required: 'Have the person who gave the mandate open members.approval_url, then make the same call again.',
  approval_refused: PERSON,
  mandate_paused: PERSON,
  cost_cap_exceeded: 'Raise maxCostUsd, or ask for less. farebox.quote() tells what a call can cost.',
  account_suspended: 'Pay the debt of the account.',
  forbidden: 'Use a key with the scope for this operation.',
  address_not_allowed: 'Call from an address that the key allows, or change the key.',
  link_required: 'Link a platform account to the key first. The message names the endpoint.',
  link_scope_missing: 'Link the account again with the scopes that are missing.',
  loss_ceiling_account: ELSEWHERE,
  loss_ceiling_route: ELSEWHERE,
  quote_invalid: 'Ask for a new quote with exactly this input.',
  quote_used: 'Look up the call that used the quote in the list of your requests, then ask for a new quote.',
  quote_not_supported: 'This operation gives no quotes. Use maxCostUsd.',
  idempotency_mismatch: 'Use a new idempotencyKey for another input.',
  idempotency_completed:
    'The first call was made and charged, and its answer is not stored. Use a new idempotencyKey to make and pay for another call.',
  idempotency_running:
    'The first call is still running. Look it up with farebox.requests.find(idempotencyKey, operation).',
  outcome_unknown:
    'Look it up later with farebox.requests.find(idempotencyKey, operation). Do not call again with another key: you could be charged twice.',
  rate_limit_exceeded: LATER,
  upstream_rate_limit: LATER,
  quota_exceeded: 'Ask for less in one call, or for a higher limit.',
  request_timeout: LATER,
  contract_unavailable: LATER,
  sales_data_unavailable: LATER,
  overloaded: LATER,
  billing_dependency_timeout:
    'It can be sent again after a while, unless a stream had begun: then the input and what was delivered are charged (cost_usd).',
  upstream_unreachable: LATER,
  managed_upstream_unreachable: LATER,
  upstream_transport: CARRIED_OUT,
  managed_upstream_transport: CARRIED_OUT,
  settlement_timeout: 'Nothing is charged, but the provider has carried it out: check before you call again.',
  upstream_unreadable: 'Nothing was charged, and the answer is withheld. Use another model or endpoint.',
  output_limit_passed: 'What you received is charged. Raise the output limit, or use another model.',
  task_not_cancelable: 'The task continues and may be charged. Wait for it with farebox.tasks.wait(id).',
  upstream_account: OPERATOR,
  upstream_not_found: OPERATOR,
  not_configured: OPERATOR,
  invalid_billing_configuration: OPERATOR,
  internal_error: OPERATOR,
  connection_failed:
    'Check baseUrl and the network. The same call with the same idempotencyKey is safe: it is executed at most once.',
  unexpected_answer:
    'The answer is in `body`. Check that baseUrl is the address of the gateway, and that no proxy in between rewrites answers.',
  task_failed: 'Correct what the message names and create a new task. A failed task is not charged.',
  task_canceled: 'Create a new task if you still want it. What the old one had used may have been charged: see `cost`.',
  task_timeout:
    'The task continues and may be charged. Wait again with farebox.tasks.wait(id), or end it with farebox.tasks.cancel(id).',
}
