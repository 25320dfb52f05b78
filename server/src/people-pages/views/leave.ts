import { html } from '../../kernel/html.ts'
import { type FormParts, form } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'

type Shown = FormParts & {
  readonly workspace: { readonly id: string; readonly name: string }
  /** Theirs, that work. */
  readonly keys: readonly { readonly name: string; readonly mode: string }[]
  /** Whether they may leave them behind: they know the secrets. */
  readonly mayKeep: boolean
}

const KEYS_SHOWN = 20

/** Who leaves with keys that work says what becomes of them: they would go on spending. */
export function leavePage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { workspace, keys, mayKeep } = shown
  const more = keys.length - KEYS_SHOWN
  return card({
    isNarrow: true,
    status: 409,
    title: 'Your API keys',
    main: html`<h1>What becomes of your API keys?</h1><p class="card-page__say">You are leaving <bdi><b>${workspace.name}</b></bdi>. These keys of yours work:</p>
<ul>${keys.slice(0, KEYS_SHOWN).map(({ name, mode }) => html`<li><bdi>${name}</bdi>, ${mode}</li>`)}</ul>${more > 0 ? html`<p class="fb-hint">And ${more} more.</p>` : null}
${form(
  '/sessions/leave',
  shown,
  html`<input type="hidden" name="workspace" value="${workspace.id}"><div class="fb-actions"><button class="fb-button fb-button--danger" type="submit" name="keys" value="revoke">Revoke them and leave</button>${mayKeep ? html`<button class="fb-button fb-button--quiet" type="submit" name="keys" value="keep">Keep them and leave</button>` : null}</div>`,
)}${mayKeep ? html`<p class="fb-hint">Keys that you keep go on spending the balance of the workspace. Its owners are told.</p>` : null}`,
    below: html`<a href="/sessions">Back to your account</a>`,
  })
}
