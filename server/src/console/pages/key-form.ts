import { type Html, html } from '../../kernel/html.ts'
import { shortUsd } from '../../kernel/money.ts'
import { form, type Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import { PERIOD_WORDS, type ShownKey } from './key-parts.ts'
import { changesOnce, crumbs, troubled } from './parts.ts'

export const KEY_FIELDS = ['amount', 'period', 'requests', 'tokens', 'calls', 'expires', 'scopes', 'addresses'] as const
export type KeyValues = Partial<Record<(typeof KEY_FIELDS)[number] | 'name', string>>

type Shown = {
  readonly formToken: string
  readonly idempotencyKey: string
  readonly values: KeyValues
  readonly trouble: Trouble | null
  /** Where keys are. */
  readonly path: string
  /** The key that is changed, as it was read; null for a new one. */
  readonly key: {
    readonly id: string
    readonly name: string
    readonly etag: string
    readonly expiresBefore: string
    /** What the operator has set of it, in words. */
    readonly byOperator: string | null
  } | null
}

/** What a new key is proposed with: a key without any limit is a decision of its own. */
export const PROPOSED: KeyValues = { amount: '5.00', period: 'month' }

export function valuesOf({
  budget,
  rates,
  expires_at: expiresAt,
  scopes,
  allowed_addresses: addresses,
}: ShownKey): KeyValues {
  return {
    amount: budget === null ? '' : shortUsd(budget.amount),
    period: budget?.period ?? 'month',
    requests: rates.requests_per_minute?.toString() ?? '',
    tokens: rates.tokens_per_minute?.toString() ?? '',
    calls: rates.concurrency?.toString() ?? '',
    expires: expiresAt?.toISOString().slice(0, 10) ?? '',
    scopes: scopes?.join('\n') ?? '',
    addresses: addresses?.join('\n') ?? '',
  }
}

export function keyFormView({ formToken, idempotencyKey, values, trouble, path, key }: Shown): Html {
  const action = key === null ? path : `${path}/${key.id}`
  return html`${crumbs([[path, 'Keys'], ...(key === null ? [] : [[action, key.name] as const])], key === null ? 'New key' : 'Change')}
<div class="fb-title"><div><h1>${key === null ? 'New key' : html`Change <bdi>${key.name}</bdi>`}</h1><p>${key === null ? 'Its secret is shown once, on the next page.' : 'A lower budget holds at once. Other changes reach every process within a second.'}${key === null || key.byOperator === null ? undefined : ` The operator has set ${key.byOperator}: only they can change that.`}</p></div></div>
${troubled(trouble)}${form(
  action,
  { formToken },
  html`${changesOnce(idempotencyKey)}${key === null ? undefined : html`<input type="hidden" name="etag" value="${key.etag}"><input type="hidden" name="expires_before" value="${key.expiresBefore}">`}
${key === null ? text('name', 'Name', values.name, 'For you: where it is used.') : undefined}<fieldset class="fb-fields"><legend>Budget</legend>${text('amount', 'Amount, in USD', values.amount, 'At this, its calls are refused before they cost anything. Empty for no budget of its own.')}${periodChoice(values.period)}</fieldset>
<fieldset class="fb-fields"><legend>Limits</legend>${text('requests', 'Requests a minute', values.requests, 'Empty for those of the tier.')}${text('tokens', 'Tokens a minute', values.tokens)}${text('calls', 'Calls at once', values.calls)}</fieldset>
<fieldset class="fb-fields"><legend>What it may do</legend>${area('scopes', 'May call', values.scopes, 'Operations, categories, or model:<name>, one a line. Empty for everything.')}${area('addresses', 'From these addresses', values.addresses, 'Addresses and networks, such as 203.0.113.0/24, one a line. Empty for any.')}${text('expires', 'Expires on', values.expires, 'A day (UTC), such as 2027-01-31. Empty for never.', 'date')}</fieldset>
<p class="fb-actions"><button class="fb-button fb-button--large" type="submit">${icon('key')}${key === null ? 'Make the key' : 'Save the changes'}</button><a class="fb-button fb-button--large fb-button--quiet" href="${key === null ? path : action}">Cancel</a></p>`,
  'key-form',
)}`
}

function text(name: string, label: string, value = '', hint = '', type = 'text'): Html {
  return html`<div class="fb-field"><label for="${name}">${label}</label><input class="fb-input" id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="off"${described(name, hint)}>${hinted(name, hint)}</div>
`
}

function area(name: string, label: string, value = '', hint = ''): Html {
  return html`<div class="fb-field"><label for="${name}">${label}</label><textarea class="fb-input" id="${name}" name="${name}" rows="3" spellcheck="false"${described(name, hint)}>${value}</textarea>${hinted(name, hint)}</div>
`
}

const described = (name: string, hint: string) => (hint === '' ? undefined : html` aria-describedby="${name}-h"`)
const hinted = (name: string, hint: string) =>
  hint === '' ? undefined : html`<p class="fb-hint" id="${name}-h">${hint}</p>`

function periodChoice(chosen = 'month'): Html {
  return html`<div class="fb-field"><label for="period">For how long</label><select class="fb-select" id="period" name="period">${Object.entries(PERIOD_WORDS).map(([value, word]) => html`<option value="${value}"${value === chosen ? html` selected` : undefined}>${word}</option>`)}</select></div>
`
}
