import { createHash } from 'node:crypto'
import type { Finished } from '../../links/links.ts'

/** A page for a person, without a script and without anything from elsewhere. */
export type Page = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How a page feels at a glance: by its color, and by its mark for whoever does not see that. */
type Tone = 'good' | 'plain' | 'bad'

type Message = { readonly status: number; readonly title: string; readonly text: string; readonly tone: Tone }

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #525c6d; --paper: #f2f4f8; --card: #fff; --line: #dfe4ec; --good: #12805c; --plain: #5d6878; --bad: #a3412a; --on: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf3; --soft: #a3aebf; --paper: #10141a; --card: #1a202a; --line: #2f3948; --good: #4cc79a; --plain: #9aa6b8; --bad: #e9927b; --on: #10141a } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.25rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif }
main { width: 100%; max-width: 31rem; padding: clamp(1.4rem, 6vw, 2.25rem); background: var(--card); border: 1px solid var(--line); border-radius: 1rem; box-shadow: 0 1px 2px rgb(0 0 0 / 5%), 0 8px 28px rgb(0 0 0 / 6%) }
h1 { display: flex; gap: .75rem; margin: 0; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere }
h1::before { flex: none; width: 1.75rem; height: 1.75rem; border-radius: 50%; background: var(--tone); color: var(--on); font-size: 1rem; line-height: 1.75rem; text-align: center }
.good { --tone: var(--good) } .good::before { content: "\\2713" / "" }
.plain { --tone: var(--plain) } .plain::before { content: "\\2013" / "" }
.bad { --tone: var(--bad) } .bad::before { content: "!" / "" }
h2 { margin: 0; font-size: 1rem }
p { margin: .9rem 0 0; color: var(--soft); overflow-wrap: anywhere }
strong { color: var(--ink) }
ul { margin: .9rem 0 0; padding: 0; list-style: none }
li { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding: .4rem 0; border-top: 1px solid var(--line) }
code { color: var(--soft); font: .8rem/1.9 ui-monospace, monospace; overflow-wrap: anywhere }
@media (max-width: 28rem) { li { display: grid } code { line-height: 1.5 } }
form { margin-top: 1.4rem; padding-top: 1.4rem; border-top: 1px solid var(--line) }
h2 + p { margin-top: .25rem }
button { margin-top: 1rem; padding: .6rem 1.1rem; font: inherit; font-weight: 600; color: var(--bad); background: none; border: 1px solid currentColor; border-radius: .6rem; cursor: pointer }
button:hover { background: color-mix(in srgb, var(--bad) 10%, transparent) }
button:focus-visible { outline: 3px solid var(--bad); outline-offset: 2px }
`

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  // The address of this page has what came from the platform.
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const AGAIN = 'Go back to where you started and ask for a new link. You can close this page.'

const TOLD: Readonly<Record<Exclude<Finished['outcome'], 'linked'> | 'undone' | 'too_late', Message>> = {
  denied: {
    status: 200,
    title: 'Nothing was linked',
    text: 'You did not allow it. You can close this page.',
    tone: 'plain',
  },
  expired: {
    status: 400,
    title: 'This link has expired',
    text: `Links work for ten minutes. ${AGAIN}`,
    tone: 'bad',
  },
  used: {
    status: 400,
    title: 'This link was used already',
    text: `Links work once. If your account was linked just now, it still is. ${AGAIN}`,
    tone: 'bad',
  },
  unknown: {
    status: 400,
    title: 'This link does not work',
    text: `It is not one of ours, or a newer one has taken its place. ${AGAIN}`,
    tone: 'bad',
  },
  failed: {
    status: 502,
    title: 'Nothing was linked',
    text: `The platform did not confirm it. ${AGAIN}`,
    tone: 'bad',
  },
  undone: {
    status: 200,
    title: 'The link was undone',
    text: 'Nobody acts for your account by it any more. You can close this page.',
    tone: 'good',
  },
  too_late: {
    status: 400,
    title: 'There is nothing to undo here',
    text: 'The link was undone or replaced already, or more than ten minutes have passed. You can end it in the settings of the platform, under connected apps.',
    tone: 'plain',
  },
}

/** What the platform's words mean to its users. Others are shown as they are. */
const MEANINGS: Readonly<Record<string, string>> = {
  'follows.read': 'See whom you follow',
  'follows.write': 'Follow and unfollow accounts',
  'tweet.read': 'See posts that you can see',
  'tweet.write': 'Post for you',
  'users.read': 'See profiles that you can see',
  'like.read': 'See what you like',
  'like.write': 'Like posts for you',
  'dm.read': 'Read your direct messages',
  'dm.write': 'Send direct messages for you',
  'media.write': 'Upload media for you',
  'offline.access': 'Stay linked until it is undone',
}

export function toldPage(what: keyof typeof TOLD): Page {
  const { status, title, text, tone } = TOLD[what]
  return page(status, title, tone, `<p>${escaped(text)}</p>`)
}

/** What was linked, to whom, and how to take it back: whoever got here may have followed somebody else's link. */
export function linkedPage(linked: Extract<Finished, { outcome: 'linked' }>, undoPath: string): Page {
  const { workspace, username, scopes, undoToken } = linked
  const account = username === null ? 'Your account' : `@${username}`
  return page(
    200,
    `${account} is linked`,
    'good',
    `<p>The workspace <bdi><strong>${escaped(workspace)}</strong></bdi> can now act for this account:</p>
<ul>${scopes.map(scopeItem).join('')}</ul>
<p>You can close this page.</p>
${undoForm(undoPath, undoToken, 'Undo the link', 'Do you not know this workspace?', 'Then somebody may have sent you their link. Undo it now: this page can do so for ten minutes.')}`,
  )
}

/** It is over with us, and the platform still has to hear of it. */
export function notToldPage(undoPath: string, undoToken: string): Page {
  return page(
    502,
    'The link is not used any more',
    'bad',
    `<p>We do not act for your account any more, but the platform could not be told.</p>
${undoForm(undoPath, undoToken, 'Tell the platform', 'Try again in a moment', 'Or end it in the settings of the platform, under connected apps.')}`,
  )
}

function scopeItem(scope: string): string {
  const meaning = MEANINGS[scope]
  const word = `<code>${escaped(scope)}</code>`
  return `<li>${meaning === undefined ? word : `<span>${escaped(meaning)}</span>${word}`}</li>`
}

function undoForm(action: string, token: string, button: string, title: string, text: string): string {
  return `<form method="post" action="${escaped(action)}"><h2>${escaped(title)}</h2><p>${escaped(text)}</p><input type="hidden" name="token" value="${escaped(token)}"><button>${escaped(button)}</button></form>`
}

function page(status: number, title: string, tone: Tone, inner: string): Page {
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1 class="${tone}"><span>${escaped(title)}</span></h1>
${inner}
</main></body></html>
`
  return { status, headers: HEADERS, body }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
