import type pg from 'pg'
import { z } from 'zod'
import type { Form } from '../http/body.ts'
import { mayGive, type OAuthScope } from '../identity/faces.ts'
import { makeGrantWithin, type NewGrant } from '../identity/grants.ts'
import type { Membership } from '../identity/people/members.ts'
import { byPerson, type Visitor } from '../identity/people/visitor.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, type Ids, isId } from '../kernel/ids.ts'
import { type Nanos, nanos, usd, ZERO } from '../kernel/money.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { anything, type Read, readForm } from './forms.ts'
import type { Destination } from './provider/redirects.ts'

/** What a client asks a person for, wherever it asks: in a browser, or with a code that it shows. */
export type Asking = {
  readonly client: {
    readonly id: string
    /** What it calls itself, which anybody may. */
    readonly name: string
    /** Who vouches for it; null where nobody does. */
    readonly documentHost: string | null
  }
  /** Null for a device, which is sent nowhere. */
  readonly destination: Destination | null
  readonly audiences: readonly string[]
  readonly scopes: readonly OAuthScope[]
}

/** Whether it could spend anything, if it were given something. */
export function canPay({ scopes }: Pick<Asking, 'scopes'>): boolean {
  return scopes.some((scope) => scope !== 'account.read')
}

/** Workspaces in whose name somebody may allow it. */
export function mayBeFor(
  { scopes }: Pick<Asking, 'scopes'>,
  memberships: readonly Membership[],
): readonly Membership[] {
  return memberships.filter(({ role }) => scopes.every((scope) => mayGive(role, scope)))
}

export const DEFAULT_AMOUNT = '1.00'
const AMOUNT_MOST = usd('10000')
const AMOUNT_PROBLEM = 'Write an amount of USD from 0 to 10,000, such as 1.00.'

/** An amount that somebody typed; undefined for what is none. */
export function readAmount(typed: string): Nanos | undefined {
  if (!/^\d{1,5}(\.\d{1,6})?$/.test(typed.trim())) return undefined
  const amount = usd(typed.trim())
  return amount > AMOUNT_MOST ? undefined : nanos(amount)
}

export const amountField = z.string().refine((typed) => readAmount(typed) !== undefined, AMOUNT_PROBLEM)

/** For how long it may be allowed, in days. */
export const LASTS = { '1': 'A day', '30': '30 days', '90': '90 days', '365': 'A year' } as const
export const DEFAULT_LASTS = '30'
const lasts = z.string().refine((days) => Object.hasOwn(LASTS, days), 'Choose how long.')

const FIELDS = {
  ...{ decision: anything, workspace: anything, mode: anything, amount: z.string(), days: lasts },
  /** A box: what the client has already ends with this grant. */
  replace: anything,
}
export type Answered = Read<typeof FIELDS>

/** What somebody has decided. Who denies need not fill in anything. */
export function readDecision(form: Form, asking: Asking): Answered {
  const isAllowed = form.get('decision') === 'allow'
  if (!isAllowed && form.get('decision') !== 'deny') throw new Fault('invalid_request')
  const amount = isAllowed && canPay(asking) ? amountField : anything
  return readForm(form, { ...FIELDS, amount, days: isAllowed ? lasts : anything })
}

type Parts = { readonly pool: pg.Pool; readonly ids: Ids }
type Fields = Extract<Answered, { isGood: true }>['fields']
type Deciding = {
  readonly asking: Asking
  readonly personId: Id
  readonly visitor: Visitor
  readonly fields: Fields
}

/**
 * Makes the grant and answers the client's request with it, in one transaction: a grant that nobody waits for is not made, and a request is
 * answered once. What fails leaves nothing behind.
 */
export function allow(
  { pool, ids }: Parts,
  { asking, personId, visitor, fields }: Deciding,
  answer: (query: Query, grantId: Id) => Promise<boolean>,
): Promise<boolean> {
  const { workspace, mode, amount, days, replace } = fields
  if (!isId(workspace) || (mode !== 'live' && mode !== 'test')) throw new Fault('invalid_request')
  const most = canPay(asking) ? (readAmount(amount) ?? ZERO) : ZERO
  const grant: NewGrant = {
    ...{ workspaceId: workspace, mode, personId },
    ...{ clientId: asking.client.id, clientName: asking.client.name },
    ...{ audiences: asking.audiences, scopes: asking.scopes },
    // Without an amount it can't pay.
    ...(most > ZERO && { budget: { period: 'total', amount: most } }),
    expiresAt: new Date(Date.now() + Number(days) * 86_400_000),
    replacesOthers: replace === 'yes',
  }
  return inTransaction(pool, async (query) => {
    const { id } = await makeGrantWithin(query, ids, byPerson(personId, visitor), grant)
    if (await answer(query, id)) return true
    throw new AnsweredBefore()
  }).catch((error: unknown) => {
    if (error instanceof AnsweredBefore) return false
    throw error
  })
}

class AnsweredBefore extends Error {}
