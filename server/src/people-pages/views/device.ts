import { html } from '../../kernel/html.ts'
import { button, codeField, type Filled, type FormParts, form, summary, wayOn } from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'

type Shown = FormParts & {
  readonly email: string
  readonly status?: number
  readonly filled?: Filled<'user_code'>
}

const LABEL = 'Code'
const LENGTH = { length: 12, isNumeric: false }

/** Where a person types what a program without a browser shows. */
export function devicePage({ card }: Pick<Pages, 'card'>, { email, status = 200, filled = {}, ...parts }: Shown): Page {
  const { values = {}, problems = {} } = filled
  const title = 'Connect a device'
  return card({
    isNarrow: true,
    status,
    title,
    main: html`<h1>${title}</h1>${summary(filled, { user_code: LABEL })}<p class="card-page__say">Type the code that your device or your command line shows. You see what it asks for before you allow anything.</p>
${form(
  '/device',
  parts,
  html`${codeField({
    ...{ name: 'user_code', label: LABEL, hint: 'Such as WDJB-MJHT', code: LENGTH },
    ...(problems.user_code !== undefined && { problem: problems.user_code }),
    ...(values.user_code !== undefined && { value: values.user_code }),
  })}${button('Continue')}`,
)}`,
    below: html`Signed in as ${email}. <a href="/sign-out">Not you?</a>`,
  })
}

export function deviceDonePage({ card }: Pick<Pages, 'card'>, isAllowed: boolean): Page {
  const title = isAllowed ? 'Your device is connected' : 'The device is not connected'
  return card({
    isNarrow: true,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">${isAllowed ? 'Go back to the device. It continues by itself within a few seconds.' : 'Nothing was allowed.'}</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
