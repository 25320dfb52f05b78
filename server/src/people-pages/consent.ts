import type pg from 'pg'
import type { Destination } from '../authorization/redirects.ts'
import { makeGrantWithin, type NewGrant } from '../grants/grants.ts'
import type { MandateTerms } from '../grants/mandates.ts'
import { mayGive, type OAuthScope } from '../identity/resources.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, type Ids, isId } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import type { Form } from '../pages/form-data.ts'
import { anything, readForm } from '../pages/read-form.ts'
import type { Membership } from '../people/members.ts'
import { byPerson, type Visitor } from '../people/visitor.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { DEFAULTS, mandateFields, mandateIn, SEEN, saidOf, sealOf, type Values } from './mandate-form.ts'
import type { Offer } from './offer.ts'

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
  return scopes.some((scope) => scope === 'calls' || scope === 'agent')
}

/** Whether it could create keys, which spend without any amount that was set for it, and outlive it. */
export function canMakeKeys({ scopes }: Pick<Asking, 'scopes'>): boolean {
  return scopes.includes('account.manage')
}

/** Workspaces in whose name somebody may allow it. */
export function mayBeFor(
  { scopes }: Pick<Asking, 'scopes'>,
  memberships: readonly Membership[],
): readonly Membership[] {
  return memberships.filter(({ role }) => scopes.every((scope) => mayGive(role, scope)))
}

/** The fields of the form beside those of the mandate. */
const FIELDS = {
  ...{ decision: anything, workspace: anything, mode: anything, [SEEN]: anything },
  /** A box: what the client has already ends with this grant. */
  replace: anything,
}

export type Answered =
  | { readonly isAllowed: false }
  | { readonly isAllowed: true; readonly problems: Readonly<Record<string, string>> }
  | { readonly isAllowed: true; readonly problems: null; readonly decided: Decided }

/** All that a person decides about; what they are told of it is a sentence about this. */
export type Decided = {
  readonly workspace: string
  readonly mode: string
  readonly replacesOthers: boolean
  readonly days: string
  readonly terms: MandateTerms
}

/** What somebody has decided. Who denies need not fill in anything. */
export async function readDecision(form: Form, asking: Asking, offer: Offer): Promise<Answered> {
  if (form.get('decision') === 'deny') return { isAllowed: false }
  if (form.get('decision') !== 'allow') throw new Fault('invalid_request')
  const mandate = mandateFields()
  const asked = canPay(asking) ? mandate : { ...anyOf(mandate), days: mandate.days }
  const read = readForm(form, { ...FIELDS, ...asked })
  if (!read.isGood) return { isAllowed: true, problems: read.problems }
  const wanted = await wantedOf(Object.fromEntries(form), asking, offer)
  return 'problems' in wanted
    ? { isAllowed: true, problems: wanted.problems }
    : { isAllowed: true, problems: null, decided: wanted }
}

function anyOf<F extends object>(fields: F): { [Name in keyof F]: typeof anything } {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, anything])) as never
}

type Unwanted = { readonly problems: Readonly<Record<string, string>> }

/** What the values of a form come to. */
export async function wantedOf(values: Values, asking: Asking, offer: Offer): Promise<Decided | Unwanted> {
  const paid = canPay(asking) ? values : { ...DEFAULTS, ...NOTHING_PAID, days: values.days }
  const read = await mandateIn(paid, { offer, now: new Date() })
  if (!read.isGood) return { problems: read.problems }
  return {
    ...{ workspace: values.workspace ?? '', mode: values.mode ?? 'live', replacesOthers: values.replace === 'yes' },
    ...{ days: values.days ?? '', terms: read.terms },
  }
}

const NOTHING_PAID = { amount: '0', call: '0' }

/** By which a decision is known to be about what this browser was shown. */
export function sealOfDecision(browser: string, { client, audiences, scopes }: Asking, decided: Decided): string {
  const { workspace, mode, replacesOthers, days, terms } = decided
  const asked = [client.id, client.name, audiences, scopes]
  return sealOf(browser, [...asked, workspace, mode, replacesOthers, ...saidOf(terms, { days })])
}

type Parts = { readonly pool: pg.Pool; readonly ids: Ids }
type Deciding = {
  readonly asking: Asking
  readonly personId: Id
  readonly visitor: Visitor
  readonly decided: Decided
}

/**
 * Makes the grant and answers the client's request with it, in one transaction: a grant that nobody waits for is not made, and a request is
 * answered once. What fails leaves nothing behind.
 */
export function allow(
  { pool, ids }: Parts,
  { asking, personId, visitor, decided }: Deciding,
  answer: (query: Query, grantId: Id) => Promise<boolean>,
): Promise<boolean> {
  const { workspace, mode, replacesOthers, terms } = decided
  if (!isId(workspace) || (mode !== 'live' && mode !== 'test')) throw new Fault('invalid_request')
  const grant: NewGrant = {
    ...{ workspaceId: workspace, mode, personId },
    ...{ clientId: asking.client.id, clientName: asking.client.name },
    ...{ audiences: asking.audiences, scopes: asking.scopes },
    ...{ expiresAt: terms.expiresAt, replacesOthers },
    // Without an amount it can't pay.
    ...(terms.amount > ZERO && {
      budget: { period: 'total', amount: terms.amount },
      terms: { rates: { requestsPerMinute: terms.requestsPerMinute }, scopes: terms.scopes },
      asks: terms.asks,
    }),
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
