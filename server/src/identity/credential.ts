import type pg from 'pg'
import { z } from 'zod'
import { BUDGET_ROW, type Budget, budgetIn } from '../budgets/budgets.ts'
import { memberSubjects } from '../budgets/member-subjects.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { CacheParts } from '../storage/cache.ts'
import type { Parsed } from './key-format.ts'
import { type KeyTerms, TERMS_ROW, TERMS_SELECT, termsIn } from './key-terms.ts'
import type { Asks } from './mandate-terms.ts'
import type { Resource } from './resources.ts'

/** A key or an access token that is right: what its caller is made of. The same object for as long as nothing of it changes. */
export type Credential = {
  /** Of the key, or of the token's grant. */
  readonly id: Id
  readonly workspaceId: Id
  readonly accountId: Id
  readonly mode: Mode
  readonly allowanceId: Id | null
  /** What that allows, in words for whoever has met it; PostgreSQL decides. */
  readonly budget: Budget | null
  /** By what budgets know the member whose it is; nothing for nobody's. */
  readonly memberSubjects: readonly string[]
  readonly terms: KeyTerms
  /** Null where it never ends by itself. */
  readonly expiresAtMs: number | null
  readonly isTicket: boolean
  readonly token: TokenAccess | null
}

/** What an access token may do on the resource that it came to. */
export type TokenAccess = {
  /** Make calls, or use tools that do. */
  readonly mayCall: boolean
  /** See what the whole account uses. */
  readonly mayReadAccount: boolean
  readonly mandate: Mandate
}

/** What the person who gave the grant says of single calls, beside its amount, its rate and its scopes. */
export type Mandate = Asks & {
  /** Whether no call begins until the person lets it go on. */
  readonly isPaused: boolean
}

/** One kind of credential: where it is found. */
export type Source = {
  /** From memory, at once; undefined where it is not there, or not right. */
  readonly peek: (given: Parsed, resource: Resource) => Credential | undefined
  /**
   * As it is now. Whatever is found, the same work is done, so that its time tells nothing. That one has expired is told to nobody but
   * who has its secret.
   */
  readonly lookUp: (given: Parsed, resource: Resource) => Promise<Credential | 'expired' | undefined>
}

export type SourceParts = CacheParts & {
  readonly pool: pg.Pool
  /** PostgreSQL's time, by which keys and tokens expire. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly maxEntries: number
}

/** What keys and grants have alike, but for their member, of a row that a statement calls k, with its credential c and its account a. */
export const CREDENTIAL_SELECT = `k.id, k.workspace_id, c.account_id, a.mode, k.expires_at,
  k.revoked_at is not null or not c.active as is_revoked, k.allowance_id, b.period, b.amount, ${TERMS_SELECT}`

/** What belongs to that row. */
export const CREDENTIAL_JOINS = `join credentials c on c.id = k.id join accounts a on a.id = c.account_id
  left join allowances b on b.id = k.allowance_id`

const row = z.object({
  id: z.string(),
  workspace_id: z.string(),
  account_id: z.string(),
  mode: z.enum(['live', 'test']),
  expires_at: z.date().nullable(),
  is_revoked: z.boolean(),
  allowance_id: z.string().nullable(),
  member_person: z.string().nullable(),
  member_email: z.string().nullable(),
  ...BUDGET_ROW,
  ...TERMS_ROW,
})

export const CREDENTIAL_ROW = row.shape

export function credentialIn(columns: z.output<typeof row>) {
  return {
    id: columns.id,
    workspaceId: columns.workspace_id,
    accountId: columns.account_id,
    mode: columns.mode satisfies Mode,
    expiresAtMs: columns.expires_at?.getTime() ?? null,
    isRevoked: columns.is_revoked,
    allowanceId: columns.allowance_id,
    memberSubjects: memberSubjects(columns.workspace_id, {
      personId: columns.member_person,
      email: columns.member_email,
    }),
    budget: budgetIn(columns),
    terms: termsIn(columns),
  }
}
