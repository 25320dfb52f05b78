import { z } from 'zod'
import { type Html, html } from '../../kernel/html.ts'
import { type Nanos, usd, ZERO } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import { asSet, bar, micros } from './parts.ts'

/** Keys as the account API tells of them, as far as pages show it. */

const amount = z.object({ usd: z.string() }).transform(({ usd: text }): Nanos => usd(text))
const time = z.string().transform((text) => new Date(text))

export const keyForm = z.object({
  id: z.string(),
  kind: z.enum(['key', 'ticket']),
  name: z.string(),
  mode: z.enum(['live', 'test']),
  state: z.enum(['active', 'expired', 'revoked']),
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  previous_secret_until: time.nullable(),
  member_id: z.string().nullable(),
  budget: z.object({ period: z.enum(['day', 'week', 'month', 'total']), amount }).nullable(),
  rates: z.object({
    requests_per_minute: z.number().nullable(),
    tokens_per_minute: z.number().nullable(),
    concurrency: z.number().nullable(),
  }),
  scopes: z.array(z.string()).nullable(),
  allowed_addresses: z.array(z.string()).nullable(),
  tags: z.array(z.string()).nullable(),
  set_by_operator: z.array(z.string()),
})
export type ShownKey = z.output<typeof keyForm>

export const keyListForm = z.object({ data: z.array(keyForm), next_cursor: z.string().nullable() })
export const keySecretForm = keyForm.extend({ secret: z.string().nullable(), link: z.string().nullable() })

const keyState = z.object({
  id: z.string(),
  budget: z.object({ spent: amount, held: amount, left: amount, resets_at: time.nullable() }).nullable(),
  last_used_at: time.nullable(),
  refusals: z.array(z.object({ reason: z.string(), count: z.number(), last_hour: time })),
})
export type KeyState = z.output<typeof keyState>
export const keyStatesForm = z.object({ data: z.array(keyState) })

export const PERIOD_WORDS = { day: 'a day', week: 'a week', month: 'a month', total: 'in total' } as const

const WEEK_MS = 7 * 86_400_000

/** Icon and word. A ticket is ended, and a key is revoked or expires. */
export function keyBadge({ kind, state, expires_at: expiresAt }: ShownKey, nowMs: number): Html {
  if (state === 'revoked')
    return html`<span class="fb-badge">${icon('no')}${kind === 'ticket' ? 'Ended' : 'Revoked'}</span>`
  if (state === 'expired')
    return html`<span class="fb-badge">${icon('clock')}${kind === 'ticket' ? 'Ended' : 'Expired'}</span>`
  const isSoon = expiresAt !== null && expiresAt.getTime() - nowMs <= WEEK_MS
  return isSoon && kind === 'key'
    ? html`<span class="fb-badge fb-badge--warn">${icon('clock')}Expires soon</span>`
    : html`<span class="fb-badge fb-badge--ok">${icon('check')}Active</span>`
}

/** The beginning of a key, by which its owner knows it: its secret is kept by nobody. */
export function keyHint({ id, mode }: ShownKey): string {
  return `fb_${mode}_…${id.replaceAll('-', '').slice(-8)}`
}

export function scopeWords({ scopes }: ShownKey): string {
  if (scopes === null) return 'all operations'
  const [first = '', second, third, ...rest] = scopes
  const some = [first, second, third].filter((one) => one !== undefined).join(', ')
  return rest.length === 0 ? some : `${some} + ${rest.length}`
}

export type Spending = { readonly charged: Nanos; readonly held: Nanos; readonly left: Nanos; readonly limit: Nanos }

export function spendingOf({ budget }: ShownKey, state: KeyState | undefined): Spending | null {
  if (budget === null) return null
  const { spent, held, left } = state?.budget ?? { spent: ZERO, held: ZERO, left: budget.amount }
  return { charged: (spent - held) as Nanos, held, left, limit: budget.amount }
}

/** What the operator has set of it, in words; null where that is nothing. */
export function operatorWords({ set_by_operator: names }: ShownKey): string | null {
  return names.length === 0 ? null : names.map((name) => name.replaceAll('_', ' ')).join(', ')
}

/** In a list: a bar, and what was spent of how much. */
export function smallBudget(key: ShownKey, state: KeyState | undefined): Html {
  const spending = spendingOf(key, state)
  if (spending === null || key.budget === null) return html`<span class="fb-dim">no budget</span>`
  const { charged, limit } = spending
  return html`${bar(spending, budgetLabel(spending), 'small')}<span class="fb-sub">${micros(charged)} of ${asSet(limit)} ${PERIOD_WORDS[key.budget.period]}</span>`
}

export function budgetLabel({ charged, held, limit }: Spending): string {
  const text = (nanos: Nanos) => (Number(nanos) / 1e9).toFixed(2)
  return `${text(charged)} dollars charged, ${text(held)} held, of ${text(limit)}`
}
