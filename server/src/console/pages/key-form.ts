import { type Html, html } from '../../kernel/html.ts'
import { shortUsd } from '../../kernel/money.ts'
import { form, type Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import { PERIOD_WORDS, type ShownKey } from './key-parts.ts'
import { changesOnce, crumbs, troubled } from './parts.ts'

export const KEY_FIELDS = ['amount', 'period', 'requests', 'tokens', 'calls', 'expires', 'scopes', 'addresses'] as const
export type KeyValues = Partial<Record<(typeof KEY_FIELDS)[number] | 'name', string>>
export type KeyKind = ShownKey['kind']

type Shown = {
  readonly formToken: string
  readonly idempotencyKey: string
  readonly kind: KeyKind
  readonly values: KeyValues
  readonly trouble: Trouble | null
  /** Where keys are. */
  readonly path: string
  /** The key that is changed, as it was read; null for a new one. */
  readonly key: {
    readonly id: string
    readonly name: string
    readonly etag: string
    /** What the form was filled with, as it is sent back: what differs from it is changed, and nothing else. */
    readonly before: string
    /** What the operator has set of it, in words. */
    readonly byOperator: string | null
  } | null
}

const DAY_MS = 86_400_000
const TICKET_DAYS = 7

/** What is proposed: a key without any limit is a decision of its own, and a ticket for somebody is small and soon over. */
export function proposed(kind: KeyKind, nowMs: number): KeyValues {
  const values = { amount: '5.00', period: kind === 'ticket' ? 'total' : 'month' }
  return kind === 'ticket' ? { ...values, expires: dayText(nowMs + TICKET_DAYS * DAY_MS) } : values
}

const dayText = (atMs: number) => new Date(atMs).toISOString().slice(0, 10)

/** A key expires at the beginning of the day that is named; a ticket is named the last day on which it works. */
export function endOfDay(day: string, kind: KeyKind): string {
  const beginsMs = Date.parse(`${day}T00:00:00Z`)
  if (kind === 'key' || Number.isNaN(beginsMs)) return `${day}T00:00:00Z`
  return new Date(beginsMs + DAY_MS).toISOString()
}

export function valuesOf({
  kind,
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
    expires: expiresAt === null ? '' : dayText(expiresAt.getTime() - (kind === 'ticket' ? 1 : 0)),
    scopes: scopes?.join('\n') ?? '',
    addresses: addresses?.join('\n') ?? '',
  }
}

const WORDS = {
  key: {
    title: 'New key',
    lead: 'Its secret is shown once, on the next page.',
    make: 'Make the key',
    icon: 'key',
  },
  ticket: {
    title: 'Give a ticket',
    lead: 'An amount for somebody without an account, until a day. You get a link to send, on the next page and only there.',
    make: 'Make the ticket',
    icon: 'ticket',
  },
} as const satisfies Record<KeyKind, Readonly<Record<string, string>>>

export function keyFormView({ formToken, idempotencyKey, kind, values, trouble, path, key }: Shown): Html {
  const action = key === null ? path : `${path}/${key.id}`
  const words = WORDS[kind]
  return html`${crumbs([[path, 'Keys'], ...(key === null ? [] : [[action, key.name] as const])], key === null ? words.title : 'Change')}
<div class="fb-title"><div><h1>${key === null ? words.title : html`Change <bdi>${key.name}</bdi>`}</h1><p>${key === null ? words.lead : 'A lower amount and an earlier end hold at once. Other changes reach every process within a second.'}${key?.byOperator == null ? undefined : ` The operator has set ${key.byOperator}: only they can change that.`}</p></div></div>
${troubled(trouble)}${form(
  action,
  { formToken },
  html`${changesOnce(idempotencyKey)}${key === null ? html`<input type="hidden" name="kind" value="${kind}">` : html`<input type="hidden" name="etag" value="${key.etag}"><input type="hidden" name="before" value="${key.before}">`}
${kind === 'ticket' ? ticketFields(values, key === null) : keyFields(values, key === null)}
<p class="fb-actions"><button class="fb-button fb-button--large" type="submit">${icon(words.icon)}${key === null ? words.make : 'Save the changes'}</button><a class="fb-button fb-button--large fb-button--quiet" href="${key === null ? path : action}">Cancel</a></p>`,
  'key-form',
)}`
}

function keyFields(values: KeyValues, isNew: boolean): Html {
  return html`${isNew ? text('name', 'Name', values.name, 'For you: where it is used.') : undefined}<fieldset class="fb-fields"><legend>Budget</legend>${text('amount', 'Amount, in USD', values.amount, 'At this, its calls are refused before they cost anything. Empty for no budget of its own.')}${periodChoice(values.period)}</fieldset>
<fieldset class="fb-fields"><legend>Limits</legend>${rates(values)}</fieldset>
<fieldset class="fb-fields"><legend>What it may do</legend>${reach(values)}${text('expires', 'Expires on', values.expires, 'A day (UTC), such as 2027-01-31. Empty for never.', 'date')}</fieldset>`
}

/** What most tickets need, and the rest behind a line: it is nothing that its holder has to be asked for. */
function ticketFields(values: KeyValues, isNew: boolean): Html {
  const { scopes = '', addresses = '', requests = '', tokens = '', calls = '' } = values
  const isOpen = [scopes, addresses, requests, tokens, calls].some((value) => value !== '')
  return html`${isNew ? text('name', 'Name', values.name, 'Its holder sees it, such as “Workshop, table 4”.') : undefined}<fieldset class="fb-fields"><legend>How much, and until when</legend><input type="hidden" name="period" value="total">${text('amount', 'Amount in total, in USD', values.amount, 'Nothing is taken from your balance now: calls are paid as they are made, at most this.')}${text('expires', 'Last day', values.expires, 'It works until midnight (UTC) of this day. What is left then stays with you.', 'date')}</fieldset>
<details class="fb-more"${isOpen ? html` open` : undefined}><summary>What it may call, how fast, and from where</summary><div class="key-form">${reach(values)}${rates(values)}</div></details>`
}

function rates(values: KeyValues): Html {
  return html`${text('requests', 'Requests a minute', values.requests, 'Empty for those of the tier.')}${text('tokens', 'Tokens a minute', values.tokens)}${text('calls', 'Calls at once', values.calls)}`
}

function reach(values: KeyValues): Html {
  return html`${area('scopes', 'May call', values.scopes, 'Operations, categories, or model:<name>, one a line. Empty for everything.')}${area('addresses', 'From these addresses', values.addresses, 'Addresses and networks, such as 203.0.113.0/24, one a line. Empty for any.')}`
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
