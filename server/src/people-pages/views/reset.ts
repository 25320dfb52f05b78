import { html } from '../../kernel/html.ts'
import { button, callout, type Filled, type FormParts, field, form, summary, wayOn } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { many } from './words.ts'

type Card = Pick<Pages, 'card'>
type Asking = FormParts & { readonly status?: number; readonly filled?: Filled<'email'> }

export function resetPage({ card }: Card, shown: Asking): Page {
  const { status = 200, filled = {} } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Forgotten password',
    main: html`<h1>Forgotten password</h1><p class="card-page__say">Enter your e-mail address. If it has an account, we send a link that works once, for 30 minutes.</p>
${summary(filled, { email: 'Email' })}${form(
  '/reset',
  shown,
  html`${field({
    name: 'email',
    label: 'Email',
    type: 'email',
    autocomplete: 'username',
    value: filled.values?.email,
    problem: filled.problems?.email,
  })}${button('Send the link')}`,
)}
<p class="fb-hint card-page__after">We say the same whether or not there is an account. If you sign in through your company, reset your password there.</p>`,
    below: html`<a href="/sign-in">Back to sign-in</a>`,
  })
}

export function resetSentPage({ card }: Card, { email }: { readonly email: string | null }): Page {
  return card({
    isNarrow: true,
    title: 'Check your mail',
    main: html`<h1>Check your mail</h1><p class="card-page__say">If ${
      email === null ? 'your address' : html`<b>${email}</b>`
    } has an account here, we have sent it a link. It works once, for 30 minutes.</p>
${wayOn('/reset', 'Send another link', true)}
<p class="fb-hint card-page__after">Check the spam folder too. We send at most five of these mails per day to one address.</p>`,
    below: html`<a href="/sign-in">Back to sign-in</a>`,
  })
}

type Choosing = FormParts & {
  readonly status?: number
  readonly email: string
  readonly sessions: number
  readonly path: string
  readonly filled?: Filled<'password'>
}

export function newPasswordPage({ card }: Card, shown: Choosing): Page {
  const { status = 200, email, sessions, path, filled = {} } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Choose a new password',
    main: html`<h1>Choose a new password</h1><p class="card-page__say">For <b>${email}</b>.</p>
${summary(filled, { password: 'New password' })}${form(
  path,
  shown,
  // A password manager keeps the new one under this name.
  html`<input type="text" name="email" autocomplete="username" value="${email}" hidden>${field({
    name: 'password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    problem: filled.problems?.password,
    hint: 'At least 12 characters. A few words are good.',
  })}${callout('warn', 'You will be signed out elsewhere', `${sessions === 0 ? 'No sessions' : many(sessions, 'session')} ${sessions === 1 ? 'ends' : 'end'}. Keys and the second factor stay as they are.`)}${button('Set the password and sign in')}`,
)}`,
  })
}
