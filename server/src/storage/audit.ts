import type pg from 'pg'
import { z } from 'zod'
import { type Id, NO_ID } from '../kernel/ids.ts'
import { createScrubber } from '../telemetry/scrubber.ts'
import type { Place } from './steps.ts'
import type { Query } from './transaction.ts'

/** The audit log: one row for every change that somebody makes, in the transaction of the change. Rows are only ever added, and names erased. */

/** Who: an operator by the name of the system, a member by the id of the key, a worker by the id of its process. */
export type Actor = `${'operator' | 'member' | 'worker' | 'service'} ${string}`

/** From where, such as the host of a command line or the address of a request. */
export type Origin = Readonly<Record<string, string>>

export type By = { readonly actor: Actor; readonly origin: Origin }

/** Whether it is an operator, whose settings members neither change nor remove. */
export function isOperator({ actor }: By): boolean {
  return actor.startsWith('operator ')
}

/** Whoever does not say who they are: nothing is changed without a row for that. */
export const SERVICE: By = { actor: 'service farebox', origin: {} }

/**
 * Never a secret, nor anything that one could be made from: no hash, nothing sealed. No e-mail address either, since what is
 * here can't be deleted.
 */
export type Facts = { readonly [name: string]: Fact | undefined }
type Fact = string | number | boolean | null | readonly Fact[] | Facts

/** A row of small values as it is, whatever it has: what is removed need not be understood. */
export const factsRow = z.record(z.string(), z.json())

export type Change = {
  /** What was changed and how, such as `key.revoked`. */
  readonly action: `${string}.${string}`
  /** Whose it is: the id of a workspace, or of an account or a key of one. */
  readonly of?: Id
  /** The id or the name of what was changed. */
  readonly subject: string
  /** Null for what was not there. */
  readonly before: Facts | null
  /** Null for what is no more. */
  readonly after: Facts | null
}

/** Writes down who changed what. */
export async function record(query: Query, { actor, origin }: By, change: Change): Promise<void> {
  const { action, of = null, subject, before, after } = change
  await query(
    `insert into audit (actor, action, workspace_id, subject, before, after, origin)
     values ($1, $2, workspace_of(one => $3), $4, $5, $6, $7)`,
    [actor, action, of, textOf(subject), jsonOf(before), jsonOf(after), jsonOf(origin)],
  )
}

/** People name things after what they should not: whatever looks like a credential is taken out. */
const scrub = createScrubber([])

function jsonOf(facts: Facts | null): string | null {
  return facts === null ? null : JSON.stringify(facts, storable)
}

/**
 * PostgreSQL takes neither half a character nor a zero byte, and no change may fail for the sake of its record. What looks like a
 * credential is taken out of the texts themselves: in JSON, where one may begin with the end of an escape, it would break that.
 */
function storable(_: string, value: unknown): unknown {
  if (typeof value === 'string') return textOf(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [textOf(name), inner]))
}

function textOf(text: string): string {
  return scrub(text).toWellFormed().replaceAll('\0', '\ufffd')
}

/** What differs between two states of something. Null for what was not there, and for what is no more: then all of the other. */
export function difference(before: Facts | null, after: Facts | null): Pick<Change, 'before' | 'after'> {
  if (before === null || after === null) return { before, after }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => JSON.stringify(before[name] ?? null) !== JSON.stringify(after[name] ?? null),
  )
  const differing = (facts: Facts) => Object.fromEntries(names.map((name) => [name, facts[name] ?? null]))
  return { before: differing(before), after: differing(after) }
}

const PORTION = 1_000

export function namesStatement(workspaceId: Id, [at = '-infinity', id = NO_ID]: Place) {
  return {
    text: `select id, at::text, coalesce(before ? 'name', false) or coalesce(after ? 'name', false) or detail ? 'name' as named from audit
      where workspace_id = $1 and (at, id) > ($2::timestamptz, $3) order by at, id limit $4`,
    values: [workspaceId, at, id, PORTION],
  }
}

const namedRow = z.object({ id: z.string(), at: z.string(), named: z.boolean() })

/** Of a workspace that is closed: what it and its keys were called, which can be the name of a person. A portion, and where the next one begins. */
export async function eraseNames(pool: pg.Pool, workspaceId: Id, after: Place | null): Promise<Place | null> {
  const { rows } = await pool.query(namesStatement(workspaceId, after ?? []))
  const looked = z.array(namedRow).parse(rows)
  const named = looked.flatMap((row) => (row.named ? [row.id] : []))
  if (named.length > 0)
    await pool.query(
      'update audit set before = without_name(before), after = without_name(after), detail = without_name(detail) where id = any ($1)',
      [named],
    )
  const last = looked.at(-1)
  return last === undefined || looked.length < PORTION ? null : [last.at, last.id]
}

export type AuditFilter = {
  readonly workspaceId?: Id | undefined
  /** Whole, or as far as a dot: `key` finds `key.revoked`. */
  readonly action?: string | undefined
  /** Whole, or the kind alone: `operator` finds `operator root`. */
  readonly actor?: string | undefined
  readonly subject?: string | undefined
  readonly since?: Date | undefined
  readonly until?: Date | undefined
}

const entry = z
  .object({
    id: z.string(),
    at: z.date(),
    actor: z.string(),
    action: z.string(),
    workspace_id: z.string().nullable(),
    subject: z.string(),
    before: factsRow.nullable(),
    after: factsRow.nullable(),
    origin: z.record(z.string(), z.string()),
  })
  .transform(({ workspace_id: workspaceId, ...row }) => ({ ...row, workspaceId }))

export type AuditEntry = z.output<typeof entry>

/** The newest first, at most so many; those behind the one with the id `after`, where it is given. */
export async function listAudit(
  pool: pg.Pool,
  { workspaceId, action, actor, subject, since, until }: AuditFilter,
  { after, most }: { readonly after?: Id | undefined; readonly most: number },
): Promise<readonly AuditEntry[]> {
  // What the first release wrote has one detail instead of a before and an after. An action is a kind and a word, with a dot between: each has an index.
  const { rows } = await pool.query(
    `select id, at, actor, action, workspace_id, subject, before, coalesce(after, nullif(detail, '{}')) as after, origin
     from audit
     where ($1::uuid is null or workspace_id = $1)
       and ${action?.includes('.') === true ? 'action = $2' : "($2::text is null or split_part(action, '.', 1) = $2)"}
       and ($3::text is null or actor = $3 or starts_with(actor, $3 || ' '))
       and ($4::text is null or subject = $4)
       and ($5::timestamptz is null or at >= $5)
       and ($6::timestamptz is null or at < $6)
       and ($7::uuid is null or (at, id) < (
         select last.at, last.id from audit last where last.id = $7 and ($1::uuid is null or last.workspace_id = $1)))
     order by at desc, id desc limit $8`,
    [workspaceId, action, actor, subject, since, until, after, most],
  )
  return z.array(entry).parse(rows)
}
