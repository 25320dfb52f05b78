import { catalogue } from '../catalogue/catalogue.ts'
import { isSoldByUnit } from '../catalogue/operation.ts'
import { type Html, html } from '../kernel/html.ts'
import type { Decided, Finished } from '../links/links.ts'
import { icon } from '../pages/icons.ts'
import type { Page, Pages } from '../pages/page.ts'

/** How a page feels at a glance: by the colour of its badge, and by its icon and word for whoever does not see that. */
type Badge = { readonly tone: 'ok' | 'bad' | 'plain'; readonly word: string }

type Message = {
  readonly status: number
  readonly badge: Badge
  readonly title: string
  readonly text: string
  /** Whether there is something to do about it, where the user came from. */
  readonly again?: true
}

const NOT_LINKED: Badge = { tone: 'bad', word: 'Not linked' }
const ENDED: Badge = { tone: 'plain', word: 'Ended' }

const TOLD: Readonly<Record<Exclude<Decided['outcome'], 'linked'> | 'undone' | 'too_late', Message>> = {
  denied: {
    status: 200,
    badge: { tone: 'plain', word: 'Not linked' },
    title: 'Nothing was linked',
    text: 'You did not allow it. You can close this page.',
  },
  expired: {
    status: 400,
    badge: NOT_LINKED,
    title: 'This link has expired',
    text: 'Links work for ten minutes. Nothing was linked, and nobody can act for you.',
    again: true,
  },
  used: {
    status: 400,
    badge: NOT_LINKED,
    title: 'This link was already used',
    text: 'Links work once. If your account has just been linked, it stays linked.',
    again: true,
  },
  unknown: {
    status: 400,
    badge: NOT_LINKED,
    title: 'This link does not work',
    text: 'It is not valid, or a newer link has replaced it. Nothing was linked.',
    again: true,
  },
  failed: {
    status: 502,
    badge: NOT_LINKED,
    title: 'Nothing was linked',
    text: 'The platform did not confirm it, so nobody can act for you.',
    again: true,
  },
  undone: {
    status: 200,
    badge: ENDED,
    title: 'The link was undone',
    text: 'It can no longer be used to act for your account. What was done before stays done. You can close this page.',
  },
  too_late: {
    status: 400,
    badge: { tone: 'plain', word: 'Nothing changed' },
    title: 'There is nothing to undo here',
    text: 'The link was already undone or replaced, or more than ten minutes have passed. You can end it in the settings of the platform, under connected apps.',
  },
}

/** What the platform's words mean to its users. Others are shown as they are. */
const MEANINGS: ReadonlyMap<string, string> = new Map([
  ['follows.read', 'See whom you follow'],
  ['follows.write', 'Follow and unfollow accounts'],
  ['tweet.read', 'See posts that you can see'],
  ['tweet.write', 'Post for you'],
  ['users.read', 'See profiles that you can see'],
  ['like.read', 'See what you like'],
  ['like.write', 'Like posts for you'],
  ['dm.read', 'Read your direct messages'],
  ['dm.write', 'Send direct messages for you'],
  ['media.write', 'Upload media for you'],
  ['offline.access', 'Stay linked until it is undone'],
])

/** Those that calls here need, and what keeps a link alive. */
const USED: ReadonlySet<string> = new Set([
  ...catalogue.operations.flatMap((operation) => (isSoldByUnit(operation) ? (operation.actsFor?.scopes ?? []) : [])),
  'offline.access',
])

export type LinkPages = ReturnType<typeof createLinkPages>

/** What users of a platform see of us. They came by somebody's link, and may not know whose. */
export function createLinkPages({ card }: Pick<Pages, 'card'>) {
  return {
    told(what: keyof typeof TOLD): Page {
      const { status, badge, title, text, again } = TOLD[what]
      const main = html`${shownBadge(badge)}<h1>${title}</h1><p class="card-page__say">${text}</p>${again && steps()}`
      return card({ status, title, main })
    },

    /** What is about to be linked, to whom and for what. Nothing is until its user says so: they may have followed somebody else's link. */
    asked({ workspace, username, scopes, offer }: Extract<Finished, { outcome: 'asked' }>, decidePath: string): Page {
      const title = `Link ${username === null ? 'your account' : `@${username}`}?`
      return card({
        title,
        main: html`<h1>${title}</h1><p class="card-page__say">The workspace <bdi><b>${workspace}</b></bdi> wants to act for this account. Nothing is linked yet.</p>
<h2 class="card-page__h">What it may do for you</h2><ul class="may">${scopes.map(scopeItem)}</ul>
<form class="undo" method="post" action="${decidePath}"><p><b>You do not know this workspace?</b> Then somebody may have sent you their link. Do not link it.</p><input type="hidden" name="offer" value="${offer}"><button class="fb-button" type="submit" name="decision" value="link">${icon('check')}Link the account</button> <button class="fb-button fb-button--quiet" type="submit" name="decision" value="no">Do not link</button></form>`,
        below: html`We never see your password. Answer within ten minutes.`,
      })
    },

    /** What was linked, to whom, and how to take it back: whoever got here may have followed somebody else's link. */
    linked(
      { workspace, username, scopes, undoToken }: Extract<Decided, { outcome: 'linked' }>,
      undoPath: string,
    ): Page {
      const account = username === null ? 'Your account' : `@${username}`
      const title = `${account} is linked`
      return card({
        title,
        main: html`<div class="joined" aria-hidden="true"><span>${icon('team')}</span><i></i><b>${icon('check')}</b><i></i><span>${icon('agent')}</span></div>
<h1>${title}</h1><p class="card-page__say">The workspace <bdi><b>${workspace}</b></bdi> can now act for this account. You can close this page.</p>
<h2 class="card-page__h">What it may do for you</h2><ul class="may">${scopes.map(scopeItem)}</ul>
${undoForm(undoPath, undoToken, 'Undo the link', 'You do not know this workspace?', 'Then somebody may have sent you their link. Undo it now: this page can do so for ten minutes.')}`,
        below: html`We never see your password. The tokens of the platform are stored encrypted.`,
      })
    },

    /** It is over with us, and the platform still has to hear of it. */
    notTold(undoPath: string, undoToken: string): Page {
      const title = 'The link is no longer used'
      return card({
        status: 502,
        title,
        main: html`${shownBadge({ tone: 'bad', word: 'Platform not told' })}<h1>${title}</h1>
<p class="card-page__say">We no longer act for your account, but the platform could not be told.</p>
${undoForm(undoPath, undoToken, 'Tell the platform', 'Try again in a moment.', 'Or end it in the settings of the platform, under connected apps.')}`,
      })
    },
  }
}

const ICONS = { ok: 'check', bad: 'refused', plain: 'info' } as const

function shownBadge({ tone, word }: Badge): Html {
  return html`<p><span class="fb-badge${tone === 'plain' ? '' : ` fb-badge--${tone}`}">${icon(ICONS[tone])}${word}</span></p>`
}

function steps(): Html {
  return html`<h2 class="card-page__h">What to do</h2><ol class="todo"><li>Go back to the page or the app where you started.</li><li>Ask for a new link there.</li><li>Allow it on the platform within ten minutes, in this browser.</li></ol>`
}

function scopeItem(scope: string): Html {
  return html`<li>${icon('check')}<span>${MEANINGS.get(scope)}${USED.has(scope) ? undefined : UNUSED}</span><code>${scope}</code></li>`
}

const UNUSED = ' (no call that is sold here uses it today)'

function undoForm(action: string, token: string, button: string, question: string, text: string): Html {
  return html`<form class="undo" method="post" action="${action}"><p><b>${question}</b> ${text}</p><input type="hidden" name="token" value="${token}"><button class="fb-button fb-button--danger" type="submit">${icon('back')}${button}</button></form>`
}
