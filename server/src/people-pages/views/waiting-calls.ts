import type { Approval } from '../../grants/approvals.ts'
import { type Html, html } from '../../kernel/html.ts'
import type { Nanos } from '../../kernel/money.ts'
import { money } from './mandate-parts.ts'
import { clockOf } from './words.ts'

/** A call that waits for the person who looks. */
export type WaitingCall = {
  readonly id: string
  readonly clientName: string
  readonly operation: string
  readonly most: Nanos
  readonly expiresAt: Date
}

/** Of all that is known of some grants, what waits for a decision. */
export function waitingOf(
  approvals: readonly Approval[],
  grants: readonly { readonly id: string; readonly clientName: string }[],
): readonly WaitingCall[] {
  const names = new Map(grants.map(({ id, clientName }) => [id, clientName]))
  return approvals
    .filter(({ state }) => state === 'waiting')
    .map(({ id, grantId, operation, most, expiresAt }) => {
      return { id, clientName: names.get(grantId) ?? '', operation, most, expiresAt }
    })
}

export function waitingCalls(calls: readonly WaitingCall[]): readonly Html[] {
  return calls.map(
    ({ id, clientName, operation, most, expiresAt }) =>
      html`<section class="fb-ask card-page__sum" aria-labelledby="w-${id}"><div><h2 id="w-${id}"><bdi>${clientName}</bdi> asks to make one call</h2><p class="fb-soft"><span class="fb-code">${operation}</span>, at most <b>${money(most)}</b>. Valid until ${clockOf(expiresAt)}.</p></div><div class="fb-actions"><a class="fb-button" href="/approvals/${id}">Review it<span class="fb-hide">: ${operation}</span></a></div></section>
`,
  )
}
