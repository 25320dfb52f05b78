/** What to do about each code, in the words of this client. What is not here is for the operator. */
const CREDIT = 'Add credit, or lower the most that the call can cost: ask farebox.quote() for it.'
const LATER = 'Try again later. The client has waited and repeated as often as it was allowed to (maxRetries).'
const OPERATOR = 'Report the request id to the operator. Repeating the call does not help.'
const INPUT = 'Correct the input. The message says what is wrong with it.'

const PERSON = 'Ask the person who gave the mandate. Nothing was charged.'
const ELSEWHERE = 'Use another model or endpoint, or ask the operator. Nothing was charged.'

/** What to do about an error. What nobody knows is told as something on the way has told it. */
export function fixOf(code: string, { budget_period }: Readonly<Record<string, unknown>> = {}): string {
  if (code === 'budget_exceeded' && budget_period === 'total')
    return "Raise the key's budget: it is a total, which no wait restores. farebox.balance() tells what is left of it."
  return FIXES[code] ?? 'See `body` for what the provider, or something on the way, has answered.'
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
  resource_not_found: 'Check the name or the id. farebox.models() lists the models that there are.',
  route_not_found: 'Check baseUrl and names: the gateway has no such endpoint.',
  method_not_allowed: 'Check the method: the endpoint does not take this one.',
  expectation_failed: 'Leave out the Expect header.',
  misdirected_request: 'Check baseUrl: the gateway does not serve this host.',
  missing_credential: 'Give an apiKey.',
  invalid_credential: 'Check the apiKey, or create a new one.',
  expired_credential: 'Create a new key: this one has expired.',
  insufficient_balance: CREDIT,
  budget_exceeded:
    "Raise the key's budget, or wait for its next period where the call fits into one. farebox.balance() tells both.",
  budget_required: 'Have whoever gave the access token set an amount to spend.',
  approval_required: 'Have the person who gave the mandate open members.approval_url, then make the same call again.',
  approval_refused: PERSON,
  mandate_paused: PERSON,
  cost_cap_exceeded: 'Raise maxCostUsd, or ask for less. farebox.quote() tells what a call can cost.',
  account_suspended: 'Settle the debt of the account.',
  forbidden: 'Use a key with the scope for this operation.',
  address_not_allowed: 'Call from an address that the key allows, or change the key.',
  link_required: 'Link an account to the key first.',
  link_scope_missing: 'Link the account again with the scopes that are missing.',
  loss_ceiling_account: ELSEWHERE,
  loss_ceiling_route: ELSEWHERE,
  quote_invalid: 'Ask for a new quote with just this input.',
  quote_used: 'Ask for a new quote.',
  quote_not_supported: 'This operation gives no quotes. Use maxCostUsd.',
  idempotency_mismatch: 'Use a new idempotencyKey for another input.',
  idempotency_completed:
    'The call was made and charged, and its answer is not kept. Call with a new idempotencyKey if you want to pay for another one.',
  idempotency_running: 'The first call still runs. Look at it with farebox.requests.find(idempotencyKey, operation).',
  outcome_unknown:
    'Do not call again with another key: it might be charged twice. Look at farebox.requests.find(idempotencyKey, operation) later.',
  rate_limit_exceeded: LATER,
  upstream_rate_limit: LATER,
  quota_exceeded: 'Ask for less in one call, or for a higher limit.',
  request_timeout: LATER,
  contract_unavailable: LATER,
  sales_data_unavailable: LATER,
  overloaded: LATER,
  shutting_down: LATER,
  billing_dependency_timeout: LATER,
  upstream_unreachable: LATER,
  managed_upstream_unreachable: LATER,
  upstream_transport: 'Nothing was charged. The provider may have done it all the same: look before you call again.',
  managed_upstream_transport:
    'Nothing was charged. The provider may have done it all the same: look before you call again.',
  settlement_timeout: 'Nothing is charged. Look before you call again: the provider has answered.',
  upstream_unreadable: 'Nothing was charged, and the answer is withheld. Use another model or endpoint.',
  output_limit_passed: 'What you received is charged. Raise the output limit, or use another model.',
  task_not_cancelable: 'The task goes on and may be charged. Wait for it with farebox.tasks.wait(id).',
  upstream_account: OPERATOR,
  upstream_not_found: OPERATOR,
  not_configured: OPERATOR,
  invalid_billing_configuration: OPERATOR,
  internal_error: OPERATOR,
  connection_failed:
    'Check baseUrl and the network. The same call with the same idempotencyKey is safe: it is executed once at the most.',
  unexpected_answer:
    'The answer is in `body`. Check that baseUrl is that of the gateway, with nothing between that rewrites answers.',
  task_failed: 'Correct what the message names and create a new task. A failed task is not charged.',
  task_canceled: 'Create a new task if it is wanted after all. What it had used may have been charged: see `cost`.',
  task_timeout:
    'The task goes on and may be charged. Wait again with farebox.tasks.wait(id), or end it with farebox.tasks.cancel(id).',
}
