import { html } from '../../kernel/html.ts'
import { button, type Filled, type FormParts, field, form, summary } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'

type Shown = FormParts & {
  readonly status?: number
  readonly email: string
  readonly filled?: Filled<'old' | 'password'>
}

const LABELS = { old: 'Current password', password: 'New password' }

export function changePasswordPage({ card }: Pick<Pages, 'card'>, shown: Shown): Page {
  const { status = 200, email, filled = {} } = shown
  const { problems = {} } = filled
  return card({
    isNarrow: true,
    status,
    title: 'Change your password',
    main: html`<h1>Change your password</h1><p class="card-page__say">For <b>${email}</b>. You stay signed in here and are signed out elsewhere.</p>
${summary(filled, LABELS)}${form(
  '/account/password',
  shown,
  html`<input type="text" name="email" autocomplete="username" value="${email}" hidden>${field({ name: 'old', label: LABELS.old, type: 'password', autocomplete: 'current-password', problem: problems.old })}${field(
    {
      name: 'password',
      label: LABELS.password,
      type: 'password',
      autocomplete: 'new-password',
      problem: problems.password,
      hint: 'At least 12 characters. Spaces are allowed. A few words are good.',
    },
  )}${button('Change it')}`,
)}`,
    below: html`<a href="/sessions">Back to your account</a>`,
  })
}
