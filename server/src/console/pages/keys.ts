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
  readonly state: string
  readonly next: string | null
  readonly mayMake: boolean
}

const STATES = [
  ['', 'All'],
  ['active', 'Active'],
  ['expired', 'Expired'],
  ['revoked', 'Revoked'],
] as const

export function keysView(shown: Shown): Html {
  const { keys, path, state, next, mayMake } = shown
  return html`<div class="fb-title"><div><h1>Keys</h1><p>A key has its own budget, limits, scopes and expiry. The newest is first.</p></div>${
    mayMake
      ? html`<div class="fb-actions"><a class="fb-button" href="${path}/new">${icon('plus')}New key</a></div>`
      : undefined
  }</div>
<nav class="segments" aria-label="Which keys">${STATES.map(([value, word]) => html`<a href="${path}${value === '' ? '' : `?state=${value}`}"${value === state ? html` aria-current="true"` : undefined}>${word}</a>`)}</nav>
${keys.length === 0 ? empty(shown) : table(shown)}${
  next === null
    ? undefined
    : html`<p><a class="fb-button fb-button--quiet" href="${path}?${state === '' ? '' : `state=${state}&`}cursor=${next}">Older keys</a></p>`
}`
}

function empty({ state, path, mayMake }: Shown): Html {
  if (state !== '') return html`<div class="fb-empty"><p>No key is ${state}.</p></div>`
  return html`<div class="fb-empty"><p>Keys stand here, with what each has left. A call needs one.</p>${
    mayMake ? html`<p><a class="fb-button" href="${path}/new">${icon('plus')}New key</a></p>` : undefined
  }</div>`
}

function table(shown: Shown): Html {
  return html`<section class="fb-card" aria-label="Keys"><table class="fb-table fb-table--card keys fb-stack"><thead><tr><th scope="col">Key</th><th scope="col">May call</th><th scope="col" class="bar">Budget</th><th scope="col">Last used</th><th scope="col">Expires</th><th scope="col">State</th></tr></thead><tbody>${shown.keys.map((key) => row(key, shown))}</tbody></table></section>`
}

function row(key: ShownKey, { states, nowMs, path }: Shown): Html {
  const state = states.get(key.id)
  return html`<tr><th scope="row"><a href="${path}/${key.id}"><bdi>${key.name}</bdi></a><span class="fb-sub fb-code">${keyHint(key)}</span></th><td data-k="May call">${scopeWords(key)}</td><td class="bar">${smallBudget(key, state)}</td><td data-k="Last used">${lastUse(state, nowMs)}</td><td data-k="Expires">${endOf(key)}</td><td data-k="State">${keyBadge(key, nowMs)}</td></tr>`
}

/** Calls older than 30 days are not looked for. */
export function lastUse(state: KeyState | undefined, nowMs: number): Html | string {
  const at = state?.last_used_at ?? null
  return at === null
    ? html`<span class="fb-dim">not in 30 days</span>`
    : `${momentOf(at, new Date(nowMs))} UTC`.replace(/(\d [A-Z][a-z]{2}) UTC$/, '$1')
}

function endOf({ revoked_at: revokedAt, expires_at: expiresAt }: ShownKey): string {
  if (revokedAt !== null) return `revoked ${shortDayOf(revokedAt)}`
  return expiresAt === null ? 'no expiry' : shortDayOf(expiresAt)
}
