import { html } from '../../kernel/html.ts'
import { button, callout, type Filled, type FormParts, field, form, or, summary, wayOn } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { withReturnTo } from '../../pages/return-to.ts'
import { type Issuer, issuerLink } from './sign-in.ts'

type Shown = FormParts & {
  readonly status?: number
  readonly filled?: Filled<'name' | 'email' | 'password'>
  readonly issuer: Issuer | null
}

const LABELS = { name: 'Your name', email: 'Email', password: 'Password' }

export function signUpPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { status = 200, filled = {}, issuer, returnTo } = shown
  const { values = {}, problems = {} } = filled
  return card({
    isNarrow: true,
    status,
    title: 'Create an account',
    main: html`<h1>Create an account</h1>
${summary(filled, LABELS)}${form(
  '/sign-up',
  shown,
  html`${field({ name: 'name', label: LABELS.name, type: 'text', autocomplete: 'name', value: values.name, problem: problems.name })}${field(
    {
      name: 'email',
      label: LABELS.email,
      type: 'email',
      autocomplete: 'username',
      value: values.email,
      problem: problems.email,
    },
  )}${field({
    name: 'password',
    label: LABELS.password,
    type: 'password',
    autocomplete: 'new-password',
    problem: problems.password,
    hint: 'At least 12 characters. Spaces are allowed. A few words are good.',
  })}${button('Create the account')}${issuer === null ? null : html`${or()}${issuerLink(issuer, returnTo)}`}`,
)}`,
    below: html`Already have an account? <a href="${withReturnTo('/sign-in', returnTo)}">Sign in</a>.`,
  })
}

type Closed = {
  /** What the operator has to set before anybody can; nothing where it is closed on purpose. */
  readonly missing: readonly string[]
  readonly issuer: Issuer | null
}

/** Why nobody can make an account here, and whom to ask. */
export function signUpClosedPage({ card }: Pick<Pages, 'card'>, { missing, issuer }: Closed): Page {
  if (missing.length > 0) return notSetUpPage({ card }, { title: 'Sign-up is closed', what: 'Sign-up', missing })
  return card({
    isNarrow: true,
    status: 403,
    title: 'Sign-up is closed',
    main: html`<h1>Sign-up is closed</h1><p class="card-page__say">You need an invitation to create an account here. Ask the operator of this service, or a member of your workspace.</p>
${issuer === null ? null : issuerLink(issuer, undefined)}${wayOn('/sign-in', 'Sign in', true)}`,
  })
}

type NotSetUp = { readonly title: string; readonly what: string; readonly missing: readonly string[] }

/** For what needs mail, where none can be sent. */
export function notSetUpPage({ card }: Pick<Pages, 'card'>, { title, what, missing }: NotSetUp): Page {
  const settings = missing.map((name, at) => html`${at === 0 ? '' : ', '}<code>${name}</code>`)
  return card({
    isNarrow: true,
    status: 403,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">The operator of this service has not set this up yet.</p>
${callout('plain', 'For the operator', html`${what} needs ${settings}.`, ' card-page__sum')}${wayOn('/sign-in', 'Sign in', true)}`,
  })
}
