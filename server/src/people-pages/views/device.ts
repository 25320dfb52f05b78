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
export function devicePage({ door }: Pick<Pages, 'door'>, { email, status = 200, filled = {}, ...parts }: Shown): Page {
  const { values = {}, problems = {} } = filled
  const title = 'Connect a device'
  return door({
    isNarrow: true,
    status,
    title,
    main: html`<h1>${title}</h1>${summary(filled, { user_code: LABEL })}<p class="door__say">Type the code that your device or your command line shows. You see what it asks for before you allow anything.</p>
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

export function deviceDonePage({ door }: Pick<Pages, 'door'>, isAllowed: boolean): Page {
  const title = isAllowed ? 'Your device is connected' : 'The device is not connected'
  return door({
    isNarrow: true,
    title,
    main: html`<h1>${title}</h1><p class="door__say">${isAllowed ? 'Go back to the device. It continues by itself within a few seconds.' : 'Nothing was allowed.'}</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
