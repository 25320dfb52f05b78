import type pg from 'pg'
import { type BudgetsOfAccount, budgetsOf, type Ceiling } from '../budgets/account-budgets.ts'
import { DEFAULT_HOLDING } from '../catalogue/holding.ts'
import { limitsWithin } from '../catalogue/key-rates.ts'
import { DEFAULT_ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Fault, unavailable, wrongCredential } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { rational } from '../kernel/rational.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Cache, type CacheParts, createCache } from '../storage/cache.ts'
import { tierIn } from '../workspaces/tier.ts'
import type { Caller } from './caller.ts'
import type { Credential, Source } from './credential.ts'
import { type FailuresByAddress, tryFrom } from './failures-by-address.ts'
import { isLikeAccessToken, type Parsed, parseCredential, printOf } from './key-format.ts'
import { createKeySource } from './key-source.ts'
import type { Resource } from './resources.ts'
import { scopesIn } from './scopes.ts'
import { createTokenSource } from './token-source.ts'
import { loadWorkspace, type WorkspaceRecord } from './workspace-record.ts'

/**
 * Finds out who sent a credential to a resource. A right one is known from memory; whatever else comes is looked up once in PostgreSQL,
 * so that neither the answer nor the time that it takes tells whether the id exists, is revoked or expired, or has another secret.
 */
export type Identify = (credential: Secret, address: string, resource: Resource) => Caller | Promise<Caller>

type Parts = CacheParts & {
  readonly pool: pg.Pool
  /** PostgreSQL's time, by which keys and tokens expire. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly failures: FailuresByAddress
}

const MAX_CREDENTIALS = 200_000
const MAX_WORKSPACES = 100_000

export function createIdentify({ pool, feed, clock, time, metrics, failures }: Parts): Identify {
  const shared = { feed, clock, metrics }
  const found = { ...shared, pool, time, maxEntries: MAX_CREDENTIALS }
  const keys = createKeySource(found)
  const tokens = createTokenSource(found)
  const sourceOf = ({ kind }: Parsed): Source => (kind === 'at' ? tokens : keys)
  const workspaces: Cache<WorkspaceRecord> = createCache({
    ...shared,
    name: 'workspaces',
    topic: 'workspace',
    load: (id) => loadWorkspace(pool, id),
    maxEntries: MAX_WORKSPACES,
  })
  /**
   * Credentials that were right, by their hashes, as they were read then. Memory is asked for no other: to find a key there, or none, takes
   * times that differ.
   */
  const right = createRecentMap<string, Parsed>(MAX_CREDENTIALS)
  const callers = new WeakMap<Credential, { readonly workspace: WorkspaceRecord; readonly caller: Caller }>()

  /** One caller for as long as neither credential nor workspace changes: this is asked for every request. */
  function callerOf(credential: Credential, workspace: WorkspaceRecord): Caller {
    const known = callers.get(credential)
    if (known?.workspace === workspace) return known.caller
    const caller = makeCaller(credential, workspace)
    callers.set(credential, { workspace, caller })
    return caller
  }

  /** One that was right a moment ago is looked up whatever else came from its address. */
  async function lookUpInTurn(print: string, given: Parsed, address: string, resource: Resource): Promise<Caller> {
    if (right.has(print)) return lookUp(print, given, address, resource)
    return tryFrom(failures, address, () => lookUp(print, given, address, resource))
  }

  async function lookUp(print: string, given: Parsed, address: string, resource: Resource): Promise<Caller> {
    const credential = await orUnavailable(sourceOf(given).lookUp(given, resource))
    if (credential === undefined || credential === 'expired') {
      right.delete(print)
      throw refused(address, given, credential === 'expired' ? 'expired_credential' : 'invalid_credential')
    }
    const workspace = await orUnavailable(workspaces.get(credential.workspaceId))
    if (workspace === undefined) throw refused(address, given)
    right.set(print, given)
    return callerOf(credential, workspace)
  }

  function refused(
    address: string,
    { kind }: Parsed,
    code: 'expired_credential' | 'invalid_credential' = 'invalid_credential',
  ): Fault {
    failures.note(address)
    return wrongCredential(code, kind === 'at')
  }

  return (credential, address, resource) => {
    const print = printOf(credential)
    const remembered = right.get(print)
    const given = remembered ?? parseCredential(credential)
    // It cost nothing to see, so it counts for nothing: who mistypes a key must not keep out others behind the same address.
    if (given === undefined) throw wrongCredential('invalid_credential', isLikeAccessToken(credential))
    const known = remembered && sourceOf(remembered).peek(remembered, resource)
    const workspace = known && workspaces.peek(known.workspaceId)
    if (known !== undefined && workspace !== undefined) return callerOf(known, workspace)
    return lookUpInTurn(print, given, address, resource)
  }
}

/** That we can't look somebody up says nothing about them. */
async function orUnavailable<T>(look: Promise<T>): Promise<T> {
  try {
    return await look
  } catch (cause) {
    throw unavailable(cause)
  }
}

/** One for all credentials of an account, for as long as nothing of its workspace changes. */
const budgetsByWorkspace = new WeakMap<WorkspaceRecord, Map<Id, BudgetsOfAccount>>()

function budgetsIn(workspace: WorkspaceRecord, accountId: Id): BudgetsOfAccount {
  const known = budgetsByWorkspace.get(workspace) ?? new Map<Id, BudgetsOfAccount>()
  budgetsByWorkspace.set(workspace, known)
  const budgets = known.get(accountId) ?? budgetsOf(accountId, workspace.budgets)
  known.set(accountId, budgets)
  return budgets
}

function ceilingsOf(
  { allowanceId, budget, memberSubjects, token }: Credential,
  budgets: BudgetsOfAccount,
): readonly Ceiling[] {
  const kind = token === null ? 'key' : 'mandate'
  return [
    ...(allowanceId === null || budget === null ? [] : [{ allowanceId, kind, subject: null, budget } as const]),
    ...memberSubjects.flatMap((subject) => budgets.ofMember.get(subject) ?? []),
    ...budgets.workspace,
  ]
}

function makeCaller(credential: Credential, workspace: WorkspaceRecord): Caller {
  const { tier, limits } = tierIn(workspace)
  const { rates, scopes, networks, onDisconnect, holding, tags } = credential.terms
  const budgets = budgetsIn(workspace, credential.accountId)
  const ceilings = ceilingsOf(credential, budgets)
  return {
    workspaceId: workspace.id,
    accountId: credential.accountId,
    credentialId: credential.id,
    mode: credential.mode,
    tier,
    limits: limitsWithin(limits, rates),
    scopes: scopes && scopesIn(scopes),
    networks,
    onDisconnect: onDisconnect ?? DEFAULT_ON_DISCONNECT,
    holding: holding ?? DEFAULT_HOLDING,
    tags: tags ?? [],
    ceilings,
    allowances: ceilings.map(({ allowanceId }) => allowanceId),
    budgetsOfCalls: budgets.ofCalls,
    budget: credential.budget,
    expiresAtMs: credential.expiresAtMs,
    isTicket: credential.isTicket,
    token: credential.token,
    priceMultiplier: rational(workspace.numerator, workspace.denominator),
  }
}
