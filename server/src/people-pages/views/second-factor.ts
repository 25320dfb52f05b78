import { html } from '../../kernel/html.ts'
import {
  button,
  CODE,
  callout,
  codeField,
  type Filled,
  type FormParts,
  form,
  or,
  RECOVERY,
  summary,
} from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { withReturnTo } from '../../pages/return-to.ts'

type Shown<Name extends string> = FormParts & {
  readonly status?: number
  readonly email: string
  readonly filled?: Filled<Name>
}

export function secondFactorPage({ card, assets }: Pick<Pages, 'card' | 'assets'>, shown: Shown<'code'>): Page {
  const { status = 200, email, filled = {}, returnTo } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Your second factor',
    main: html`<h1>Your second factor</h1><p class="card-page__say">Open your authenticator and type the six digits that it shows for <b>${assets.label.name}</b>.</p>
${summary(filled, { code: 'Code' })}${form(
  '/second-factor',
  shown,
  html`${codeField({
    name: 'code',
    label: 'Code',
    problem: filled.problems?.code,
    hint: 'It changes every 30 seconds. The previous code works a little longer.',
    code: CODE,
  })}<label class="fb-check card-page__check"><input type="checkbox" name="remember" value="yes"><span class="fb-check__name">Don’t ask in this browser for 30 days</span></label>
${button('Continue')}${or()}<a class="fb-button fb-button--large fb-button--quiet fb-button--wide" href="${withReturnTo('/recovery', returnTo)}">${icon('key')}Use a recovery code</a>`,
)}`,
    below: notYou(email),
  })
}

export function recoveryPage({ card }: Pick<Pages, 'card'>, shown: Shown<'recovery'>): Page {
  const { status = 200, filled = {}, returnTo } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Use a recovery code',
    main: html`<h1>Use a recovery code</h1><p class="card-page__say">Use one of the ten codes that you saved when you turned the second factor on. Each works once.</p>
${summary(filled, { recovery: 'Recovery code' })}${form(
  '/recovery',
  shown,
  html`${codeField({
    name: 'recovery',
    label: 'Recovery code',
    problem: filled.problems?.recovery,
    code: RECOVERY,
  })}${button('Continue')}`,
)}
${callout('plain', 'No code left?', 'The operator of this service can turn your second factor off after verifying who you are.', ' card-page__note')}`,
    below: html`<a href="${withReturnTo('/second-factor', returnTo)}">Back to the authenticator</a>`,
  })
}

function notYou(email: string) {
  return html`Signing in as ${email}. <a href="/sign-out">Not you?</a>`
}
