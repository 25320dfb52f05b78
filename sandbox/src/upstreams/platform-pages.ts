import { html } from '../html.ts'
import type { User } from './platform-user.ts'

/** The pages that the platform shows to people. */

const SCOPE_MEANINGS: Readonly<Record<string, string>> = {
  'tweet.read': 'See posts that you can see',
  'tweet.write': 'Post in your name',
  'users.read': 'See your profile and the accounts that you can see',
  'follows.read': 'See whom you follow and who follows you',
  'follows.write': 'Follow and unfollow accounts for you',
  'like.read': 'See what you have liked',
  'like.write': 'Like posts for you',
  'dm.read': 'Read your direct messages',
  'dm.write': 'Send direct messages in your name',
  'media.write': 'Upload media for you',
  'offline.access': 'Stay connected until you take this back',
}

const STYLE = `
  :root { color-scheme: light dark; --line: light-dark(#d8dde3, #3a424b); --soft: light-dark(#5a6570, #9aa5b1);
    --accent: light-dark(#1f5fbf, #6ea8fe); --paper: light-dark(#ffffff, #1b2027); --desk: light-dark(#f3f5f7, #12161b) }
  * { box-sizing: border-box }
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--desk);
    font: 16px/1.5 system-ui, sans-serif }
  main { width: 100%; max-width: 27rem; padding: 2rem; background: var(--paper); border: 1px solid var(--line);
    border-radius: 12px; overflow-wrap: anywhere }
  h1 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.3 }
  h2 { margin: 1.5rem 0 .5rem; font-size: 1rem }
  p { margin: 0 } .soft, small, footer { color: var(--soft) }
  ul { margin: 0; padding: 0; list-style: none }
  li { padding: .5rem 0; border-top: 1px solid var(--line) }
  small { display: block; font: .8rem/1.4 ui-monospace, monospace }
  form { display: grid; gap: .6rem; margin: 1.5rem 0 0 }
  button { padding: .7rem; font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: 999px;
    background: transparent; color: inherit; cursor: pointer }
  button[value=allow] { background: var(--accent); border-color: var(--accent); color: light-dark(#ffffff, #0c1117) }
  footer { margin-top: 1.5rem; font-size: .8rem; text-align: center }
`

type Consent = {
  readonly app: string
  readonly user: User
  readonly scopes: readonly string[]
  /** What the form sends back beside the decision. */
  readonly hidden: Iterable<readonly [name: string, value: string]>
}

export function consentPage({ app, user, scopes, hidden }: Consent): string {
  const inputs = Array.from(hidden, ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)
  const items = scopes.map((scope) => {
    const meaning = SCOPE_MEANINGS[scope]
    return meaning === undefined ? html`<li>${scope}</li>` : html`<li>${meaning}<small>${scope}</small></li>`
  })
  return pageOf(
    html`Authorize ${app}`,
    `<h1>${html`${app} wants to access your account`}</h1>
<p class="soft">${html`Signed in as ${user.name} (@${user.username})`}</p>
<h2>This app will be able to:</h2>
<ul>${items.join('')}</ul>
<form method="post" action="authorize">${inputs.join('')}
<button name="decision" value="allow">Authorize app</button>
<button name="decision" value="deny">Cancel</button>
</form>`,
  )
}

export function errorPage(wrong: string): string {
  return pageOf(
    'Something went wrong',
    `<h1>Something went wrong</h1>
<p class="soft">You weren’t able to give access to the app. Go back and try to log in again.</p>
<h2>What was wrong with the request</h2>
<p>${html`${wrong}`}</p>`,
  )
}

function pageOf(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${content}
<footer>The sandbox’s platform. No account here is real.</footer>
</main>
</body>
</html>
`
}
