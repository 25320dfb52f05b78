import { type Html, html } from '../../kernel/html.ts'
import type { Role } from '../../kernel/role.ts'
import { callout, type FormParts, form, type Trouble } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { browserOf } from './browser-of.ts'
import { dayOf, roleName, timeOf } from './words.ts'

export type ShownSession = {
  readonly id: string
  readonly createdAt: Date
  readonly seenAt: Date
  readonly address: string
  readonly agent: string
}

type ShownWorkspace = {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** Who can't go before somebody else looks after it. */
  readonly isLastOwner: boolean
  readonly suspension: { readonly since: Date; readonly reason: string } | null
}

/** What just happened, where somebody is led here by it. */
export const ACCOUNT_NOTES = {
  welcome: 'You are signed in',
  elsewhere:
    'Your address is verified, and you are signed in here. If you began in an app or in another browser, go back there and sign in with the new password.',
  left: 'You have left the workspace',
  ended: 'The session has ended',
  password: 'Your password is changed',
  'factor-on': 'The second factor is on',
  'factor-off': 'The second factor is off',
} as const
export type AccountNote = keyof typeof ACCOUNT_NOTES

type Shown = FormParts & {
  readonly status?: number
  readonly note?: AccountNote | undefined
  readonly trouble?: Trouble
  readonly person: { readonly name: string; readonly email: string; readonly hasSecondFactor: boolean }
  readonly thisSession: string
  readonly sessions: readonly ShownSession[]
  readonly workspaces: readonly ShownWorkspace[]
  readonly hasGrants: boolean
}

/** Who somebody is here: where they are signed in, what guards it, and what they belong to. */
export function accountPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { status = 200, note, trouble, person, sessions, workspaces } = shown
  return card({
    status,
    title: 'Your account',
    main: html`<h1>Your account</h1><p class="card-page__say"><bdi><b>${person.name}</b></bdi><br>${person.email}</p>
${note === undefined ? null : callout('ok', ACCOUNT_NOTES[note], null, ' card-page__sum')}${trouble === undefined ? null : troubled(trouble)}
<section class="seats" aria-labelledby="workspaces"><h2 class="card-page__h" id="workspaces">Workspaces</h2>${
      workspaces.length === 0
        ? html`<p class="fb-hint">You are not in a workspace. If you were invited, open the link in that mail. Or make one of your own.</p>
${form('/sessions/workspace', shown, html`<button class="fb-button" type="submit">Make a workspace</button>`)}`
        : html`<ul>${workspaces.map((workspace) => workspaceItem(workspace, shown))}</ul>`
    }</section>
${
  shown.hasGrants
    ? html`<section class="seats" aria-labelledby="apps"><h2 class="card-page__h" id="apps">Apps and agents</h2><ul><li><div><b>What you allow</b><span>Who may act for you, what they spend, and how to end it</span></div><a class="fb-button fb-button--quiet fb-button--small" href="/grants">Show</a></li></ul></section>
`
    : null
}<section class="seats" aria-labelledby="guards"><h2 class="card-page__h" id="guards">Signing in</h2><ul>
<li><div><b>Password</b></div><a class="fb-button fb-button--quiet fb-button--small" href="/account/password">Change</a></li>
<li><div><b>Second factor</b><span>${person.hasSecondFactor ? 'On' : 'Off'}</span></div><a class="fb-button fb-button--quiet fb-button--small" href="/account/second-factor">${person.hasSecondFactor ? 'Turn it off' : 'Turn it on'}</a></li></ul></section>
<section class="seats" aria-labelledby="sessions"><h2 class="card-page__h" id="sessions">Where you are signed in</h2><ul>${sessions.map((session) => sessionItem(session, shown))}</ul>
${form('/sessions/end-all', shown, html`<button class="fb-button fb-button--danger" type="submit">Sign out everywhere</button>`)}</section>`,
    below: html`<a href="/console">Back to the console</a> <a href="/sign-out">Sign out</a>`,
  })
}

function troubled({ title, text }: Trouble): Html {
  return html`<div class="fb-callout fb-callout--bad card-page__sum" role="alert"><div><strong>${title}</strong>${text}</div></div>`
}

function workspaceItem({ id, name, role, isLastOwner, suspension }: ShownWorkspace, parts: Shown): Html {
  return html`<li><div><b><bdi>${name}</bdi></b><span>${isLastOwner ? 'You are its only owner' : `You are ${roleName(role)}`}</span>${suspension && html`<span><b>Suspended by the operator</b> since ${dayOf(suspension.since)}: ${suspension.reason}</span>`}</div>${
    isLastOwner
      ? null
      : form(
          '/sessions/leave',
          parts,
          html`<input type="hidden" name="workspace" value="${id}"><button class="fb-button fb-button--quiet fb-button--small" type="submit">Leave<span class="fb-hide"> ${name}</span></button>`,
        )
  }</li>
`
}

function sessionItem({ id, createdAt, seenAt, address, agent }: ShownSession, shown: Shown): Html {
  const isThis = id === shown.thisSession
  const browser = browserOf(agent)
  return html`<li><div><b>${browser}</b>${isThis ? html` <span class="fb-badge fb-badge--ok">This one</span>` : null}<span>${address}</span><span>Since ${dayOf(createdAt)}</span><span>Last seen ${timeOf(seenAt)}</span></div>${
    isThis
      ? null
      : form(
          '/sessions/end',
          shown,
          html`<input type="hidden" name="session" value="${id}"><button class="fb-button fb-button--quiet fb-button--small" type="submit">Sign out<span class="fb-hide"> ${browser}, ${address}</span></button>`,
        )
  }</li>
`
}
