import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import { z } from 'zod'
import { limitsWithin } from '../catalogue/key-rates.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { rational } from '../kernel/rational.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Cache, createCache } from '../storage/cache.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Caller } from './caller.ts'
import { FAILURES_PER_SECOND, type FailuresByAddress } from './failures-by-address.ts'
import { type ParsedKey, parseKey } from './key-format.ts'
import { TERMS_ROW, TERMS_SELECT, termsIn } from './key-terms.ts'
import { scopesIn } from './scopes.ts'
import { loadWorkspace, tierIn, type WorkspaceRecord } from './tier-of-workspace.ts'

/**
 * Finds out who sent a credential. A right one is known from memory; whatever else comes is looked up once in PostgreSQL,
 * so that neither the answer nor the time that it takes tells whether the id exists, is revoked, or has another secret.
 */
export type Identify = (credential: Secret, address: string) => Caller | Promise<Caller>

type Parts = {
  readonly pool: pg.Pool
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  /** PostgreSQL's time, by which keys expire. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly metrics: Pick<Metrics, 'cacheLoads'>
  readonly failures: FailuresByAddress
}

const MAX_KEYS = 200_000
const MAX_WORKSPACES = 100_000

export function createIdentify({ pool, feed, clock, time, metrics, failures }: Parts): Identify {
  const shared = { feed, clock, metrics }
  const keys: Cache<KeyRecord> = createCache({
    ...shared,
    name: 'keys',
    topic: 'key',
    load: (id) => loadKey(pool, id),
    maxEntries: MAX_KEYS,
  })
  const workspaces: Cache<WorkspaceRecord> = createCache({
    ...shared,
    name: 'workspaces',
    topic: 'workspace',
    load: (id) => loadWorkspace(pool, id),
    maxEntries: MAX_WORKSPACES,
  })
  /**
   * Credentials that were right, by their hashes. Memory is asked for no other: to find a key there, or none, takes times that
   * differ.
   */
  const right = new LRUCache<string, true>({ max: MAX_KEYS })
  const callers = new WeakMap<KeyRecord, { readonly workspace: WorkspaceRecord; readonly caller: Caller }>()

  /** One caller for as long as neither key nor workspace changes: this is asked for every request. */
  function callerOf(key: KeyRecord, workspace: WorkspaceRecord): Caller {
    const known = callers.get(key)
    if (known?.workspace === workspace) return known.caller
    const caller = makeCaller(key, workspace)
    callers.set(key, { workspace, caller })
    return caller
  }

  /** One that was right a moment ago is looked up whatever else came from its address. */
  async function lookUpInTurn(given: ParsedKey, address: string): Promise<Caller> {
    if (right.has(printOf(given))) return lookUp(given, address)
    await failures.enter(address)
    try {
      const waitSeconds = failures.waitSeconds(address)
      if (waitSeconds > 0) throw tooManyFailures(waitSeconds)
      return await lookUp(given, address)
    } finally {
      failures.leave(address)
    }
  }

  async function lookUp(given: ParsedKey, address: string): Promise<Caller> {
    const key = await orUnavailable(keys.reload(given.id))
    const isRight = matches(given, key ?? NOBODY, time.nowMs())
    if (!isRight) right.delete(printOf(given))
    if (key === undefined || !isRight) throw refused(address)
    const workspace = await orUnavailable(workspaces.get(key.workspaceId))
    if (workspace === undefined) throw refused(address)
    right.set(printOf(given), true)
    return callerOf(key, workspace)
  }

  function refused(address: string): Fault {
    failures.note(address)
    return new Fault('invalid_credential')
  }

  return (credential, address) => {
    const given = parseKey(credential)
    // It cost nothing to see, so it counts for nothing: who mistypes a key must not keep out others behind the same address.
    if (given === undefined) throw new Fault('invalid_credential')
    const key = right.get(printOf(given)) && keys.peek(given.id)
    const workspace = key && workspaces.peek(key.workspaceId)
    if (key !== undefined && workspace !== undefined && matches(given, key, time.nowMs()))
      return callerOf(key, workspace)
    return lookUpInTurn(given, address)
  }
}

type Lock = Pick<KeyRecord, 'mode' | 'hash' | 'previousHash' | 'previousUntilMs' | 'expiresAtMs' | 'isRevoked'>

/** What a secret is compared with where there is none to compare with, so that the same work is done. */
const NOBODY: Lock = {
  mode: 'live',
  hash: Buffer.alloc(32),
  previousHash: null,
  previousUntilMs: null,
  expiresAtMs: null,
  isRevoked: true,
}

function matches(given: ParsedKey, key: Lock, nowMs: number): boolean {
  const isCurrent = timingSafeEqual(given.hash, key.hash)
  const isPrevious = timingSafeEqual(given.hash, key.previousHash ?? NOBODY.hash)
  const isInOverlap = nowMs < (key.previousUntilMs ?? 0)
  const isAlive = !key.isRevoked && nowMs < (key.expiresAtMs ?? Number.POSITIVE_INFINITY)
  return key.mode === given.mode && (isCurrent || (isPrevious && isInOverlap)) && isAlive
}

function printOf({ hash }: ParsedKey): string {
  return hash.toString('latin1')
}

function tooManyFailures(retryAfterSeconds: number): Fault {
  const detail = `Too many unknown keys from your network: the limit is ${FAILURES_PER_SECOND} per second. Retry in ${retryAfterSeconds} s.`
  return new Fault('rate_limit_exceeded', { detail, retryAfterSeconds })
}

/** That we can't look somebody up says nothing about them. */
async function orUnavailable<T>(look: Promise<T>): Promise<T> {
  try {
    return await look
  } catch (cause) {
    throw unavailable(cause)
  }
}

const keyRow = z
  .object({
    id: z.string(),
    workspace_id: z.string(),
    account_id: z.string(),
    mode: z.enum(['live', 'test']),
    hash: z.instanceof(Buffer),
    previous_hash: z.instanceof(Buffer).nullable(),
    previous_until: z.date().nullable(),
    expires_at: z.date().nullable(),
    is_revoked: z.boolean(),
    allowance_id: z.string().nullable(),
    ...TERMS_ROW,
  })
  .transform((row) => ({
    id: row.id,
    workspaceId: row.workspace_id,
    accountId: row.account_id,
    mode: row.mode satisfies Mode,
    hash: row.hash,
    previousHash: row.previous_hash,
    previousUntilMs: row.previous_until?.getTime() ?? null,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    isRevoked: row.is_revoked,
    allowanceId: row.allowance_id,
    terms: termsIn(row),
  }))

type KeyRecord = z.output<typeof keyRow>

/**
 * Asks for the last key up to this id, which is the one of this id where there is one. A row less to find, to send and to
 * parse would take less time, and tell that the id is unknown.
 */
async function loadKey(pool: pg.Pool, id: Id): Promise<KeyRecord | undefined> {
  const { rows } = await pool.query({
    name: 'load_key',
    text: `select k.id, k.workspace_id, c.account_id, a.mode, k.hash, k.previous_hash, k.previous_until, k.expires_at,
        k.revoked_at is not null or not c.active as is_revoked, k.allowance_id, ${TERMS_SELECT}
      from (select * from api_keys where id <= $1 order by id desc limit 1) k
      join credentials c on c.id = k.id join accounts a on a.id = c.account_id`,
    values: [id],
  })
  const key = rows[0] && keyRow.parse(rows[0])
  return key?.id === id ? key : undefined
}

function makeCaller(key: KeyRecord, workspace: WorkspaceRecord): Caller {
  const { tier, limits } = tierIn(workspace)
  const { rates, scopes, networks } = key.terms
  return {
    workspaceId: workspace.id,
    accountId: key.accountId,
    credentialId: key.id,
    mode: key.mode,
    tier,
    limits: limitsWithin(limits, rates),
    scopes: scopes && scopesIn(scopes),
    networks,
    allowances: key.allowanceId === null ? [] : [key.allowanceId],
    priceMultiplier: rational(workspace.numerator, workspace.denominator),
  }
}
