import { icon } from '../../http/pages/icons.ts'
import type { Page, Pages } from '../../http/pages/page.ts'
import { OAUTH_SCOPES } from '../../identity/faces.ts'
import type { Membership } from '../../identity/people/members.ts'
import { type Html, html } from '../../kernel/html.ts'
import { type Asking, canPay, DEFAULT_AMOUNT, DEFAULT_LASTS, LASTS } from '../consent.ts'
import { HELD_SHOWN, type HeldGrant } from '../held-grants.ts'
import { button, callout, type Filled, type FormParts, form, summary, wayOn } from './form.ts'
import { dayOf, dollars } from './words.ts'

type Shown = FormParts & {
  readonly path: string
  readonly asking: Asking
  readonly email: string
  /** Those in whose name the person may allow it. */
  readonly workspaces: readonly Membership[]
  /** What the client has from the person already. */
  readonly held: readonly HeldGrant[]
  readonly status?: number
  readonly filled?: Filled<'amount' | 'workspace' | 'days' | 'mode' | 'replace'>
  /** What the form sends besides. */
  readonly also?: Html
}

const LABELS = { amount: 'In total, at most', workspace: 'Workspace', days: 'For how long', mode: 'Money' }

/** What a client asks for, who it says it is, where the answer goes, and what it may spend. */
export function consentPage({ door }: Pick<Pages, 'door'>, shown: Shown): Page {
  const { asking, email, workspaces, status = 200, filled = {}, path, also } = shown
  const title = 'Allow an app?'
  return door({
    status,
    title,
    // The answer goes on to the client, which a browser takes for a part of sending the form.
    ...(asking.destination !== null && { formTargets: [asking.destination.source] }),
    main: html`<h1>${title}</h1>${summary(filled, LABELS)}<p class="door__say">An app that calls itself <bdi><b>${asking.client.name}</b></bdi> asks to act for you.</p>
${whoItIs(asking)}
<section class="seats" aria-labelledby="asks"><h2 class="door__h" id="asks">What it asks for</h2><ul>${asking.scopes.map((scope) => html`<li><div>${icon('check')} ${OAUTH_SCOPES[scope]}</div></li>`)}</ul></section>
${
  workspaces.length === 0
    ? nobodyMay(shown)
    : form(
        path,
        shown,
        html`${also}${terms(shown)}${inPlaceOf(shown)}<p class="fb-hint">The app gets a token of its own, not your password and no key. You can take it back at any time under <a href="/grants">what you allow</a>.</p>
${button('Allow', { name: 'decision', value: 'allow' })}${button('Don’t allow', { name: 'decision', value: 'deny', isQuiet: true })}`,
      )
}`,
    below: html`Signed in as ${email}. <a href="/sign-out">Not you?</a>`,
  })
}

function whoItIs({ client: { documentHost }, destination }: Asking): Html {
  return html`<dl class="fb-kv"><div><dt>Vouched for by</dt><dd>${documentHost === null ? 'Nobody: anybody can use this name' : html`<b>${documentHost}</b>`}</dd></div>
<div><dt>The answer goes to</dt><dd>${destination === null ? 'The device that shows your code' : html`<b>${destination.shown}</b>`}</dd></div></dl>
${warning(destination)}`
}

function warning(destination: Asking['destination']): Html | null {
  if (destination === null)
    return callout(
      'warn',
      'Is it your own device?',
      'Go on only if you started this yourself, just now. Nobody of ours asks you to type a code.',
      ' door__sum',
    )
  if (destination.kind === 'this machine')
    return callout(
      'warn',
      'It is a program on your computer',
      'Any program there could be behind this. Go on only if you have just started it yourself.',
      ' door__sum',
    )
  if (destination.kind === 'app')
    return callout(
      'warn',
      'It is an app on your device',
      'Whichever app opens such addresses gets the answer. Go on only if you have just started it yourself.',
      ' door__sum',
    )
  return null
}

function terms({ asking, workspaces, filled = {} }: Shown): Html {
  const { values = {} } = filled
  const [only] = workspaces
  return html`${
    workspaces.length === 1 && only !== undefined
      ? html`<input type="hidden" name="workspace" value="${only.id}"><p class="fb-hint">It acts for the workspace <bdi><b>${only.name}</b></bdi>.</p>`
      : select(
          'workspace',
          'Workspace',
          Object.fromEntries(workspaces.map(({ id, name }) => [id, name])),
          values.workspace,
        )
  }${canPay(asking) ? amountField(filled) : null}${select('mode', 'Money', { live: 'Live', test: 'Test' }, values.mode ?? 'live')}${select('days', 'For how long', LASTS, values.days ?? DEFAULT_LASTS)}`
}

function amountField({ values = {}, problems = {} }: NonNullable<Shown['filled']>): Html {
  const isWrong = problems.amount !== undefined
  return html`<div class="fb-field"><label for="amount">In total, at most</label><div class="fb-affix"><span>$</span><input class="fb-input" id="amount" name="amount" inputmode="decimal" autocomplete="off" required value="${values.amount ?? DEFAULT_AMOUNT}" aria-describedby="${isWrong ? 'amount-e ' : ''}amount-h"${isWrong ? html` aria-invalid="true"` : null}></div>${
    isWrong ? html`<p class="fb-error" id="amount-e">${icon('refused')}<span>${problems.amount}</span></p>` : null
  }<p class="fb-hint" id="amount-h">It can’t spend more. With 0 it can’t pay for anything.</p></div>
`
}

/** Amounts add up where somebody allows the same app again, so unless they say otherwise the new one is all that it has. */
function inPlaceOf({ held, filled = {} }: Shown): Html | null {
  if (held.length === 0) return null
  const isTicked = filled.values === undefined || filled.values.replace === 'yes'
  return html`<section class="seats" aria-labelledby="has"><h2 class="door__h" id="has">What it has already</h2><ul>${held.map(
    ({ workspace, mode, left, createdAt }) =>
      html`<li><div><bdi>${workspace}</bdi>${mode === 'test' ? ', test' : ''}, since ${dayOf(createdAt)}: ${left === null ? 'it can’t pay' : html`<b>${dollars(left)}</b> left`}</div></li>`,
  )}</ul>${held.length < HELD_SHOWN ? null : html`<p class="fb-hint">These are the newest ${HELD_SHOWN}.</p>`}</section>
<label class="fb-check door__check"><input type="checkbox" name="replace" value="yes"${isTicked ? html` checked` : null} aria-describedby="replace-h"><span class="fb-check__name">Take back what it has already</span></label>
<p class="fb-hint" id="replace-h">Otherwise it may spend both. Where it runs with what it has already, it has to ask you again.</p>
`
}

export function select(
  name: string,
  label: string,
  options: Readonly<Record<string, string>>,
  chosen: string | undefined,
): Html {
  return html`<div class="fb-field"><label for="${name}">${label}</label><select class="fb-select" id="${name}" name="${name}">${Object.entries(
    options,
  ).map(
    ([value, text]) => html`<option value="${value}"${value === chosen ? html` selected` : null}>${text}</option>`,
  )}</select></div>
`
}

function nobodyMay({ path, ...shown }: Shown): Html {
  return html`${callout('warn', 'You can’t allow this', 'It takes a workspace in which you are an owner, an admin or a developer.', ' door__sum')}${form(path, shown, html`${shown.also}${button('Back to the app', { name: 'decision', value: 'deny', isQuiet: true })}`)}`
}

/** The request that somebody was to decide about is not there: answered, too old, or of another browser. */
export function askedNoMorePage({ door }: Pick<Pages, 'door'>): Page {
  const title = 'There is nothing to decide'
  return door({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="door__say">The request was answered, is older than an hour, or was begun in another browser. Go back to the app and start again.</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
