import { html } from '../../kernel/html.ts'
import { button, type FormParts, form } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'

/** A step of its own: no address that somebody is led to signs them out. */
export function signOutPage({ card }: Pick<Pages, 'card'>, shown: FormParts & { readonly email: string }): Page {
  return card({
    isNarrow: true,
    title: 'Sign out',
    main: html`<h1>Sign out?</h1><p class="card-page__say">You are signed in as <b>${shown.email}</b>.</p>
${form('/sign-out', shown, button('Sign out'))}`,
    below: html`<a href="/sessions">Back to your account</a>`,
  })
}
