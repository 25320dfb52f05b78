import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, nanos, usd, ZERO } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { waitOf } from '../../people-pages/views/words.ts'
import { withCommas } from '../../site/money.ts'
import { type KeyState, PERIOD_WORDS, type ShownKey } from './key-parts.ts'
import { asSet, card, exact } from './parts.ts'
import { refusalWords } from './refusal-words.ts'
import type { RefusedRequest } from './request-forms.ts'

export type RefusedShown = {
  /** The key that made it, as it is now; null of a grant, and of one that can't be changed any more. */
  readonly key: ShownKey | null
  readonly state: KeyState | undefined
  /** Where keys are. */
  readonly keysPath: string
  readonly mayChange: boolean
}

/** Why a call was refused, and what would have let it through: with one thing to do. */
export function refusedCards(call: RefusedRequest, shown: RefusedShown): Html {
  return html`${whyCard(call)}${fixCard(call, shown)}`
}

const BUDGETS: Readonly<Record<string, string>> = {
  key: 'The budget of the key',
  mandate: 'The budget of the mandate',
  workspace: 'The budget of the workspace',
  member: 'The budget of the member',
  tag: 'The budget of the tag',
  end_user: 'The budget of the end user',
}

function whyCard({ refusal }: RefusedRequest): Html {
  const { code, message, needed, left, budget } = refusal
  const period = budget === null ? '' : ` ${PERIOD_WORDS[budget.period as keyof typeof PERIOD_WORDS] ?? budget.period}`
  const pairs: (readonly [string, Html | string])[] = [
    ...(budget === null
      ? []
      : [['In the way', html`${BUDGETS[budget.kind] ?? budget.kind}<bdi>${budget.subject}</bdi>,${period}`] as const]),
    ...(needed === null ? [] : [['The most it could cost', exact(usd(needed.usd))] as const]),
    ...(left === null ? [] : [['Left at that moment', exact(usd(left.usd))] as const]),
    ...missing(refusal).map((amount) => ['Missing', exact(amount)] as const),
  ]
  return card(
    'why',
    refusalWords(code).title,
    html`<p class="sumline">${exact(ZERO)}</p><p>Nothing was held, and nothing was charged. No upstream was asked.</p>
<dl class="fb-kv">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<p class="fb-hint chart-foot">The caller was told: “${message}” <a href="/docs/errors#${code}">More about <code>${code}</code></a></p>`,
    { kind: 'fb-c7 top', beside: html`<code class="fb-dim">${code}</code>` },
  )
}

function missing({ needed, left }: RefusedRequest['refusal']): readonly Nanos[] {
  if (needed === null || left === null) return []
  const amount = nanos(usd(needed.usd) - usd(left.usd))
  return amount > ZERO ? [amount] : []
}

function fixCard(call: RefusedRequest, shown: RefusedShown): Html {
  const { refusal } = call
  const { fix, code } = refusal
  const others = [
    ...(fix.output_limit === null
      ? []
      : [`An output limit of ${withCommas(fix.output_limit)} tokens, or less: it would have fitted then.`]),
    ...(fix.retry_after_seconds === null ? [] : [`The same call, ${waitOf(fix.retry_after_seconds)} later.`]),
  ]
  const way = wayOf(call, shown)
  return card(
    'fix',
    'What would have let it through',
    html`<p><b>${way?.text ?? refusalWords(code).fix}</b></p>${others.length === 0 ? undefined : html`<p class="fb-soft">Or:</p><ul class="fb-list">${others.map((one) => html`<li>${one}</li>`)}</ul>`}${
      way === undefined
        ? undefined
        : html`<p class="fb-actions"><a class="fb-button" href="${way.href}">${icon('right')}${way.word}</a></p>`
    }`,
    { kind: 'fb-c5 top' },
  )
}

type Way = { readonly text: string | Html; readonly href: string; readonly word: string | Html }

/** The words of the button, by what is in the way. */
const WORDS: Readonly<Record<string, string>> = {
  insufficient_balance: 'See the balance',
  account_suspended: 'See what is owed',
  budget_exceeded: 'See the budget',
  budget_required: 'Set a budget',
  approval_required: 'Decide on it',
  approval_refused: 'See the mandate',
  mandate_paused: 'See the mandate',
  forbidden: 'Change what it may call',
  address_not_allowed: 'Change its addresses',
  rate_limit_exceeded: 'Change its limits',
  quota_exceeded: 'Change its limits',
  link_required: 'Link the account',
}

const CENT = 10_000_000n

function wayOf({ refusal }: RefusedRequest, { key, state, keysPath, mayChange }: RefusedShown): Way | undefined {
  const { code, budget, needed, fix } = refusal
  if (key?.budget && budget?.kind === 'key' && needed !== null && mayChange) {
    const left = state?.budget?.left ?? key.budget.amount
    const more = usd(needed.usd) - left
    const period = PERIOD_WORDS[key.budget.period]
    if (more <= 0n)
      return {
        text: html`It would fit now: ${exact(left)} is left of ${asSet(key.budget.amount)} ${period}.`,
        href: `${keysPath}/${key.id}`,
        word: 'See the budget',
      }
    const enough = nanos(((key.budget.amount + more + CENT - 1n) / CENT) * CENT)
    return {
      text: html`A budget of ${asSet(enough)} ${period}: it has ${asSet(key.budget.amount)}, and ${exact(left)} of it is left now.`,
      href: `${keysPath}/${key.id}/edit?amount=${plain(enough)}`,
      word: html`Raise the budget to ${asSet(enough)}`,
    }
  }
  if (fix.url === null) return undefined
  return { text: refusalWords(code).fix, href: fix.url, word: WORDS[code] ?? 'Mend it' }
}

/** As a field of a form has it. */
function plain(amount: Nanos): string {
  const cents = (amount / CENT).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}
