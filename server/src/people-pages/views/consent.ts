import { OAUTH_SCOPES } from '../../identity/resources.ts'
import { type Html, html } from '../../kernel/html.ts'
import { callout, type Filled, type FormParts, form, summary, wayOn } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import type { Membership } from '../../people/members.ts'
import type { WorkspaceMoney } from '../../workspaces/workspaces.ts'
import { type Asking, canMakeKeys, canPay, type Decided } from '../consent.ts'
import { HELD_SHOWN, type HeldGrant } from '../held-grants.ts'
import type { Values } from '../mandate-form.ts'
import type { Offer } from '../offer.ts'
import { affixed, lastsOptions, MANDATE_LABELS, scopeFields, seenField, sentence, ticket } from './mandate-parts.ts'
import { dayOf, dollars } from './words.ts'

type Shown = FormParts & {
  readonly path: string
  readonly asking: Asking
  readonly email: string
  /** Those in whose name the person may allow it. */
  readonly workspaces: readonly Membership[]
  /** What the client has from the person already. */
  readonly held: readonly HeldGrant[]
  /** What those workspaces have to spend. */
  readonly money: ReadonlyMap<string, WorkspaceMoney>
  readonly offer: Offer
  /** What stands in the form. */
  readonly values: Values
  /** What that would allow; null where it can't be read. */
  readonly decided: Decided | null
  readonly seal: string | null
  readonly status?: number
  readonly filled?: Filled
  /** What the form sends besides. */
  readonly also?: Html
  /** Whether the sentence follows what is typed. Each time the server is asked, so that it can't where somebody has few tries. */
  readonly isFollowed?: boolean
}

const LABELS = { ...MANDATE_LABELS, workspace: 'Workspace', mode: 'Money' }

/** What a client asks for, who it says it is, where the answer goes, and what it may spend. */
export function consentPage({ open, assets }: Pick<Pages, 'open' | 'assets'>, shown: Shown): Page {
  const { asking, email, workspaces, status = 200, filled = {}, path, also, isFollowed = false } = shown
  const { name } = asking.client
  const wants = canPay(asking) ? 'asks for a budget' : 'asks to act for you'
  const head = html`<div class="grant__who"><span class="grant__face">${icon('agent')}</span><h1><bdi>${name}</bdi> ${wants}</h1><p>${whoAsks(asking)} You are signed in as ${email}. <a href="/sign-out">Not you?</a></p></div>
${summary(filled, LABELS)}${filled.isChanged === true ? callout('warn', 'Read the sentence again', 'You have changed something. The sentence below says what you would allow now.', ' card-page__sum') : null}`
  return open({
    status,
    title: `${name} ${wants}`,
    // The answer goes on to the client, which a browser takes for a part of sending the form.
    ...(asking.destination !== null && { formTargets: [asking.destination.source] }),
    ...(isFollowed && { script: { src: assets.console.script, connectTo: [] } }),
    main:
      workspaces.length === 0
        ? html`<div class="grant"><div>${head}<div class="grant__form">${whoItIs(asking)}${nobodyMay(shown)}</div></div></div>`
        : form(
            path,
            shown,
            html`${seenField(shown.seal)}<div>${head}${also}<div class="grant__form">${whoItIs(asking)}${terms(shown)}${inPlaceOf(shown)}</div></div>
${side(shown)}${decision(shown)}`,
            'grant',
            isFollowed ? 'decision' : undefined,
          ),
    foot: html`<a href="/grants">What you allow</a>`,
  })
}

/** What it calls itself is its own choice; what it asks for is said in our words. */
function whoAsks({ client, scopes }: Asking): Html {
  const wants = scopes.map((scope) => OAUTH_SCOPES[scope].replace(/^./, (letter) => letter.toLowerCase())).join('; ')
  return html`An app that calls itself <bdi><b>${client.name}</b></bdi> wants to ${wants}.`
}

/** More than there is can be allowed, and is told: calls are refused once it is spent. */
function notThere({ workspace, mode, terms }: Decided, money: Shown['money'], name: string): Html | null {
  const has = money.get(workspace)?.[mode === 'test' ? 'test' : 'live']
  if (has === undefined || terms.amount <= has) return null
  return callout(
    'warn',
    'It is more than there is',
    html`<bdi>${name}</bdi> has ${dollars(has)} of ${mode === 'test' ? 'test' : 'live'} money now. Calls beyond that are refused until somebody adds credit.`,
    ' card-page__sum',
  )
}

/** The mandate as it would be, beside the fields. */
function side({ asking, workspaces, decided, offer }: Shown): Html {
  if (decided === null || !canPay(asking))
    return html`<aside class="grant__side" aria-label="The mandate" data-follows="ticket">${note(asking)}</aside>`
  const workspace = nameOf(workspaces, decided)
  const from = `${workspace}, ${decided.mode === 'test' ? 'test' : 'live'}`
  const shown = {
    client: asking.client.name,
    terms: decided.terms,
    operations: offer.count(decided.terms.scopes),
    from,
  }
  return html`<aside class="grant__side" aria-label="The mandate" data-follows="ticket">${ticket(shown)}${note(asking)}</aside>`
}

function note({ client, scopes }: Asking): Html {
  const unseen = scopes.some((scope) => scope.startsWith('account.'))
    ? null
    : ' It does not see your balance, other keys or other calls.'
  return html`<p class="fb-hint">${icon('lock')} <bdi>${client.name}</bdi> gets a token of its own, not your key and not your password.${unseen}</p>`
}

function nameOf(workspaces: readonly Membership[], { workspace }: Decided): string {
  return workspaces.find(({ id }) => id === workspace)?.name ?? 'Your workspace'
}

/** The one sentence, and the two ways to answer it. */
function decision({ asking, workspaces, decided, offer, money }: Shown): Html {
  const most = decided === null || decided.terms.amount === 0n ? '' : ` up to ${dollars(decided.terms.amount)}`
  const said =
    decided === null
      ? html`<p>Correct the fields above first. Then you see here what you allow.</p>`
      : sentence({
          ...{ client: asking.client.name, workspace: nameOf(workspaces, decided), mode: decided.mode },
          ...{ terms: decided.terms, offer, canMakeKeys: canMakeKeys(asking) },
        })
  return html`<div class="grant__say" data-follows="sentence" aria-live="polite"><div class="grant__box"><h2>What you are about to allow</h2>${said}${decided === null ? null : notThere(decided, money, nameOf(workspaces, decided))}
<div class="fb-actions"><button class="fb-button fb-button--large" type="submit" name="decision" value="allow">Allow${most}</button><button class="fb-button fb-button--large fb-button--quiet" type="submit" name="decision" value="deny">Don’t allow</button></div></div></div>`
}

function whoItIs({ client: { documentHost }, destination }: Asking): Html {
  return html`<dl class="fb-kv"><div><dt>Verified domain</dt><dd>${documentHost === null ? 'None: anybody can use this name' : html`<b>${documentHost}</b>`}</dd></div>
<div><dt>The answer goes to</dt><dd>${destination === null ? 'The device that shows your code' : html`<b>${destination.shown}</b>`}</dd></div></dl>
${warning(destination)}`
}

function warning(destination: Asking['destination']): Html | null {
  if (destination === null)
    return callout(
      'warn',
      'Is it your own device?',
      'Continue only if you have just started this yourself. Our staff never ask you to type a code.',
      ' card-page__sum',
    )
  if (destination.kind === 'this machine')
    return callout(
      'warn',
      'It is a program on your computer',
      'Any program on it could have sent this request. Continue only if you have just started it yourself.',
      ' card-page__sum',
    )
  if (destination.kind === 'app')
    return callout(
      'warn',
      'It is an app on your device',
      'The app that opens such addresses gets the answer. Continue only if you have just started it yourself.',
      ' card-page__sum',
    )
  return null
}

function terms({ asking, workspaces, values, offer, money: has, filled = {} }: Shown): Html {
  const { problems = {} } = filled
  const [only] = workspaces
  const whose =
    workspaces.length === 1 && only !== undefined
      ? html`<input type="hidden" name="workspace" value="${only.id}"><p class="fb-hint">It acts for the workspace <bdi><b>${only.name}</b></bdi>.</p>`
      : select(
          'workspace',
          'Workspace',
          Object.fromEntries(workspaces.map(({ id, name }) => [id, `${name}${balances(has.get(id), ' (', ')')}`])),
          values.workspace,
        )
  const money = select('mode', 'Money', { live: 'Live', test: 'Test' }, values.mode ?? 'live')
  const until = select('days', 'Until', lastsOptions(new Date()), values.days)
  if (!canPay(asking)) return html`${whose}<div class="two">${money}${until}</div>`
  return html`${scopeFields(offer, values, problems)}<fieldset><legend>How much it may spend</legend>${whose}<div class="two">${affixed({ name: 'call', label: 'Per call, at most', before: '$', hint: 'Above this, it has to ask you.' }, values, problems)}${affixed({ name: 'amount', label: 'In total, at most', before: '$', hint: `${balances(has.get(values.workspace ?? only?.id ?? ''), 'Of ', ' that the workspace has. ')}It can’t spend more. With 0 it can’t pay for anything.` }, values, problems)}${affixed({ name: 'rate', label: 'How often', after: 'calls per minute', isNumeric: true }, values, problems)}${until}${money}</div></fieldset>
`
}

/** What a workspace has, of both kinds. */
function balances(money: WorkspaceMoney | undefined, before: string, behind: string): string {
  return money === undefined
    ? ''
    : `${before}${dollars(money.live)} live and ${dollars(money.test)} test money${behind}`
}

/** Amounts add up where somebody allows the same app again, so unless they say otherwise the new one is all that it has. */
function inPlaceOf({ held, values }: Shown): Html | null {
  if (held.length === 0) return null
  const isTicked = values.replace === 'yes'
  return html`<section class="seats" aria-labelledby="has"><h2 class="card-page__h" id="has">What it already has</h2><ul>${held.map(
    ({ workspace, mode, left, isPaused, createdAt, audiences, isReplaceable, canMakeKeys: makesKeys }) =>
      html`<li><div><bdi>${workspace}</bdi>${mode === 'test' ? ', test' : ''}, since ${dayOf(createdAt)}: ${left === null ? (makesKeys ? 'no amount of its own' : 'it can’t pay') : html`<b>${dollars(left)}</b> left${isPaused ? ' when it is resumed: it is paused' : ''}`}${makesKeys ? '; it can create keys that spend your balance' : ''}${isReplaceable ? '' : html`. It is for <code>${audiences.join(', ')}</code>, and stays: what you allow now is added`}</div></li>`,
  )}</ul>${held.length < HELD_SHOWN ? null : html`<p class="fb-hint">These are the newest ${HELD_SHOWN}.</p>`}</section>
${held.some(({ isReplaceable }) => isReplaceable) ? replaceField(isTicked) : null}`
}

function replaceField(isTicked: boolean): Html {
  return html`<label class="fb-check card-page__check"><input type="checkbox" name="replace" value="yes"${isTicked ? html` checked` : null} aria-describedby="replace-h"><span class="fb-check__name">Revoke what it already has</span></label>
<p class="fb-hint" id="replace-h">Otherwise it may spend both amounts. Where the app uses the old one, it has to ask you again.</p>
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
  return html`${callout('warn', 'You can’t allow this', 'You need a workspace in which you are an owner, an admin or a developer.', ' card-page__sum')}${form(path, shown, html`${shown.also}<button class="fb-button fb-button--large fb-button--quiet" type="submit" name="decision" value="deny">Back to the app</button>`)}`
}

/** The request that somebody was to decide about is not there: answered, too old, or of another browser. */
export function askedNoMorePage({ card }: Pick<Pages, 'card'>): Page {
  const title = 'There is nothing to decide'
  return card({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">The request is already answered, is older than an hour, or was started in another browser. Go back to the app and start again.</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
