type Row = {
  readonly status: number
  /** What the caller reads: what happened, and what to do next. */
  readonly text: string
  /** Whether the same request, sent again later, is safe and may succeed. */
  readonly retryable: boolean
  /** Whether a sentence with the particulars says it all, and stands in place of the text. */
  readonly isGeneral?: boolean
}

const row = (status: number, text: string, retryable = false): Row => ({ status, text, retryable })
const general = (status: number, text: string, retryable = false): Row => ({
  ...row(status, text, retryable),
  isGeneral: true,
})
const RETRYABLE = true

/** Every way in which the service itself refuses or fails. Codes are public and are never renamed. */
export const FAULTS = {
  invalid_request: general(400, 'The request is invalid. Correct it and send it again.'),
  invalid_json: general(400, 'The body is not valid JSON in UTF-8. Correct it and send it again.'),
  body_too_deep: general(400, 'The JSON body is nested too deeply. Flatten it and send it again.'),
  quote_not_supported: general(
    400,
    'This endpoint gives no quotes. Send the request without the header x-farebox-cost-mode.',
  ),
  quote_invalid: row(400, 'The quote is not valid for this request. Nothing was charged. Ask for a new one.'),
  missing_credential: row(
    401,
    'No credential was sent. Send your API key as "Authorization: Bearer <key>", or in the header x-api-key or x-goog-api-key.',
  ),
  invalid_credential: general(401, 'The credential is not valid. Check the key, or create a new one.'),
  expired_credential: general(401, 'This key has expired. Create a new one.'),
  sign_in_required: row(
    401,
    'Nobody is signed in. Sign in on the website, or send an access token of a member as "Authorization: Bearer <token>".',
  ),
  insufficient_balance: row(
    402,
    'Insufficient balance: it does not cover the maximum cost of this call. Add credit, or ask for less.',
  ),
  budget_exceeded: row(
    402,
    'Budget exceeded: what is left does not cover the maximum cost of this call. Ask for less, or have the budget raised.',
  ),
  budget_required: row(
    402,
    'This access token has no budget, so it cannot pay for calls. Ask the person who granted it to set an amount, or authorise again with one.',
  ),
  approval_required: row(
    402,
    'This call needs approval by the person who gave the mandate. Nothing was charged. Have them open approval_url, then make the same call again.',
  ),
  cost_cap_exceeded: row(
    402,
    'Cost cap exceeded: the maximum cost of this call is above the cap you sent. Raise the cap, or ask for less.',
  ),
  account_suspended: row(
    402,
    'The account is suspended: a payment was reversed after it was spent. Pay the debt to continue.',
  ),
  forbidden: row(403, 'The credential is not allowed to do this. Use one with the right scope.'),
  address_not_allowed: row(
    403,
    'This key may not be used from your address. Call from an address that the key allows, or change the key.',
  ),
  approval_refused: row(
    403,
    'The person who gave the mandate refused this call. Nothing was charged. Do not send it again; ask them what to do instead.',
  ),
  mandate_paused: row(
    403,
    'The person who gave the mandate paused it. Nothing was charged. Have them resume it, then make the same call again.',
  ),
  form_refused: row(
    403,
    'This form was not sent from our page, or the page is out of date. Open the page again and send the form once more.',
  ),
  person_blocked: row(
    403,
    'The operator of this service has blocked your account. You cannot sign in or let clients in. Ask the operator why.',
  ),
  password_reset_required: row(
    403,
    'Too many codes of the second factor were wrong, so somebody else may know your password. Ask for a new password, then sign in with a code.',
  ),
  cross_site_refused: row(
    403,
    'This request did not come from a page of this website. Send the header X-Form-Token with the form_token that GET /account/v1/me returns, or use an access token.',
  ),
  link_required: general(403, 'No platform account is linked to this key. Link one, then make the same call again.'),
  link_scope_missing: row(
    403,
    'The linked account has not granted a scope that this call needs. Link it again with more scopes.',
  ),
  sign_up_closed: row(403, 'Sign-up is closed here. Ask the operator for an account.'),
  invitation_for_another: row(403, 'This invitation is for another e-mail address. Sign in with that address.'),
  loss_ceiling_account: row(
    403,
    'Loss limit reached: the provider used more than was held for your calls. Nothing was charged for this call. Use another model or endpoint, try again later, or ask the operator.',
  ),
  route_not_found: row(404, 'There is no such endpoint. Check the method and the path.'),
  resource_not_found: general(404, 'There is no such resource. Check the id.'),
  model_not_found: general(404, 'There is no such model. Use one that GET /v1/models lists.'),
  not_sold: general(
    404,
    'This is not sold here, and nothing was charged. Use what the catalogue lists, or ask the operator for it.',
  ),
  method_not_allowed: row(405, 'This endpoint does not support this method. Use one that the Allow header lists.'),
  request_timeout: row(408, 'Request timeout: the request did not arrive in time. Send it again.', RETRYABLE),
  quote_used: row(
    409,
    'The quote has already been used, so this request was not carried out and costs nothing. Look up the call that used it with GET /v1/requests before you ask for a new quote.',
  ),
  idempotency_completed: row(
    409,
    'A call with this idempotency key has already completed and was charged. Look it up with GET /v1/requests/{first_request_id}.',
  ),
  idempotency_running: row(409, 'A call with this idempotency key is still running. Try again shortly.', RETRYABLE),
  outcome_unknown: row(
    409,
    'The first call with this idempotency key was interrupted; its outcome is unknown. Look it up with GET /v1/requests/{first_request_id}. Do not repeat it with another idempotency key.',
  ),
  task_not_cancelable: row(409, 'The task cannot be canceled now and continues. Poll it until it ends.'),
  last_owner: row(409, 'A workspace needs at least one owner. Make another member an owner first.'),
  member_has_keys: row(
    409,
    'This member has API keys that work. Send keys=revoke, keys=keep or keys=to:<member_id> to say what becomes of them.',
  ),
  already_member: row(409, 'This address is already a member of the workspace. Change its role instead.'),
  members_full: row(
    409,
    'The workspace has reached its limit of members and open invitations. Remove a member or an invitation first.',
  ),
  contract_hash_mismatch: row(
    409,
    'No contract with this hash is served or kept here. Use the hash that GET /api/contracts/version returns.',
  ),
  quota_request_open: row(
    409,
    'The workspace already has an open quota request. Try again after the decision, or withdraw it first.',
  ),
  workspace_closing: row(
    409,
    'The workspace is being closed, so nothing can be added or changed. Ask an owner to cancel that while it is possible.',
  ),
  workspace_suspended: row(
    409,
    'The operator has suspended the workspace, so nothing can be added or changed. The owners were told why; ask the operator.',
  ),
  export_not_ready: row(
    409,
    'The export is being prepared: changes that were under way when it was asked for have not ended yet. Try again shortly.',
    RETRYABLE,
  ),
  quota_request_decided: row(409, 'This quota request was decided already. Make a new one.'),
  precondition_failed: row(
    412,
    'It was changed after you read it, so your change was not made. Look at it again, then send the change with its new ETag.',
  ),
  body_too_large: general(413, 'The body is too large. Send a smaller one.'),
  uri_too_long: general(414, 'The URL is too long. Shorten it.'),
  unsupported_media_type: row(
    415,
    'The type or the encoding of the body is not supported. Check the headers Content-Type and Content-Encoding.',
  ),
  expectation_failed: row(417, 'The expectation in the Expect header is not supported. Leave the header out.'),
  misdirected_request: row(421, 'This server does not answer under the host name of your URL. Check the URL.'),
  idempotency_mismatch: row(422, 'This idempotency key was already used with a different request. Use a new key.'),
  precondition_required: row(428, 'This change needs the header If-Match. Send it with the ETag of what you read.'),
  rate_limit_exceeded: general(429, 'Rate limit reached. Retry after the time in Retry-After.', RETRYABLE),
  upstream_rate_limit: row(
    429,
    "The provider's rate limit is reached. Retry after the time in Retry-After.",
    RETRYABLE,
  ),
  quota_exceeded: general(
    429,
    'Quota exceeded, and waiting does not help: this call alone needs more than your limit. Ask for less, or for a higher limit.',
  ),
  headers_too_large: general(431, 'The headers are too large. Send fewer or shorter ones.'),
  internal_error: row(500, 'Something failed on our side. Quote the request id when you report it.'),
  unsupported_uri: row(500, 'unsupported uri'),
  upstream_transport: row(
    502,
    'The connection to the provider failed, or its answer was not valid. The problem is not on your side.',
  ),
  upstream_unreachable: row(
    502,
    'The provider could not be reached, so your request was not sent. Nothing was charged. Try again shortly.',
    RETRYABLE,
  ),
  upstream_unreadable: row(
    502,
    'The provider answered without a cost that we can read, so the answer is withheld. You were not charged. Report the request id to the operator.',
  ),
  output_limit_passed: row(
    502,
    'The provider exceeded the output limit of your request (max_tokens, or the default of the model), so the stream was cut. What you received is charged.',
  ),
  managed_upstream_transport: row(
    503,
    'The connection to the provider failed, or its answer was not valid. The problem is not on your side.',
  ),
  managed_upstream_unreachable: row(
    503,
    'The provider could not be reached, so your request was not sent. Nothing was charged. Try again shortly.',
    RETRYABLE,
  ),
  loss_ceiling_route: row(
    503,
    'Loss limit reached: the provider uses more than calls are priced for, so it is paused. Nothing was charged. Use another model or endpoint, or try again later.',
    RETRYABLE,
  ),
  upstream_account: row(503, 'The provider rejected our account. This is on our side; you were not charged.'),
  upstream_not_found: row(
    503,
    'The provider does not know the path or model that we requested. This is on our side; you were not charged.',
  ),
  billing_dependency_timeout: general(
    503,
    'The ledger did not answer in time. Nothing was charged. Try again.',
    RETRYABLE,
  ),
  settlement_timeout: row(
    503,
    'The call was carried out but could not be settled in time, so it is not charged. Look it up by its request id before you send it again.',
  ),
  invalid_billing_configuration: row(
    503,
    'This operation has no valid price. This is on our side: ask the operator to set one.',
  ),
  not_configured: row(503, 'This operation is not set up on this installation. Ask the operator.'),
  contract_unavailable: row(
    503,
    'No verified contract is available now. Nothing was executed or charged. Try again later.',
    RETRYABLE,
  ),
  sales_data_unavailable: row(
    503,
    'No verified price data is available now. Nothing was executed or charged. Try again later.',
    RETRYABLE,
  ),
  overloaded: row(503, 'The service is overloaded. Try again shortly.', RETRYABLE),
} as const satisfies Record<string, Row>

export type FaultCode = keyof typeof FAULTS

type Plain = string | number | boolean | null
type MemberValue = Plain | readonly Readonly<Record<string, Plain>>[]

type Details = {
  /** A public sentence with the particulars of this case, appended to the table's text or in its place. */
  readonly detail?: string
  /** Public members of the error body beyond code and message, such as what was needed and what is left. */
  readonly members?: Readonly<Record<string, MemberValue>>
  readonly retryAfterSeconds?: number
  /** Headers that the answer carries, such as what is left of a limit. */
  readonly headers?: Readonly<Record<string, string>>
  /** What really happened: for our log, never for the caller. */
  readonly cause?: unknown
}

/** A refusal or failure of ours. Its message is public; its cause is not. It is rendered at the edge only. */
export class Fault extends Error {
  readonly code: FaultCode
  readonly status: number
  readonly retryable: boolean
  readonly members: NonNullable<Details['members']>
  readonly retryAfterSeconds: number | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(code: FaultCode, { detail, members = {}, retryAfterSeconds, headers = {}, cause }: Details = {}) {
    const { status, text, retryable, isGeneral }: Row = FAULTS[code]
    super(detail === undefined ? text : isGeneral ? detail : `${text} ${detail}`, { cause })
    this.name = 'Fault'
    this.code = code
    this.status = status
    this.retryable = retryable
    this.members = members
    this.retryAfterSeconds = retryAfterSeconds
    this.headers = headers
  }

  /** The same fault with other headers or other members. */
  with({ headers = this.headers, members = this.members }: Pick<Details, 'headers' | 'members'>): Fault {
    const { code, retryAfterSeconds, cause, message } = this
    const same = new Fault(code, {
      members,
      headers,
      cause,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    })
    same.message = message
    same.stack = this.stack ?? ''
    return same
  }

  /** The same fault with these headers beside its own. */
  withHeaders(headers: Readonly<Record<string, string>>): Fault {
    return this.with({ headers: { ...this.headers, ...headers } })
  }
}

/** What was sent is wrong; `param` is the member that is. */
export function invalidRequest(detail: string, param?: string): Fault {
  return new Fault('invalid_request', { detail, ...(param !== undefined && { members: { param } }) })
}

/** What is wrong with a credential is told in the words of its kind: who has an access token never had a key. */
export function wrongCredential(code: 'invalid_credential' | 'expired_credential', isToken: boolean): Fault {
  return new Fault(code, isToken ? { detail: TOKEN_WORDS[code] } : {})
}

const TOKEN_WORDS = {
  invalid_credential: 'The access token is not valid: it is wrong, or its grant was revoked. Sign in again.',
  expired_credential: 'The access token has expired. Refresh it, or sign in again.',
} as const

/** Anything thrown, as a fault: what is not one of ours is an internal error whose cause stays inside. */
export function asFault(thrown: unknown): Fault {
  return thrown instanceof Fault ? thrown : new Fault('internal_error', { cause: thrown })
}

/** There is no memory for what a request may take. Nothing was held or sent, and the caller may try again. */
export function noRoom(): Fault {
  return new Fault('overloaded', {
    detail: 'There is not enough memory for a call of this size now.',
    retryAfterSeconds: 1,
  })
}

/** PostgreSQL can't be asked. That says nothing about the caller, who may try again. */
export function unavailable(cause: unknown): Fault {
  return new Fault('billing_dependency_timeout', { cause, retryAfterSeconds: 1 })
}

/** For whoever asks PostgreSQL and can't go on without an answer; what is told already stays as it is. */
export function asUnavailable(cause: unknown): never {
  throw cause instanceof Fault ? cause : unavailable(cause)
}
