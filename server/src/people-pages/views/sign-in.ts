import { type Html, html } from '../../kernel/html.ts'
import { button, callout, type Filled, type FormParts, field, form, or, summary } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { withReturnTo } from '../../pages/return-to.ts'

/** What just happened, where somebody is led here by it. */
export const SIGN_IN_NOTES = {
  verified: ['Your address is verified', 'Sign in to continue.'],
  'signed-out': ['You are signed out', 'In this browser.'],
  'signed-out-everywhere': ['You are signed out everywhere', 'Every browser has to sign in again.'],
  ended: ['Your session has ended', 'Sign in again to continue.'],
  again: ['Sign in once more', 'The app asks you to confirm that it is you.'],
  change: ['Sign in once more', 'This change needs a sign-in of the last ten minutes.'],
} as const
export type SignInNote = keyof typeof SIGN_IN_NOTES

/** The sign-in of a company, where the operator has set one up. */
export type Issuer = { readonly name: string; readonly path: string }

type Shown = FormParts & {
  readonly status?: number
  readonly filled?: Filled<'email' | 'password'>
  readonly note?: SignInNote | undefined
  readonly issuer: Issuer | null
  /** Whether people may make accounts by themselves. */
  readonly isSignUpOpen: boolean
  readonly hasCredit: boolean
}

const LABELS = { email: 'Email', password: 'Password' }

export function signInPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { status = 200, filled = {}, note, issuer, returnTo, isSignUpOpen, hasCredit } = shown
  const { values = {}, problems = {} } = filled
  return card({
    isNarrow: true,
    status,
    title: 'Sign in',
    main: html`<h1>Sign in</h1>
${note === undefined ? null : noted(note)}${summary(filled, LABELS)}${form(
  '/sign-in',
  shown,
  html`${field({ name: 'email', label: LABELS.email, type: 'email', autocomplete: 'username', value: values.email, problem: problems.email })}${field(
    {
      name: 'password',
      label: LABELS.password,
      type: 'password',
      autocomplete: 'current-password',
      problem: problems.password,
      beside: html`<a href="/reset">Forgot your password?</a>`,
    },
  )}${button('Sign in')}${issuer === null ? null : html`${or()}${issuerLink(issuer, returnTo)}`}`,
)}`,
    ...(isSignUpOpen && {
      below: html`New here? <a href="${withReturnTo('/sign-up', returnTo)}">Create an account</a>.${hasCredit ? ' It comes with credit.' : null}`,
    }),
  })
}

function noted(note: SignInNote): Html {
  const [title, text] = SIGN_IN_NOTES[note]
  return callout('ok', title, text, ' card-page__sum')
}

/** A link and no button: what a form leads to must be ours. */
export function issuerLink({ name, path }: Issuer, returnTo: string | undefined) {
  return html`<a class="fb-button fb-button--large fb-button--quiet fb-button--wide" href="${withReturnTo(path, returnTo)}">${icon('lock')}${name}</a>`
}
