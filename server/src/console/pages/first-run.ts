import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, ZERO } from '../../kernel/money.ts'
import { callout, form, type Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import { codeTabs } from '../../site/code.ts'
import { asSet, bar, card, changesOnce, copyButton, reveal } from './parts.ts'
import { type SnippetParts, snippets } from './snippets.ts'

type Shown = {
  readonly formToken: string
  readonly idempotencyKey: string
  /** Where a key is made, where keys are, and where calls are told as they end. */
  readonly paths: { readonly key: string; readonly keys: string; readonly overview: string; readonly live: string }
  readonly mode: 'live' | 'test'
  readonly available: Nanos
  /** The key that was just made; or the one that there is. */
  readonly secret: string | null
  readonly keyName: string | null
  readonly mayMakeKeys: boolean
  readonly trouble?: Trouble
}

/** Key, call, cost: one page that waits for the first call. */
export function firstRun(parts: SnippetParts, shown: Shown): Html {
  const { available, mode, keyName, secret, trouble } = shown
  const isCallable = keyName !== null
  return html`<div class="fb-title"><div><h1>Make your first call</h1><p>It takes a minute. You have ${asSet(available)} of ${mode} money.</p></div></div>
${trouble === undefined ? undefined : html`<div class="fb-callout fb-callout--bad" role="alert">${icon('refused')}<div><strong>${trouble.title}</strong>${trouble.text}</div></div>`}${
  available > ZERO
    ? undefined
    : callout(
        'warn',
        `There is no ${mode} money here.`,
        html`<p>Every call would be refused with 402. ${mode === 'live' ? 'Begin with test money, or ask whoever runs this service for credit.' : 'Ask whoever runs this service for more.'}</p>`,
      )
}<div class="begin" data-island="first-call" data-live="${shown.paths.live}">
<ol class="begin__steps">
<li${isCallable ? html` class="is-done"` : html` aria-current="step"`}><span class="begin__mark">${isCallable ? icon('check') : '1'}</span><div><h2>A key</h2>${keyStep(shown)}</div></li>
<li data-step="call"${isCallable ? html` aria-current="step"` : undefined}>${mark('2')}<div><h2>A call</h2><p>${secret === null ? html`Paste this into a terminal, with your key in place of <code>$FAREBOX_KEY</code>.` : 'Paste this into a terminal. The key is in it already.'}</p>${codeTabs('call', 'First call', snippets(parts, secret), copyButton('call'))}${isCallable ? waiting(shown) : undefined}</div></li>
<li data-step="cost">${mark('3')}<div><h2>What it cost</h2><p>The answer says so in its header <code>${parts.headerNames.cost}</code>, and this page shows it.</p>${costStep(shown)}</div></li>
</ol>
<aside class="begin__side" aria-label="Afterwards">
${then(shown)}${ceiling(shown)}</aside></div>`
}

/** The number of a step, and what it becomes. */
function mark(number: string): Html {
  return html`<span class="begin__mark"><span class="at">${number}</span><span class="over">${icon('check')}</span></span>`
}

function keyStep({ formToken, idempotencyKey, paths, mode, secret, keyName, mayMakeKeys }: Shown): Html {
  if (secret !== null)
    return html`<p>It is shown once, here and now. Only its hash is kept.</p>${reveal(secret)}<p class="fb-hint">Its budget is $1.00 a day: at that, its calls are refused. It spends ${mode} money only.</p>`
  if (keyName !== null)
    return html`<p>There is a key: <b><bdi>${keyName}</bdi></b>. Its secret was shown once, when it was made. If you have not kept it, <a href="${paths.keys}">make another one</a>.</p>`
  if (!mayMakeKeys) return html`<p>Your role can’t make keys. Ask an owner or admin of the workspace for one.</p>`
  return html`<p>A key with a budget of $1.00 a day, for ${mode} money. You can change everything about it later.</p>${form(paths.key, { formToken }, html`${changesOnce(idempotencyKey)}<button class="fb-button" type="submit">${icon('key')}Make a key</button>`)}`
}

function waiting({ paths }: Shown): Html {
  return html`<div class="wait" role="status" data-wait><span class="wait__dot"><span class="at">${icon('running')}</span><span class="over">${icon('check')}</span></span><div><b data-wait-title>Waiting for your first call …</b><span class="fb-sub" data-wait-text>Nothing has reached us yet. When you have made it, <a href="${paths.overview}">look here</a>; keep the key before you do.</span></div></div>
<details class="fb-more"><summary>Nothing happens?</summary><div><p><b>401</b>: the key was cut; copy it again. <b>Could not resolve host</b>: a proxy stands between you and us. <b>402</b>: a budget is used up; the answer says which. <b>501</b> or <b>503</b>: the answer says what is missing on our side; you were not charged.</p></div></details>`
}

function costStep({ paths: { overview } }: Shown): Html {
  return html`<div class="ghost" data-cost><div class="ghost__row"><span data-cost-operation>rerank</span><span data-cost-took>held, then charged</span><span>charged <b data-cost-charged>–</b></span></div><p class="ghost__way" data-cost-link hidden><a href="${overview}">See the overview</a></p></div>`
}

function then({ paths }: Shown): Html {
  const items = [
    ['tree', 'Set a budget', 'See a call refused before it costs anything.', paths.keys, 'Set'],
    ['play', 'Use your SDK', 'OpenAI’s, Anthropic’s, Google’s: change the address and the key.', '/docs/models', 'How'],
    ['agent', 'Connect an agent', 'It spends inside a mandate that you give it.', '/docs/agents', 'How'],
    [
      'ticket',
      'Give a ticket',
      'Somebody without an account spends up to an amount.',
      `${paths.keys}/new-ticket`,
      'Give',
    ],
  ] as const
  return card(
    'then',
    'Then',
    html`<ul class="then">${items.map(([shape, title, text, href, word]) => html`<li>${icon(shape)}<div><b>${title}</b><span class="fb-sub">${text}</span></div><a href="${href}">${word}<span class="fb-hide">: ${title}</span></a></li>`)}</ul>`,
    { isPlain: true, beside: html`<span class="fb-dim">in any order</span>` },
  )
}

function ceiling({ available, mode }: Shown): Html {
  return card(
    'ceiling',
    'Your ceiling',
    html`<div class="budget">${bar({ charged: ZERO, held: ZERO, limit: available }, 'Nothing is spent')}<p class="fb-soft">Nothing is spent. At ${asSet(available)} of ${mode} money, calls are refused before they cost anything. There is no way past it.</p></div>`,
  )
}
