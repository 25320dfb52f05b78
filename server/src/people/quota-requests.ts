import { z } from 'zod'
import { betterOf, concurrencyFor, type TierLimits } from '../catalogue/tiers.ts'
import { loadWorkspace, type WorkspaceRecord } from '../identity/workspace-record.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, type Ids, isId } from '../kernel/ids.ts'
import { type By, type Change, record } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'
import { inTransaction, OpenTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { requireFewToday } from '../workspaces/few-a-day.ts'
import { agreedIn, tierIn } from '../workspaces/tier.ts'
import { grantTierWithin } from '../workspaces/workspaces.ts'
import { plain } from './names.ts'

/** A workspace asks for higher limits, and an operator decides. Each is told of what the other did, in the transaction of it. */

export const QUOTA_STATES = ['open', 'approved', 'refused', 'withdrawn'] as const
export type QuotaState = (typeof QUOTA_STATES)[number]

const COLUMNS = `id, workspace_id, person_id, requests_per_minute, tokens_per_minute, targets, use_case, state, note,
  granted_requests_per_minute, granted_tokens_per_minute, granted_concurrency, created_at, decided_at`

const row = z
  .object({
    id: z.string(),
    workspace_id: z.string(),
    person_id: z.string().nullable(),
    requests_per_minute: z.int(),
    tokens_per_minute: z.bigint().transform(Number),
    targets: z.array(z.string()),
    use_case: z.string(),
    state: z.enum(QUOTA_STATES),
    note: z.string().nullable(),
    granted_requests_per_minute: z.int().nullable(),
    granted_tokens_per_minute: z.bigint().transform(Number).nullable(),
    granted_concurrency: z.int().nullable(),
    created_at: z.date(),
    decided_at: z.date().nullable(),
  })
  .transform((one) => ({
    id: one.id,
    workspaceId: one.workspace_id,
    /** Who asked; null for somebody who is no more. */
    personId: one.person_id,
    requestsPerMinute: one.requests_per_minute,
    tokensPerMinute: one.tokens_per_minute,
    targets: one.targets,
    useCase: one.use_case,
    state: one.state,
    note: one.note,
    granted: grantedIn(one),
    createdAt: one.created_at,
    decidedAt: one.decided_at,
  }))

export type QuotaRequest = Readonly<z.output<typeof row>>

function grantedIn(one: {
  readonly granted_requests_per_minute: number | null
  readonly granted_tokens_per_minute: number | null
  readonly granted_concurrency: number | null
}): TierLimits | null {
  const { granted_requests_per_minute: requests, granted_tokens_per_minute: tokens, granted_concurrency: calls } = one
  if (requests === null || tokens === null || calls === null) return null
  return { requestsPerMinute: requests, tokensPerMinute: tokens, concurrency: calls }
}

export type NewQuotaRequest = Pick<
  QuotaRequest,
  'workspaceId' | 'requestsPerMinute' | 'tokensPerMinute' | 'targets' | 'useCase'
> & { readonly personId: Id }

type MakeParts = {
  readonly pool: Transactions
  readonly ids: Ids
  readonly sendMail: SendMail
  /** Null where operators are written to nowhere: they see it in their list. */
  readonly operatorMail: string | null
  /** Where people reach the pages. */
  readonly siteUrl: string
}

const nameRow = z.object({ name: z.string() })

/** Each is a mail to the operator, also where it is withdrawn and made again. */
export const REQUESTS_PER_DAY = 3
const MADE_TODAY = {
  table: 'quota_requests',
  at: 'created_at',
  most: REQUESTS_PER_DAY,
  what: `${REQUESTS_PER_DAY} quota requests per day for a workspace.`,
} as const

export function makeQuotaRequest(
  { pool, ids, sendMail, operatorMail, siteUrl }: MakeParts,
  by: By,
  asked: NewQuotaRequest,
): Promise<QuotaRequest> {
  const { workspaceId, personId, requestsPerMinute, tokensPerMinute } = asked
  // An operator reads them in a terminal and in a mail.
  const [targets, useCase] = [asked.targets.map(plain), plain(asked.useCase)]
  const id = ids.next()
  return inTransaction(pool, async (query) => {
    const { rows: named } = await query('select name from workspaces where id = $1 for no key update', [workspaceId])
    const { name } = nameRow.parse(named[0])
    await requireFewToday(query, workspaceId, MADE_TODAY)
    const { rows } = await query(
      `insert into quota_requests (id, workspace_id, person_id, requests_per_minute, tokens_per_minute, targets, use_case)
       values ($1, $2, $3, $4, $5, $6, $7) on conflict (workspace_id) where state = 'open' do nothing returning ${COLUMNS}`,
      [id, workspaceId, personId, requestsPerMinute, tokensPerMinute, targets, useCase],
    )
    const made = row.optional().parse(rows[0])
    if (made === undefined) throw new Fault('quota_request_open')
    const after = { requestsPerMinute, tokensPerMinute, targets }
    await record(query, by, { action: 'quota_request.made', of: workspaceId, subject: id, before: null, after })
    if (operatorMail !== null)
      await sendMail(query, {
        ...{ what: 'quota_asked', to: operatorMail, workspace: name, workspaceId, requestId: id },
        ...{ requestsPerMinute, tokensPerMinute, targets: targets.join(', ').slice(0, 300), useCase },
        siteUrl,
      })
    return made
  })
}

type Page = {
  /** Of all workspaces where it is left out. */
  readonly workspaceId?: Id | undefined
  readonly state?: QuotaState | undefined
  readonly after?: Id | undefined
  readonly most: number
}

/** The newest first. */
export async function listQuotaRequests(
  on: Transactions,
  { workspaceId, state, after, most }: Page,
): Promise<readonly QuotaRequest[]> {
  const values: unknown[] = [most]
  const conditions = [
    ...(workspaceId === undefined ? [] : [`workspace_id = $${values.push(workspaceId)}`]),
    ...(state === undefined ? [] : [`state = $${values.push(state)}`]),
    ...(after === undefined ? [] : [`id < $${values.push(after)}`]),
  ]
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const { rows } = await queryOn(on)(`select ${COLUMNS} from quota_requests ${where} order by id desc limit $1`, values)
  return z.array(row).parse(rows)
}

/** One; of the workspace, where that is named: that of another is as absent as one that never was. */
export async function findQuotaRequest(
  on: Transactions,
  { workspaceId = null, id }: { readonly workspaceId?: Id | null; readonly id: string },
): Promise<QuotaRequest> {
  if (!isId(id)) throw new Fault('resource_not_found')
  const { rows } = await queryOn(on)(
    `select ${COLUMNS} from quota_requests where id = $1 and ($2::uuid is null or workspace_id = $2)`,
    [id, workspaceId],
  )
  if (rows[0] === undefined) throw new Fault('resource_not_found')
  return row.parse(rows[0])
}

export function withdrawQuotaRequest({ pool }: { readonly pool: Transactions }, by: By, id: Id): Promise<QuotaRequest> {
  return inTransaction(pool, (query) => end(query, by, id, { state: 'withdrawn', note: null, granted: null }))
}

export type QuotaDecision =
  /** Limits that are left out are those that were asked for. One below what the workspace has changes nothing. */
  | { readonly isApproved: true; readonly note: string; readonly limits: Partial<TierLimits> }
  | { readonly isApproved: false; readonly note: string }

type DecideParts = {
  readonly pool: Transactions
  /** Null where nobody can be written to. */
  readonly sendMail: SendMail | null
  /** Where people reach the pages. */
  readonly siteUrl: string
}

/** An operator decides: the limits, the state and the letter to who asked, all or none. */
export function decideQuotaRequest(
  { pool, sendMail, siteUrl }: DecideParts,
  by: By,
  id: Id,
  decision: QuotaDecision,
): Promise<QuotaRequest & { readonly limitsBefore: TierLimits }> {
  return inTransaction(pool, async (query) => {
    const on = new OpenTransaction(query)
    const asked = await findQuotaRequest(on, { id })
    const workspace = await lockedRecord(on, asked.workspaceId)
    const limitsBefore = tierIn(workspace).limits
    const agreed = decision.isApproved ? raised(agreedIn(workspace), asked, decision.limits) : null
    const state = decision.isApproved ? 'approved' : 'refused'
    // One row of the audit log tells both: the decision, and the limits that it changed.
    const changed =
      agreed === null
        ? undefined
        : await grantTierWithin(query, asked.workspaceId, { tier: 'enterprise', limits: agreed })
    const granted = agreed && betterOf(limitsBefore, agreed)
    const decided = await end(query, by, id, { state, note: plain(decision.note), granted }, changed)
    if (sendMail !== null) await tellAsker(query, sendMail, decided, siteUrl)
    return { ...decided, limitsBefore }
  })
}

async function lockedRecord(on: OpenTransaction, workspaceId: Id): Promise<WorkspaceRecord> {
  await on.query('select from workspaces where id = $1 for no key update', [workspaceId])
  const workspace = await loadWorkspace(on, workspaceId)
  if (workspace === undefined) throw new Fault('resource_not_found')
  return workspace
}

/** What is agreed from now on: an approval raises limits, and lowers none that was agreed before. */
function raised(before: TierLimits | null, asked: QuotaRequest, given: Partial<TierLimits>): TierLimits {
  const requestsPerMinute = given.requestsPerMinute ?? asked.requestsPerMinute
  const tokensPerMinute = given.tokensPerMinute ?? asked.tokensPerMinute
  const concurrency = given.concurrency ?? concurrencyFor({ requestsPerMinute, tokensPerMinute })
  const agreed = { requestsPerMinute, tokensPerMinute, concurrency }
  return before === null ? agreed : betterOf(before, agreed)
}

type Ended = Pick<QuotaRequest, 'state' | 'note' | 'granted'>

/** Only one that is open is ended, once. */
async function end(
  query: Query,
  by: By,
  id: Id,
  { state, note, granted }: Ended,
  { before, after }: Pick<Change, 'before' | 'after'> = { before: null, after: null },
): Promise<QuotaRequest> {
  const { requestsPerMinute = null, tokensPerMinute = null, concurrency = null } = granted ?? {}
  const { rows } = await query(
    `update quota_requests set state = $2, note = $3, granted_requests_per_minute = $4, granted_tokens_per_minute = $5,
       granted_concurrency = $6, decided_at = clock_timestamp() where id = $1 and state = 'open' returning ${COLUMNS}`,
    [id, state, note, requestsPerMinute, tokensPerMinute, concurrency],
  )
  const ended = row.optional().parse(rows[0])
  if (ended === undefined) throw new Fault('quota_request_decided')
  await record(query, by, {
    ...{ action: `quota_request.${state}`, of: ended.workspaceId, subject: id },
    ...{ before: { state: 'open', ...before }, after: { state, ...after } },
  })
  return ended
}

const askerRow = z.object({ email: z.string(), workspace: z.string() })

async function tellAsker(query: Query, sendMail: SendMail, decided: QuotaRequest, siteUrl: string): Promise<void> {
  const { rows } = await query(
    'select people.email, workspaces.name as workspace from people, workspaces where people.id = $1 and workspaces.id = $2',
    [decided.personId, decided.workspaceId],
  )
  const asker = askerRow.optional().parse(rows[0])
  if (asker === undefined) return
  const { granted } = decided
  await sendMail(query, {
    ...{ what: 'quota_decided', to: asker.email, workspace: asker.workspace, isApproved: decided.state === 'approved' },
    ...{ note: decided.note ?? '', siteUrl },
    limits: granted && { ...granted },
  })
}
