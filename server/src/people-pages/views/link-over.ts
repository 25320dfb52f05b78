import { html } from '../../kernel/html.ts'
import { wayOn } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'

type What = 'verify' | 'reset' | 'invitation'

const TOLD: Readonly<Record<What, { readonly text: string; readonly href: string; readonly button: string }>> = {
  verify: {
    text: 'It was already used, is older than 30 minutes, or was replaced by a newer one. If your address is already verified, sign in.',
    href: '/verify',
    button: 'Request a new link',
  },
  reset: {
    text: 'It was already used, is older than 30 minutes, or was replaced by a newer one. Nothing was changed by opening it.',
    href: '/reset',
    button: 'Request a new link',
  },
  invitation: {
    text: 'It was already answered, was withdrawn, or is older than seven days. The person who invited you can send another one.',
    href: '/sign-in',
    button: 'Sign in',
  },
}

/** The same for a link that was never one of ours and for one that is over: which of them, nobody needs to be told. */
export function linkOverPage({ card }: Pick<Pages, 'card'>, what: What): Page {
  const { text, href, button } = TOLD[what]
  const title = 'This link no longer works'
  return card({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">${text}</p>
${wayOn(href, button)}`,
    below:
      href === '/sign-in' ? html`<a href="/">Go to the home page</a>` : html`<a href="/sign-in">Back to sign-in</a>`,
  })
}
