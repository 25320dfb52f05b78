import type pg from 'pg'
import { z } from 'zod'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import { type By, difference, factsRow, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { parseBaseUrl } from './address.ts'
import type { UpstreamKind } from './bindings.ts'
import { sealCredential } from './credential.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  readonly seal: Seal | null
  readonly allowPlainHttp?: boolean
  /** Who does it, for the audit log; the service itself where left out. */
  readonly by?: By
}

export type UpstreamSettings = {
  /** Of one that is there and is to be changed; a new one is made where left out. */
  readonly id?: Id
  readonly slot: string
  readonly mode: Mode
  readonly baseUrl: string
  readonly kind: UpstreamKind
  /** Null for none. Where left out, one that is there already stays, as long as the address is the same. */
  readonly credential?: Secret | null
  readonly segments?: Readonly<Record<string, string>>
  /** The lowest is asked first. */
  readonly priority?: number
  readonly weight?: number
  /** What our account there may send; null or left out where nobody counts. */
  readonly requestsPerMinute?: number | null
  /** How often it may be asked for tasks; null or left out where nobody counts. */
  readonly pollsPerSecond?: number | null
  /** Of a platform that asks its users: our client's id there, and where it asks. */
  readonly client?: { readonly id: string; readonly authorizeUrl: string } | null
  readonly enabled?: boolean
}

/** What operators see of an upstream. Its credential is never shown again. */
export type UpstreamListed = {
  readonly id: Id
  readonly slot: string
  readonly mode: Mode
  readonly baseUrl: string
  readonly kind: UpstreamKind
  readonly hasCredential: boolean
  readonly segments: Readonly<Record<string, string>>
  readonly priority: number
  readonly weight: number
  readonly requestsPerMinute: number | null
  readonly pollsPerSecond: number | null
  readonly enabled: boolean
  readonly changedAt: Date
}

function wholeNumber(least: number, most: number) {
  const rule = `must be a whole number from ${least} to ${most}`
  return z.int(rule).min(least, rule).max(most, rule)
}

const settings = z.object({
  slot: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,99}$/, 'must be lower-case letters, digits, _, . and -'),
  mode: z.enum(['live', 'test']),
  kind: z.enum(['native', 'managed']),
  baseUrl: z.string().max(2_000, 'must have at most 2,000 characters'),
  segments: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_]{0,62}$/),
      z.string().regex(/^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,200}$/, 'must be one segment of a path'),
      { error: 'must have a name of lower-case letters, digits and _' },
    )
    .refine((given) => Object.keys(given).length <= 50, 'must be at most 50'),
  priority: wholeNumber(-1_000, 1_000),
  weight: wholeNumber(1, 1_000_000),
  requestsPerMinute: wholeNumber(1, 1_000_000_000).nullable(),
  pollsPerSecond: wholeNumber(1, 1_000_000).nullable(),
  client: z
    .object({
      id: z.string().regex(/^[!-~]{1,200}$/, 'must be 1 to 200 visible characters'),
      authorizeUrl: z
        .url({ protocol: /^https?$/, error: 'must be an address' })
        .max(2_000, 'must have at most 2,000 characters'),
    })
    .nullable(),
  enabled: z.boolean(),
})

/** Makes or changes an upstream, whole. Every process asks it as it is now within a second; calls under way go on. */
export async function saveUpstream(parts: Parts, given: UpstreamSettings): Promise<Id> {
  const { segments = {}, priority = 0, weight = 1, requestsPerMinute = null, enabled = true } = given
  const { pollsPerSecond = null, client = null } = given
  const parsed = parse({ ...given, segments, priority, weight, requestsPerMinute, pollsPerSecond, client, enabled })
  const origin = originOf(parsed.baseUrl, parts)
  const id = given.id ?? parts.ids.next()
  await inTransaction(parts.pool, async (query) => {
    const before = await lock(query, id)
    if (given.id !== undefined && before === undefined) throw noSuchUpstream(id)
    const credential = credentialToKeep(parts, given, { id, origin }, before)
    await query(
      `insert into upstreams
         (id, slot, mode, base_url, kind, credential, segments, priority, weight, requests_per_minute, enabled,
          polls_per_second, client_id, authorize_url)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
       on conflict (id) do update set slot = excluded.slot, mode = excluded.mode, base_url = excluded.base_url,
         kind = excluded.kind, credential = excluded.credential, segments = excluded.segments,
         priority = excluded.priority, weight = excluded.weight,
         requests_per_minute = excluded.requests_per_minute, enabled = excluded.enabled,
         polls_per_second = excluded.polls_per_second, client_id = excluded.client_id,
         authorize_url = excluded.authorize_url, changed_at = clock_timestamp()`,
      [
        ...[id, parsed.slot, parsed.mode, parsed.baseUrl, parsed.kind, credential, segments, priority, weight],
        ...[requestsPerMinute, enabled, pollsPerSecond, client?.id, client?.authorizeUrl],
      ],
    )
    await recordSaved(query, parts.by, { id, before, hasNewCredential: credential !== (before?.credential ?? null) })
  })
  return id
}

type Saved = { readonly id: Id; readonly before: Before | undefined; readonly hasNewCredential: boolean }

/** Of a credential only whether there is one, and whether it is another. */
async function recordSaved(query: Query, by: By = SERVICE, { id, before, hasNewCredential }: Saved): Promise<void> {
  const after = await readFacts(query, id)
  const isReplaced = before?.facts.hasCredential === true && after.hasCredential === true && hasNewCredential
  const changed = difference(before?.facts ?? null, isReplaced ? { ...after, credential: 'replaced' } : after)
  const action = before === undefined ? 'upstream.created' : 'upstream.changed'
  await record(query, by, { action, subject: id, ...changed })
}

/** What the audit log has of an upstream. Of an address only where it leads to: the rest may be anything. */
const FACTS = `slot, mode, base_url as "baseUrl", kind, credential is not null as "hasCredential", segments, priority, weight,
  requests_per_minute as "requestsPerMinute", polls_per_second as "pollsPerSecond", enabled, client_id as "clientId",
  substring(authorize_url from '^https?://(?:[^/?#@]*@)?([^?#]*)') as "authorizeUrl"`

async function readFacts(query: Query, id: Id): Promise<z.output<typeof factsRow>> {
  const { rows } = await query(`select ${FACTS} from upstreams where id = $1`, [id])
  return factsRow.parse(rows[0])
}

/** One that has tasks or linked accounts of ours is kept: nobody could ask it for them, or tell it of their end. */
export async function removeUpstream({ pool, by = SERVICE }: Pick<Parts, 'pool' | 'by'>, id: Id): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rows } = await query(
      `delete from upstreams where id = $1 and not exists (select from tasks where upstream_id = $1 and ended_at is null)
         and not exists (select from link_sessions where upstream_id = $1) returning ${FACTS}`,
      [id],
    )
    if (rows.length === 0) throw await whyKept(query, id)
    await record(query, by, { action: 'upstream.removed', subject: id, before: factsRow.parse(rows[0]), after: null })
  })
}

async function whyKept(query: Query, id: Id): Promise<Fault> {
  const { rows } = await query('select from upstreams where id = $1', [id])
  if (rows.length === 0) return noSuchUpstream(id)
  return invalidRequest(
    `The upstream ${id} has open tasks or linked accounts. Turn it off, and remove it when it has none.`,
  )
}

/** Whether calls are given to it. What it was given before goes on. */
export async function turnUpstream(
  { pool, by = SERVICE }: Pick<Parts, 'pool' | 'by'>,
  id: Id,
  enabled: boolean,
): Promise<void> {
  await inTransaction(pool, async (query) => {
    const before = await lock(query, id)
    if (before === undefined) throw noSuchUpstream(id)
    await query('update upstreams set enabled = $2, changed_at = clock_timestamp() where id = $1', [id, enabled])
    const changed = difference(before.facts, { ...before.facts, enabled })
    await record(query, by, { action: 'upstream.changed', subject: id, ...changed })
  })
}

const LIST_LIMIT = 1_000

/** At most a thousand, of one slot where it is named. */
export async function listUpstreams({ pool }: Pick<Parts, 'pool'>, slot?: string): Promise<readonly UpstreamListed[]> {
  const { rows } = await pool.query(
    `select id, slot, mode, base_url as "baseUrl", kind, credential is not null as "hasCredential", segments, priority,
       weight, requests_per_minute as "requestsPerMinute",
       polls_per_second as "pollsPerSecond", enabled, changed_at as "changedAt"
     from upstreams where $1::text is null or slot = $1 order by slot, mode, priority, id limit $2`,
    [slot ?? null, LIST_LIMIT],
  )
  return z.array(listed).parse(rows)
}

const listed = settings.omit({ client: true }).extend({
  id: z.string(),
  hasCredential: z.boolean(),
  segments: z.record(z.string(), z.string()),
  changedAt: z.date(),
})

const CREDENTIAL = /^[!-~](?:[ -~]{0,4094}[!-~])?$/

type Before = {
  readonly origin: string
  readonly credential: Buffer | null
  readonly facts: z.output<typeof factsRow>
}

async function lock(query: Query, id: Id): Promise<Before | undefined> {
  const { rows } = await query('select base_url, credential from upstreams where id = $1 for update', [id])
  if (rows[0] === undefined) return undefined
  const { base_url, credential } = z
    .object({ base_url: z.string(), credential: z.instanceof(Buffer).nullable() })
    .parse(rows[0])
  return { origin: URL.parse(base_url)?.origin ?? '', credential, facts: await readFacts(query, id) }
}

function credentialToKeep(
  { seal }: Parts,
  { credential }: UpstreamSettings,
  holder: { readonly id: Id; readonly origin: string },
  before: Before | undefined,
): Buffer | null {
  if (credential === null) return null
  if (credential !== undefined && !CREDENTIAL.test(credential.reveal()))
    throw invalidRequest(
      'credential: must be one line of at most 4,096 printable characters, because it is sent in a header.',
    )
  if (credential !== undefined) return sealCredential(seal, credential, holder)
  if (before === undefined || before.credential === null) return null
  if (before.origin === holder.origin) return before.credential
  throw invalidRequest('The credential was given for another address. Give it again, or give none.')
}

function parse(given: unknown): z.output<typeof settings> {
  const parsed = settings.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalidRequest(`${issue?.path.join('.')}: ${issue?.message}.`)
}

function originOf(baseUrl: string, { allowPlainHttp = false }: Parts): string {
  try {
    return parseBaseUrl(baseUrl, { allowPlainHttp }).origin
  } catch (error) {
    throw invalidRequest(
      error instanceof RangeError
        ? error.message
        : 'The base URL is not valid. Give one such as https://api.example.com.',
    )
  }
}

function noSuchUpstream(id: Id): Fault {
  return new Fault('resource_not_found', { detail: `There is no upstream ${id}.` })
}
