import { type Html, html } from '../../kernel/html.ts'
import { button, callout, type Filled, type FormParts, field, form, summary } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { withReturnTo } from '../../pages/return-to.ts'

type Waiting = FormParts & {
  readonly status?: number
  /** Whom the link was sent to; null where this browser does not know it any more. */
  readonly email: string | null
  /** An amount such as $2.00; null where there is none. */
  readonly credit: string | null
  readonly wasSentAgain?: boolean
  readonly filled?: Filled<'email'>
}

/** It says the same to everybody, whether or not there is such an account. */
export function lookIntoMailPage({ card }: Pick<Pages, 'card'>, shown: Waiting): Page {
  const { status = 200, email, credit, wasSentAgain = false, filled = {} } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Check your mail',
    main: html`<h1>Check your mail</h1><p class="card-page__say">If ${
      email === null ? 'your address' : html`<b>${email}</b>`
    } can have an account here, we have sent it a link. It works once, for 30 minutes.</p>
${wasSentAgain ? callout('ok', 'It was sent again', 'Check the spam folder too.', ' card-page__sum') : null}${summary(filled, { email: 'Email' })}${wayThere(credit)}${form(
  '/verify',
  shown,
  html`${
    email === null
      ? field({
          name: 'email',
          label: 'Email',
          type: 'email',
          autocomplete: 'username',
          value: filled.values?.email,
          problem: filled.problems?.email,
        })
      : null
  }${button('Send it again', { isQuiet: true })}`,
)}
<p class="fb-hint card-page__after">You can send it again after 60 seconds, up to five times a day. An account whose address is not verified is deleted after a day.</p>`,
    below: html`Verified on another device? <a href="${withReturnTo('/sign-in', shown.returnTo)}">Sign in here</a> to go on. <a href="${withReturnTo('/sign-up', shown.returnTo)}">Another address</a>`,
  })
}

function wayThere(credit: string | null): Html {
  return html`<ol class="fb-way" aria-label="Where you are"><li class="is-done">${icon('check')}<span>You asked for an account</span></li><li aria-current="step">${icon('clock')}<span>You open the link</span></li><li>${icon('square')}<span>${
    credit === null
      ? 'Your first workspace'
      : html`Your first workspace, with a credit of <span class="fb-money">${credit}</span>`
  }</span></li></ol>
`
}

/** Behind the link. Programs that look into mail open links too, so that opening it decides nothing. */
export function verifyPage(
  { card }: Pick<Pages, 'card'>,
  shown: FormParts & { readonly email: string; readonly path: string },
): Page {
  const { email, path } = shown
  return card({
    isNarrow: true,
    title: 'Verify your address',
    main: html`<h1>Verify your address</h1><p class="card-page__say">You asked for an account with <b>${email}</b>.</p>
${form(path, shown, button('This is my address'))}
<p class="fb-hint card-page__after">If you did not ask for it, close this page. Without this step the account is deleted after a day.</p>`,
  })
}
