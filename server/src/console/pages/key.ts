import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, ZERO } from '../../kernel/money.ts'
import { form, type Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import { dayOf, momentOf, shortDayOf, timeOf } from '../../people-pages/views/words.ts'
import { codeTabs } from '../../site/code.ts'
import { withCommas } from '../../site/money.ts'
import {
  budgetLabel,
  type KeyState,
  keyBadge,
  keyHint,
  operatorWords,
  PERIOD_WORDS,
  type ShownKey,
  spendingOf,
} from './key-parts.ts'
import { lastUse } from './keys.ts'
import { asSet, bar, card, changesOnce, copyButton, crumbs, exact, legend, meter, reveal, troubled } from './parts.ts'
import { refusalWords } from './refusal-words.ts'
import { type SnippetParts, snippets } from './snippets.ts'

type Shown = {
  readonly key: ShownKey
  readonly state: KeyState | undefined
  readonly nowMs: number
  readonly formToken: string
  readonly idempotencyKey: string
  /** Where keys are. */
  readonly path: string
  /** Told this once, of a key that was just made or rotated; of a ticket its link. */
  readonly secret: string | null
  readonly mayChange: boolean
  readonly trouble: Trouble | null
}

export function keyView(parts: SnippetParts, shown: Shown): Html {
  const { key, path, nowMs, state, secret, mayChange, trouble } = shown
  const isOver = key.state === 'revoked'
  const own = `${path}/${key.id}`
  return html`${crumbs([[path, 'Keys']], key.name)}
<div class="fb-title"><div><h1><bdi>${key.name}</bdi></h1><p class="meta">${keyBadge(key, nowMs)}<span class="id">${keyHint(key)}</span>${key.kind === 'ticket' ? html`<span>${icon('ticket')} Ticket</span>` : undefined}<span>used ${lastUse(state, nowMs)}</span><span>made ${dayOf(key.created_at)}</span></p></div>${
    mayChange && !isOver
      ? html`<div class="fb-actions"><a class="fb-button fb-button--danger" href="${own}/revoke">${key.kind === 'ticket' ? 'End it' : 'Revoke'}</a><a class="fb-button" href="${own}/edit">Change</a></div>`
      : undefined
  }</div>
${troubled(trouble)}${secret === null ? undefined : secretShown(parts, shown, secret)}<div class="fb-cols">
${budgetCard(shown)}${limitsCard(key)}${refusalsCard(shown)}<div class="fb-c4 fb-cols">${mayChange && key.state === 'active' ? rotateCard(shown) : undefined}${scopeCard(key)}</div>
</div>`
}

function secretShown(parts: SnippetParts, { key }: Shown, secret: string): Html {
  const until = key.previous_secret_until
  const stillWorks = until === null ? '' : ` The old one works until ${timeOf(until)}.`
  if (key.kind === 'ticket')
    return html`<section class="fb-callout" aria-label="The link">${icon('ticket')}<div><strong>Send this link now: it is shown once.</strong><p>Whoever opens it sees, without an account, what is left and how to use it. Whoever has it can spend it.${stillWorks}</p>${reveal(secret)}</div></section>
`
  return html`<section class="fb-callout" aria-label="The secret">${icon('key')}<div><strong>Copy the key now: it is shown once.</strong><p>Only its hash is kept.${stillWorks}</p>${reveal(secret)}</div></section>
${codeTabs('use', 'Use it', snippets(parts, secret), copyButton('use'))}
`
}

function budgetCard(shown: Shown): Html {
  const { key, state, path } = shown
  const spending = spendingOf(key, state)
  if (spending === null || key.budget === null)
    return card(
      'budget',
      'Budget',
      html`<p class="fb-soft">This key has no budget of its own: it can spend what the workspace and its member have. <a href="${path}/${key.id}/edit">Set one</a>.</p>`,
      { kind: 'fb-c8' },
    )
  const { charged, held, left, limit } = spending
  const resets = key.kind === 'ticket' ? key.expires_at : (state?.budget?.resets_at ?? null)
  return card(
    'budget',
    key.kind === 'ticket' ? 'What was given' : `Budget, ${PERIOD_WORDS[key.budget.period]}`,
    html`<div class="budget__top"><span class="v">${meter(left)}</span><span class="fb-soft">left of ${asSet(limit)}${resets === null ? '' : `, until ${timeOf(resets)}`}</span></div>${bar(spending, budgetLabel(spending))}${legend({ charged: exact(charged), held: exact(held), left: exact(left) })}${budgetNote(shown, left)}`,
    { kind: 'fb-c8 budget' },
  )
}

function budgetNote({ key, path }: Shown, left: Nanos): Html | undefined {
  const change = `${path}/${key.id}/edit`
  if (key.kind === 'ticket' && key.state !== 'active')
    return html`<p class="chart-foot fb-soft">It has ended. Nothing was taken from your balance for it, so that what is left is yours already.</p>`
  if (left > ZERO) return undefined
  return html`<p class="chart-foot fb-soft">It is used up: calls are refused with 402, and cost nothing. <a href="${change}">Raise it</a>${key.budget?.period === 'total' ? '' : ', or wait'}.</p>`
}

function limitsCard(key: ShownKey): Html {
  const { rates, allowed_addresses: addresses, tags } = key
  const byOperator = operatorWords(key)
  const rate = (value: number | null) =>
    value === null ? html`<span class="fb-dim">as the tier</span>` : withCommas(value)
  const pairs = [
    ['Requests a minute', rate(rates.requests_per_minute)],
    ['Tokens a minute', rate(rates.tokens_per_minute)],
    ['Calls at once', rate(rates.concurrency)],
    ['From', addresses === null ? html`<span class="fb-dim">any address</span>` : addresses.join(', ')],
    ['Tags', tags === null ? html`<span class="fb-dim">none</span>` : tags.join(', ')],
    ...(byOperator === null ? [] : [['Set by the operator', byOperator] as const]),
  ] as const
  return card(
    'limits',
    'Limits',
    html`<dl class="fb-kv">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`,
    { kind: 'fb-c4' },
  )
}

function refusalsCard({ state, nowMs }: Shown): Html {
  const refusals = state?.refusals ?? []
  const beside = html`<span class="fb-dim">30 days. A refusal costs nothing.</span>`
  if (refusals.length === 0)
    return card('refused', 'Refused, by reason', html`<p class="fb-soft">No call with this key was refused.</p>`, {
      kind: 'fb-c8',
      beside,
    })
  const rows = refusals.map(({ reason, count, last_hour: hour }) => {
    const { title, fix } = refusalWords(reason)
    return html`<tr><th scope="row">${title}<span class="fb-sub fb-code">${reason}</span></th><td class="fb-end" data-k="Times">${withCommas(count)}</td><td class="fb-nowrap fb-dim" data-k="Last">${momentOf(hour, new Date(nowMs)).replace(/^(\d\d):.*/, '$1:00 UTC')}</td><td class="fb-soft">${fix} <a href="/docs/errors#${reason}">More<span class="fb-hide"> about ${reason}</span></a></td></tr>`
  })
  return card(
    'refused',
    'Refused, by reason',
    html`<table class="fb-table fb-table--card fb-stack"><thead><tr><th scope="col">Reason</th><th scope="col" class="fb-end">Times</th><th scope="col">Last, to the hour</th><th scope="col">What to do</th></tr></thead><tbody>${rows}</tbody></table>`,
    { kind: 'fb-c8', beside, isPlain: true },
  )
}

const OVERLAPS = [
  ['86400', 'a day'],
  ['604800', 'a week'],
  ['0', 'no time: it ends at once'],
] as const

function rotateCard({ key, path, formToken, idempotencyKey }: Shown): Html {
  const isTicket = key.kind === 'ticket'
  const title = isTicket
    ? 'Another link'
    : key.expires_at === null
      ? 'Rotate'
      : `Expires on ${shortDayOf(key.expires_at)}`
  const what = isTicket
    ? 'If the link was lost, or somebody has it who should not: another one has what is left of the same ticket.'
    : 'Rotating makes a new secret. The old one goes on working for as long as you say, so that nothing stops while you replace it.'
  const choices = isTicket ? OVERLAPS.toReversed() : OVERLAPS
  return card(
    'rotate',
    title,
    html`<p class="fb-soft">${what}</p>${form(`${path}/${key.id}/rotate`, { formToken }, html`${changesOnce(idempotencyKey)}<div class="fb-field"><label for="overlap">The old one works for</label><select class="fb-select" id="overlap" name="overlap">${choices.map(([value, word]) => html`<option value="${value}">${word}</option>`)}</select></div><button class="fb-button fb-button--quiet" type="submit">${icon('turn')}${isTicket ? 'Make another link' : 'Rotate the key'}</button>`, 'rotate')}`,
  )
}

function scopeCard({ scopes }: ShownKey): Html {
  return card(
    'scopes',
    'May call',
    scopes === null
      ? html`<p>All operations and models.</p>`
      : html`<ul class="scopes">${scopes.map((scope) => html`<li><code>${scope}</code></li>`)}</ul>`,
  )
}

/** A question with the name and the consequence; the safe way first. */
export function revokeView({
  key,
  path,
  formToken,
  idempotencyKey,
}: Pick<Shown, 'key' | 'path' | 'formToken' | 'idempotencyKey'>): Html {
  const own = `${path}/${key.id}`
  const [verb, button] = key.kind === 'ticket' ? ['End', 'End the ticket'] : ['Revoke', 'Revoke the key']
  return html`${crumbs(
    [
      [path, 'Keys'],
      [own, key.name],
    ],
    verb,
  )}
<div class="fb-title"><div><h1>${verb} <bdi>${key.name}</bdi>?</h1><p>From now on no call begins with it. This can’t be undone. Calls that run are ended and charged as usual.${key.kind === 'ticket' ? ' What is left stays with the workspace.' : ''}</p></div></div>
${form(`${own}/revoke`, { formToken }, html`${changesOnce(idempotencyKey)}<p class="fb-actions"><a class="fb-button fb-button--large" href="${own}">Keep it</a><button class="fb-button fb-button--large fb-button--danger" type="submit">${button}</button></p>`)}`
}
