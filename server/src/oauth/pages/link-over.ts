import type { Page, Pages } from '../../http/pages/page.ts'
import { html } from '../../kernel/html.ts'
import { wayOn } from './form.ts'

type What = 'verify' | 'reset' | 'invitation'

const TOLD: Readonly<Record<What, { readonly text: string; readonly href: string; readonly button: string }>> = {
  verify: {
    text: 'It was used, it is older than 30 minutes, or a newer one has taken its place. If your address is verified already, sign in.',
    href: '/verify',
    button: 'Ask for a new link',
  },
  reset: {
    text: 'It was used, it is older than 30 minutes, or a newer one has taken its place. Opening it has changed nothing.',
    href: '/reset',
    button: 'Ask for a new link',
  },
  invitation: {
    text: 'It was answered, taken back, or is older than seven days. Whoever invited you can send another one.',
    href: '/sign-in',
    button: 'Sign in',
  },
}

/** The same for a link that was never one of ours and for one that is over: which of them, nobody needs to be told. */
export function linkOverPage({ door }: Pick<Pages, 'door'>, what: What): Page {
  const { text, href, button } = TOLD[what]
  const title = 'This link does not work any more'
  return door({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="door__say">${text}</p>
${wayOn(href, button)}`,
    below: href === '/sign-in' ? html`<a href="/">To the start</a>` : html`<a href="/sign-in">Back to signing in</a>`,
  })
}
