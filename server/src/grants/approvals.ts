import type pg from 'pg'
import { z } from 'zod'
import type { Id, Ids } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { type By, record } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Sealed } from '../storage/reseal.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { changeOf } from './grants.ts'

/**
 * Calls that wait for a person. An approval is for one call: by its grant, its operation, its arguments and the most that it may cost. That it
 * is used once is decided twice: whoever is about to begin the call takes it here, and claims it with the hold.
 */

/** How long a call waits for a person, and can be made once it is allowed. */
export const APPROVAL_SECONDS = 15 * 60
/** Calls of one grant that wait at the same time. */
export const WAITING_MOST = 20

export type Reason = 'call_limit' | 'high_cost'

export type AskedCall = {
  readonly grantId: Id
  readonly operation: string
  readonly digest: Buffer
  /** What the person reads of it. Made only where they are asked. */
  readonly show: () => { readonly text: string; readonly isWhole: boolean }
  readonly most: Nanos
  readonly reason: Reason
  readonly requestId: Id
}

const row = z
  .object({
    ...{ id: z.string(), grant_id: z.string(), operation: z.string(), shown_whole: z.boolean() },
    ...{ most: z.bigint(), reason: z.enum(['call_limit', 'high_cost']), request_id: z.string() },
    ...{
      asked_at: z.date(),
      expires_at: z.date(),
      decided_at: z.date().nullable(),
      is_allowed: z.boolean().nullable(),
    },
    ...{ is_used: z.boolean(), is_over: z.boolean() },
  })
  .transform((columns) => ({
    id: columns.id,
    grantId: columns.grant_id,
    operation: columns.operation,
    isShownWhole: columns.shown_whole,
    most: nanos(columns.most),
    reason: columns.reason,
    requestId: columns.request_id,
    askedAt: columns.asked_at,
    expiresAt: columns.expires_at,
    state: stateOf(columns),
  }))

export type Approval = Readonly<z.output<typeof row>>
export type ApprovalState = 'waiting' | 'allowed' | 'refused' | 'used' | 'over'

type Stated = { readonly is_used: boolean; readonly is_over: boolean; readonly is_allowed: boolean | null }

function stateOf({ is_used, is_over, is_allowed }: Stated): ApprovalState {
  if (is_used) return 'used'
  if (is_over) return 'over'
  if (is_allowed === null) return 'waiting'
  return is_allowed ? 'allowed' : 'refused'
}

const SELECT = `select id, grant_id, operation, shown_whole, most, reason, request_id, asked_at, expires_at, decided_at,
  is_allowed, spent_at is not null as is_used, expires_at <= clock_timestamp() as is_over from approvals`

/** What a person has said of this call, or is to say; the newest that is still good and was not used. */
export async function findApproval(
  pool: pg.Pool,
  { grantId, digest }: Pick<AskedCall, 'grantId' | 'digest'>,
): Promise<Approval | undefined> {
  const { rows } = await pool.query({ text: `${SELECT} where ${OF_CALL}`, values: [grantId, digest] })
  return rows[0] && row.parse(rows[0])
}

const OF_CALL = `grant_id = $1 and digest = $2 and spent_at is null and expires_at > clock_timestamp() order by asked_at desc limit 1`

/** Lets a call wait for its person. Undefined where too many do already. The same call again at the same price is the same approval. */
export function askApproval(
  { pool, ids, seal }: { pool: pg.Pool; ids: Ids; seal: Seal },
  call: AskedCall,
): Promise<Approval | undefined> {
  const { grantId, operation, digest, show, most, reason, requestId } = call
  return inTransaction(pool, async (query) => {
    // One at a time for a grant, so that they can be counted.
    await query('select from grants where id = $1 for no key update', [grantId])
    const known = await query(`${SELECT} where ${OF_CALL}`, [grantId, digest])
    const found = known.rows[0] && row.parse(known.rows[0])
    if (found !== undefined && (found.state === 'refused' || found.most >= most)) return found
    const { rows: waiting } = await query(
      `select count(*)::integer as count from approvals where grant_id = $1 and decided_at is null and spent_at is null
         and expires_at > clock_timestamp()`,
      [grantId],
    )
    if (z.object({ count: z.int() }).parse(waiting[0]).count >= WAITING_MOST) return undefined
    const id = ids.next()
    const { text, isWhole } = show()
    const shown = seal.seal(new Secret(text), boundToApproval(id))
    await query(
      `insert into approvals (id, grant_id, operation, digest, shown, shown_whole, most, reason, request_id, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))`,
      [id, grantId, operation, digest, shown, isWhole, most, reason, requestId, APPROVAL_SECONDS],
    )
    return read(query, id)
  })
}

async function read(query: Query, id: Id): Promise<Approval | undefined> {
  const { rows } = await query(`${SELECT} where id = $1`, [id])
  return rows[0] && row.parse(rows[0])
}

/** By its id alone: whoever shows it sees to it that it is the person's own. */
export async function readApproval(pool: pg.Pool, id: Id): Promise<Approval | undefined> {
  return read((text, values) => pool.query(text, values === undefined ? [] : [...values]), id)
}

/** What the call is made of, for its person; undefined once it was decided about. */
export async function readShown(pool: pg.Pool, seal: Seal, id: Id): Promise<string | undefined> {
  const { rows } = await pool.query('select shown from approvals where id = $1', [id])
  const { shown } = rows[0] === undefined ? { shown: null } : shownRow.parse(rows[0])
  return shown === null ? undefined : seal.open(shown, boundToApproval(id)).reveal()
}

const shownRow = z.object({ shown: z.instanceof(Buffer).nullable() })

function boundToApproval(id: Id): string {
  return `shown of approval ${id}`
}

export const SEALED_APPROVALS: Sealed = {
  what: 'arguments of calls that wait for approval',
  table: 'approvals',
  key: 'id',
  column: 'shown',
  boundTo: boundToApproval,
}

/** When the same call was last made with an approval, as far as that is kept; null for never. */
export async function lastMade(pool: pg.Pool, id: Id): Promise<Date | null> {
  const { rows } = await pool.query(
    `select max(made.spent_at) as "madeAt" from approvals asked join approvals made
       on made.grant_id = asked.grant_id and made.digest = asked.digest where asked.id = $1`,
    [id],
  )
  return z.object({ madeAt: z.date().nullable() }).parse(rows[0]).madeAt
}

/** Calls that wait, and those that were decided about and are still good: the newest first. */
export async function listApprovals(pool: pg.Pool, grantIds: readonly Id[]): Promise<readonly Approval[]> {
  const { rows } = await pool.query(
    `${SELECT} where grant_id = any ($1) and spent_at is null and expires_at > clock_timestamp() order by asked_at desc limit 200`,
    [grantIds],
  )
  return z.array(row).parse(rows)
}

type Decision = { readonly id: Id; readonly personId: Id; readonly isAllowed: boolean }

/** What the person who gave the grant decides, once. False where it was decided before, has expired, or is not theirs, or its grant has ended. */
export function decideApproval(pool: pg.Pool, by: By, { id, personId, isAllowed }: Decision): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows } = await query(
      `update approvals set decided_at = clock_timestamp(), is_allowed = $2, shown = null
       where id = $1 and decided_at is null and spent_at is null and expires_at > clock_timestamp()
         and exists (select from grants where grants.id = grant_id and person_id = $3 and revoked_at is null)
       returning grant_id, operation, most`,
      [id, isAllowed, personId],
    )
    if (rows[0] === undefined) return false
    const { grant_id, operation, most } = decided.parse(rows[0])
    const facts = { approvalId: id, operation, mostUsd: formatUsd(nanos(most)) }
    const done = isAllowed ? 'call_allowed' : 'call_refused'
    await record(query, by, { ...changeOf(grant_id, done), before: null, after: facts })
    return true
  })
}

const decided = z.object({ grant_id: z.string(), operation: z.string(), most: z.bigint() })

/** Takes it for a call that is about to begin. False where another has it, or its time is over. */
export async function takeApproval(pool: pg.Pool, id: Id, callId: Id): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update approvals set used_by = $2, spent_at = clock_timestamp()
     where id = $1 and is_allowed and spent_at is null and expires_at > clock_timestamp()`,
    [id, callId],
  )
  return rowCount === 1
}

/** Nobody was asked for the call that had it. */
export async function giveBackApproval(pool: pg.Pool, id: Id, callId: Id): Promise<void> {
  await pool.query('update approvals set used_by = null, spent_at = null where id = $1 and used_by = $2', [id, callId])
}

/** So long after its end nobody looks at it any more; what was decided is in the audit log. */
const KEPT_SECONDS = 24 * 3_600

const PORTION = 500

export function pruneApprovals(pool: pg.Pool): Promise<number> {
  return inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `delete from approvals where id in (
         select id from approvals where expires_at < clock_timestamp() - make_interval(secs => $1) limit $2
         for update skip locked)`,
      [KEPT_SECONDS, most],
    )
    return rowCount ?? 0
  })
}

/** What nobody can decide about any more, nobody has to read. */
export function emptyApprovals(pool: pg.Pool): Promise<number> {
  return inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `update approvals set shown = null where id in (
         select id from approvals where shown is not null and expires_at < clock_timestamp() limit $1
         for update skip locked)`,
      [most],
    )
    return rowCount ?? 0
  })
}
