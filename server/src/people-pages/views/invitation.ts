import { type Html, html } from '../../kernel/html.ts'
import { may, type Permission, type Role } from '../../kernel/role.ts'
import { button, callout, type FormParts, form, wayOn } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { withReturnTo } from '../../pages/return-to.ts'
import { dayOf, roleName } from './words.ts'

export type ShownInvitation = {
  readonly workspace: string
  readonly by: { readonly name: string; readonly email: string }
  readonly role: Role
  /** Whom it is for. */
  readonly email: string
  readonly until: Date
  /** Whether somebody with that address can sign in already. */
  readonly hasAccount: boolean
}

type Shown = FormParts & {
  readonly invitation: ShownInvitation
  readonly path: string
  /** Who looks at it; null where nobody is signed in. */
  readonly viewer: { readonly email: string } | null
  /** Whether accounts can be made at all: who is invited may, also where sign-up is closed to others. */
  readonly canSignUp: boolean
}

export function invitationPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { invitation, viewer } = shown
  const { workspace, by, role, until } = invitation
  const title = `Join ${workspace}`
  return card({
    title,
    main: html`<div class="card-page__face"><span class="fb-who__dot" aria-hidden="true">${initialsOf(workspace)}</span></div><h1>Join <bdi>${workspace}</bdi></h1><p class="card-page__say"><bdi><b>${by.name}</b></bdi>${by.email === '' ? '' : ` (${by.email})`} invites you as <b>${roleName(role)}</b>.</p>
<table class="fb-table fb-table--plain fb-table--dense roles"><caption class="fb-hide">What ${roleName(role)} may do</caption><tbody>${RIGHTS.map((right) => rightOf(role, right))}</tbody></table>
${whatToDo(shown)}
<p class="fb-hint card-page__after">Valid until ${dayOf(until)}, only for this address. You keep your other workspaces.</p>`,
    ...(viewer !== null && {
      below: html`Signed in as ${viewer.email}. <a href="/sign-out">Not you?</a>`,
    }),
  })
}

/** The address that was invited decides, once it is known that it is theirs. */
function whatToDo({ invitation, viewer, path, canSignUp, ...parts }: Shown): Html {
  if (viewer === null) {
    const signIn = withReturnTo('/sign-in', path)
    const ways =
      invitation.hasAccount || !canSignUp
        ? wayOn(signIn, 'Sign in')
        : html`${wayOn(withReturnTo('/sign-up', path), 'Create an account')}<p class="card-page__also">${wayOn(signIn, 'Sign in', true)}</p>`
    return html`${callout('plain', 'Sign in to answer', html`The invitation is for <b>${invitation.email}</b>.`, ' card-page__sum')}${ways}`
  }
  if (viewer.email !== invitation.email)
    return html`${callout('warn', 'This invitation is for another address', html`It is for <b>${invitation.email}</b>. Sign out, and sign in with that address.`, ' card-page__sum')}${wayOn('/sign-out', 'Sign out', true)}`
  return form(
    path,
    parts,
    html`${button(`Join as ${viewer.email}`, { name: 'decision', value: 'join' })}${button('Decline', { name: 'decision', value: 'decline', isQuiet: true })}`,
  )
}

export function declinedPage({ card }: Pick<Pages, 'card'>): Page {
  const title = 'You have declined'
  return card({
    isNarrow: true,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">The invitation is closed. Nothing else has changed.</p>
${wayOn('/sessions', 'Go to your account')}`,
  })
}

type Right = { readonly what: string; readonly permission: Permission; readonly word: string }

const RIGHTS: readonly Right[] = [
  { what: 'Usage, requests, members', permission: 'workspace.read', word: 'Read' },
  { what: 'Keys and playground', permission: 'keys.manage', word: 'Use and create' },
  { what: 'Mandates for agents', permission: 'mandates.give', word: 'Give' },
  { what: 'Balance and statements', permission: 'billing.read', word: 'Read' },
  { what: 'Credit and payment', permission: 'billing.manage', word: 'Add and change' },
  { what: 'Members and roles', permission: 'members.manage', word: 'Invite and change' },
  { what: 'Ownership', permission: 'owners.manage', word: 'Transfer and close' },
]

function rightOf(role: Role, { what, permission, word }: Right): Html {
  return may(role, permission)
    ? html`<tr><th scope="row">${what}</th><td>${icon('check')}${word}</td></tr>
`
    : html`<tr><th scope="row">${what}</th><td class="fb-dim">${icon('no')}No</td></tr>
`
}

/** Of its first two words. */
function initialsOf(name: string): string {
  const letters = name
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => String.fromCodePoint(word.codePointAt(0) ?? 32))
  return letters.slice(0, 2).join('').toUpperCase()
}
