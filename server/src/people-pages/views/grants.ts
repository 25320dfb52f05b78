import { OAUTH_SCOPES, type OAuthScope } from '../../identity/resources.ts'
import { type Html, html } from '../../kernel/html.ts'
import type { Nanos } from '../../kernel/money.ts'
import { callout, type FormParts, form, type Trouble } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { type WaitingCall, waitingCalls } from './waiting-calls.ts'
import { dayOf, dollars, many } from './words.ts'

export type ShownGrant = {
  readonly id: string
  readonly clientName: string
  readonly documentHost: string | null
  readonly workspace: string
  readonly mode: 'live' | 'test'
  readonly scopes: readonly OAuthScope[]
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly canPay: boolean
  readonly canMakeKeys: boolean
  /** Keys that work and whose secret its client was told. */
  readonly keys: number
  readonly isPaused: boolean
  /** Null for one that has no amount of its own. */
  readonly budget: { readonly amount: Nanos; readonly spent: Nanos; readonly left: Nanos } | null
}

/** What just happened, where somebody is led here by it. */
export const GRANT_NOTES = {
  revoked: 'Access is revoked. No new calls can start with it.',
} as const
export type GrantNote = keyof typeof GRANT_NOTES

export type EndedMandate = Pick<ShownGrant, 'id' | 'clientName' | 'workspace' | 'mode'> & { readonly endedAt: Date }

type Shown = FormParts & {
  readonly status?: number
  readonly grants: readonly ShownGrant[]
  readonly ended: readonly EndedMandate[]
  /** Calls that wait for the person. */
  readonly waiting: readonly WaitingCall[]
  readonly note?: GrantNote | undefined
  readonly trouble?: Trouble
  readonly email: string
}

/** What somebody allows: to whom, for what, how much of it is spent, and how to end it. */
export function grantsPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { status = 200, grants, note, trouble, email } = shown
  return card({
    status,
    title: 'What you allow',
    main: html`<h1>What you allow</h1>${note === undefined ? null : callout('ok', GRANT_NOTES[note], null, ' card-page__sum')}${
      trouble === undefined
        ? null
        : html`<div class="fb-callout fb-callout--bad card-page__sum" role="alert"><div><strong>${trouble.title}</strong>${trouble.text}</div></div>`
    }${waitingCalls(shown.waiting)}${
      grants.length === 0
        ? html`<p class="card-page__say">You have not allowed any app to act for you. Apps that you allow are listed here.</p>`
        : grants.map((grant) => grantSection(grant, shown))
    }${endedList(shown.ended)}`,
    below: html`Signed in as ${email}. <a href="/sessions">Your account</a>`,
  })
}

function grantSection(grant: ShownGrant, parts: Shown): Html {
  const { id, clientName, documentHost, workspace, mode, scopes, createdAt, expiresAt, budget } = grant
  return html`<article class="seats" aria-labelledby="g-${id}"><h2 class="card-page__h" id="g-${id}"><bdi>${clientName}</bdi></h2>
<dl class="fb-kv"><div><dt>Verified domain</dt><dd>${documentHost ?? 'None'}</dd></div>
<div><dt>Workspace</dt><dd><bdi>${workspace}</bdi>${mode === 'test' ? ', test' : ''}</dd></div>
<div><dt>May</dt><dd>${scopes.map((scope) => html`${OAUTH_SCOPES[scope]}<br>`)}</dd></div>
<div><dt>Since</dt><dd>${dayOf(createdAt)}</dd></div>
<div><dt>Until</dt><dd>${expiresAt === null ? 'You revoke it' : dayOf(expiresAt)}</dd></div>
${grant.isPaused ? html`<div><dt>Paused</dt><dd>No calls start until you resume it</dd></div>` : null}<div><dt>Spent</dt><dd>${budget === null ? (grant.canMakeKeys ? 'It has no amount of its own, but can create keys that spend your balance' : 'It can’t pay') : `${dollars(budget.spent)} of ${dollars(budget.amount)}; ${dollars(budget.left)} left`}</dd></div></dl>
<div class="fb-actions">${grant.canPay ? html`<a class="fb-button fb-button--quiet" href="/mandates/${id}">Manage<span class="fb-hide">: ${clientName}</span></a>` : null}${form(
    '/grants/revoke',
    parts,
    html`<input type="hidden" name="grant" value="${id}">${keysToo(grant)}<button class="fb-button fb-button--danger" type="submit">Revoke access<span class="fb-hide"> of ${clientName}</span></button>`,
  )}</div></article>
`
}

/** Keys outlive the grant, since programs may depend on them; who ends it decides. */
function keysToo({ id, keys }: ShownGrant): Html | null {
  if (keys === 0) return null
  return html`<label class="fb-check card-page__check" for="k-${id}"><input type="checkbox" id="k-${id}" name="keys" value="yes"><span class="fb-check__name">Also revoke the ${many(keys, 'key')} that it created or rotated</span><span class="fb-check__note">Otherwise they go on working, and spend your balance.</span></label>`
}

function endedList(ended: readonly EndedMandate[]): Html | undefined {
  if (ended.length === 0) return undefined
  return html`<section class="seats" aria-labelledby="ended"><h2 class="card-page__h" id="ended">Ended</h2><ul>${ended.map(
    ({ id, clientName, workspace, mode, endedAt }) =>
      html`<li><div><b><bdi>${clientName}</bdi></b><span><bdi>${workspace}</bdi>, ${mode}</span><span>Ended on ${dayOf(endedAt)}</span></div><a class="fb-button fb-button--quiet fb-button--small" href="/mandates/${id}">What it spent<span class="fb-hide">, ${clientName}</span></a></li>\n`,
  )}</ul></section>`
}
