import { type Html, html } from '../../kernel/html.ts'
import type { Secret } from '../../kernel/secret.ts'
import {
  button,
  CODE,
  callout,
  codeField,
  type Filled,
  type FormParts,
  form,
  RECOVERY,
  summary,
  wayOn,
} from '../../pages/form.ts'
import type { Page, Pages } from '../../pages/page.ts'
import { qrCode } from './qr-code.ts'

type Card = Pick<Pages, 'card'>
const PATH = '/account/second-factor'
const BACK = html`<a href="/sessions">Back to your account</a>`

/** Off, and why it should not be. */
export function factorOffPage({ card }: Card, parts: FormParts): Page {
  return card({
    isNarrow: true,
    title: 'Second factor',
    main: html`<h1>Second factor</h1><p class="card-page__say">It is off. When it is on, a password alone is not enough to sign in: you also type a six-digit code from your phone.</p>
${form(`${PATH}/begin`, parts, button('Turn it on'))}
<p class="fb-hint card-page__after">You need an authenticator app: any app that shows time-based codes (TOTP). Turning it on signs you out in every other browser.</p>`,
    below: BACK,
  })
}

type Beginning = FormParts & {
  readonly status?: number
  readonly secret: Secret
  readonly uri: Secret
  readonly filled?: Filled<'code'>
}

/** The key, once as a picture for a phone and once as text for whoever types. */
export function factorBeginPage({ card }: Card, shown: Beginning): Page {
  const { status = 200, secret, uri, filled = {} } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Turn the second factor on',
    main: html`<h1>Turn the second factor on</h1><p class="card-page__say">Scan this with your authenticator, then type the six digits that it shows.</p>
${summary(filled, { code: 'Code' })}<figure class="scan">${qrCode(uri, 'The key of your second factor')}<figcaption class="fb-hint">Or type this key: <code class="scan__key">${inFours(secret.reveal())}</code><a href="${uri.reveal()}">Open it in an authenticator on this device</a></figcaption></figure>
${form(
  `${PATH}/confirm`,
  shown,
  html`<input type="hidden" name="uri" value="${uri.reveal()}">${codeField({
    name: 'code',
    label: 'Code',
    problem: filled.problems?.code,
    code: CODE,
  })}${button('Turn it on')}`,
)}`,
    below: BACK,
  })
}

/** Shown this once: only their hashes are kept. */
export function recoveryCodesPage({ card }: Card, codes: readonly Secret[]): Page {
  const title = 'The second factor is on'
  return card({
    isNarrow: true,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">These are your recovery codes. Keep them where you can find them without your phone. Each one works once in place of a code from your phone.</p>
<ol class="codes">${codes.map((code) => html`<li><code>${code.reveal()}</code></li>`)}</ol>
${callout('warn', 'They are not shown again', 'Print this page, or put them into a password manager now.', ' card-page__sum')}${wayOn('/sessions?note=factor-on', 'I have saved them')}`,
  })
}

/** On: what can be done about it needs it once more. */
export function factorOnPage(
  { card }: Card,
  shown: FormParts & { readonly status?: number; readonly filled?: Filled<'code'> },
): Page {
  const { status = 200, filled = {} } = shown
  return card({
    isNarrow: true,
    status,
    title: 'Second factor',
    main: html`<h1>Second factor</h1><p class="card-page__say">It is on. To turn it off, type a code from your authenticator, or one of your recovery codes.</p>
${summary(filled, { code: 'Code' })}${form(
  `${PATH}/remove`,
  shown,
  html`${codeField({
    name: 'code',
    label: 'Code',
    problem: filled.problems?.code,
    code: RECOVERY,
  })}<button class="fb-button fb-button--large fb-button--danger fb-button--wide" type="submit">Turn it off</button>`,
)}`,
    below: BACK,
  })
}

function inFours(key: string): Html {
  return html`${key.match(/.{1,4}/g)?.join(' ')}`
}
