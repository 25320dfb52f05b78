import { html, pageOf } from '../html.ts'
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
  body { min-height: 100vh; display: grid; place-items: center }
  main { width: 100%; max-width: 27rem; padding: 2rem }
  p { margin: 0 }
  li { padding: .5rem 0 }
  small { font: .8rem/1.4 ui-monospace, monospace }
  form { display: grid; gap: .6rem; margin: 1.5rem 0 0 }
  button { padding: .7rem; font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: 999px;
    background: transparent; color: inherit; cursor: pointer }
  button[value=allow] { background: var(--accent); border-color: var(--accent); color: light-dark(#ffffff, #0c1117) }
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
  return platformPageOf(
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
  return platformPageOf(
    'Something went wrong',
    `<h1>Something went wrong</h1>
<p class="soft">You weren’t able to give access to the app. Go back and try to log in again.</p>
<h2>What was wrong with the request</h2>
<p>${html`${wrong}`}</p>`,
  )
}

function platformPageOf(title: string, content: string): string {
  return pageOf(title, { style: STYLE, content, footer: 'The sandbox’s platform. No account here is real.' })
}
