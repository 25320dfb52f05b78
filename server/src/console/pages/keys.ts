import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import { momentOf, shortDayOf } from '../../people-pages/views/words.ts'
import { type KeyState, keyBadge, keyHint, type ShownKey, scopeWords, smallBudget } from './key-parts.ts'

type Shown = {
  readonly keys: readonly ShownKey[]
  readonly states: ReadonlyMap<string, KeyState>
  readonly nowMs: number
  /** Where keys are; the paths of others follow from it. */
  readonly path: string
  readonly chosen: Chosen
  readonly next: string | null
  readonly mayMake: boolean
}

/** Which keys are listed: all, those in a state, or those that were given away. */
const CHOICES = [
  ['', 'All'],
  ['state=active', 'Active'],
  ['state=expired', 'Expired'],
  ['state=revoked', 'Revoked'],
  ['kind=ticket', 'Tickets'],
] as const
export type Chosen = (typeof CHOICES)[number][0]

export function chosenIn(query: { readonly get: (name: string) => string | undefined }): Chosen {
  const [found = CHOICES[0]] = CHOICES.filter(([choice]) => {
    const [name = '', value = ''] = choice.split('=')
    return name !== '' && query.get(name) === value
  })
  return found[0]
}

export function keysView(shown: Shown): Html {
  const { keys, path, chosen, next, mayMake } = shown
  return html`<div class="fb-title"><div><h1>Keys</h1><p>A key has its own budget, limits, scopes and expiry. A ticket is a key that you give away. The newest is first.</p></div>${
    mayMake
      ? html`<div class="fb-actions"><a class="fb-button fb-button--quiet" href="${path}/new-ticket">${icon('ticket')}Give a ticket</a><a class="fb-button" href="${path}/new">${icon('plus')}New key</a></div>`
      : undefined
  }</div>
<nav class="segments" aria-label="Which keys">${CHOICES.map(([choice, word]) => html`<a href="${path}${choice === '' ? '' : `?${choice}`}"${choice === chosen ? html` aria-current="true"` : undefined}>${word}</a>`)}</nav>
${keys.length === 0 ? empty(shown) : table(shown)}${
  next === null
    ? undefined
    : html`<p><a class="fb-button fb-button--quiet" href="${path}?${chosen === '' ? '' : `${chosen}&`}cursor=${next}">Older keys</a></p>`
}`
}

function empty({ chosen, path, mayMake }: Shown): Html {
  if (chosen === 'kind=ticket')
    return html`<div class="fb-empty"><p>A ticket is an amount for somebody without an account, until a day. You send a link; they see what is left, and how to use it.</p>${
      mayMake
        ? html`<p><a class="fb-button" href="${path}/new-ticket">${icon('ticket')}Give a ticket</a></p>`
        : undefined
    }</div>`
  if (chosen !== '') return html`<div class="fb-empty"><p>No key is ${chosen.replace('state=', '')}.</p></div>`
  return html`<div class="fb-empty"><p>Keys stand here, with what each has left. A call needs one.</p>${
    mayMake ? html`<p><a class="fb-button" href="${path}/new">${icon('plus')}New key</a></p>` : undefined
  }</div>`
}

function table(shown: Shown): Html {
  return html`<section class="fb-card" aria-label="Keys"><table class="fb-table fb-table--card keys fb-stack"><thead><tr><th scope="col">Key</th><th scope="col">May call</th><th scope="col" class="bar">Budget</th><th scope="col">Last used</th><th scope="col">Expires</th><th scope="col">State</th></tr></thead><tbody>${shown.keys.map((key) => row(key, shown))}</tbody></table></section>`
}

function row(key: ShownKey, { states, nowMs, path }: Shown): Html {
  const state = states.get(key.id)
  return html`<tr><th scope="row"><a href="${path}/${key.id}"><bdi>${key.name}</bdi></a><span class="fb-sub"><span class="fb-code">${keyHint(key)}</span>${key.kind === 'ticket' ? html` <b>Ticket</b>` : undefined}</span></th><td data-k="May call">${scopeWords(key)}</td><td class="bar">${smallBudget(key, state)}</td><td data-k="Last used">${lastUse(state, nowMs)}</td><td data-k="Expires">${endOf(key)}</td><td data-k="State">${keyBadge(key, nowMs)}</td></tr>`
}

/** Calls older than 30 days are not looked for. */
export function lastUse(state: KeyState | undefined, nowMs: number): Html | string {
  const at = state?.last_used_at ?? null
  return at === null
    ? html`<span class="fb-dim">not in 30 days</span>`
    : `${momentOf(at, new Date(nowMs))} UTC`.replace(/(\d [A-Z][a-z]{2}) UTC$/, '$1')
}

function endOf({ kind, revoked_at: revokedAt, expires_at: expiresAt }: ShownKey): string {
  if (revokedAt !== null) return `${kind === 'ticket' ? 'ended' : 'revoked'} ${shortDayOf(revokedAt)}`
  return expiresAt === null ? 'no expiry' : shortDayOf(expiresAt)
}
