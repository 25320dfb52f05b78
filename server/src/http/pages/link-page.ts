import { createHash } from 'node:crypto'
import type { Finished } from '../../links/links.ts'

/** A page for a person, without a script and without anything from elsewhere. */
export type Page = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Told = { readonly status: number; readonly title: string; readonly text: string; readonly good?: boolean }

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5a6475; --paper: #f4f6f9; --card: #fff; --line: #dfe4ec; --good: #12805c; --bad: #a3412a }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf3; --soft: #9aa6b8; --paper: #12161d; --card: #1a202a; --line: #2c3543; --good: #4cc79a; --bad: #e58a72 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif }
main { max-width: 30rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: .9rem }
h1 { margin: 0 0 .6rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere }
h1::before { content: ""; display: inline-block; width: .65rem; height: .65rem; margin-right: .6rem; border-radius: 50%; background: var(--bad) }
h1.good::before { background: var(--good) }
p { margin: .6rem 0; color: var(--soft); overflow-wrap: anywhere }
strong { color: var(--ink) }
ul { margin: .6rem 0; padding-left: 1.2rem; color: var(--soft) }
form { margin-top: 1.4rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
button { font: inherit; padding: .5rem 1rem; color: var(--bad); background: none; border: 1px solid currentColor; border-radius: .5rem; cursor: pointer }
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

const TOLD: Readonly<Record<Exclude<Finished['outcome'], 'linked'> | 'undone' | 'too_late' | 'not_told', Told>> = {
  denied: { status: 200, title: 'Nothing was linked', text: 'You did not allow it. You can close this page.' },
  expired: { status: 400, title: 'This link has expired', text: `Links work for ten minutes. ${AGAIN}` },
  used: { status: 400, title: 'This link was used already', text: `Links work once. ${AGAIN}` },
  unknown: {
    status: 400,
    title: 'This link does not work',
    text: `It is not one of ours, or a newer one has taken its place. ${AGAIN}`,
  },
  failed: { status: 502, title: 'Nothing was linked', text: `The platform did not confirm it. ${AGAIN}` },
  undone: {
    status: 200,
    title: 'The link was undone',
    text: 'Nobody acts for your account any more. You can close this page.',
    good: true,
  },
  too_late: {
    status: 400,
    title: 'It can not be undone here',
    text: 'It was undone or replaced already, or ten minutes have passed. You can end it in the settings of the platform, under connected apps.',
  },
  not_told: {
    status: 502,
    title: 'The link is not used any more',
    text: 'The platform could not be told. Try again in a moment, or end it in its settings, under connected apps.',
  },
}

export function toldPage(what: keyof typeof TOLD): Page {
  const { status, title, text, good = false } = TOLD[what]
  return page(status, title, good, `<p>${escaped(text)}</p>`)
}

/** What was linked, to whom, and how to take it back: whoever got here may have followed somebody else's link. */
export function linkedPage(linked: Extract<Finished, { outcome: 'linked' }>, undoPath: string): Page {
  const { workspace, username, scopes, undoToken } = linked
  const account = username === null ? 'Your account' : `@${username}`
  return page(
    200,
    `${account} is linked`,
    true,
    `<p>The workspace <strong>${escaped(workspace)}</strong> can now act for this account:</p>
<ul>${scopes.map((scope) => `<li>${escaped(scope)}</li>`).join('')}</ul>
<p>You can close this page. If you do not know that workspace, somebody may have sent you their link: undo it.</p>
<form method="post" action="${escaped(undoPath)}"><input type="hidden" name="token" value="${escaped(undoToken)}"><button>Undo the link</button></form>`,
  )
}

function page(status: number, title: string, isGood: boolean, inner: string): Page {
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1${isGood ? ' class="good"' : ''}>${escaped(title)}</h1>
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
