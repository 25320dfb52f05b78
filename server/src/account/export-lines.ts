import { createHash } from 'node:crypto'
import { money } from '../api/money.ts'
import { listBudgets } from '../budgets/set-budgets.ts'
import { countsOf } from '../callers/usage.ts'
import { listGrantPage } from '../grants/grants.ts'
import { listKeyPage } from '../identity/keys-of-account.ts'
import type { ListedKey } from '../identity/listed-keys.ts'
import { loadWorkspace } from '../identity/workspace-record.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { BEGINNING, type Entry, pageOfEntries } from '../ledger/pages-of-account.ts'
import { readExactUsage } from '../ledger/usage.ts'
import type { Session } from '../links/sessions.ts'
import { membersOf } from '../people/members.ts'
import { accountIn, type Place } from '../people/membership.ts'
import { listQuotaRequests, type QuotaRequest } from '../people/quota-requests.ts'
import { type AuditEntry, listAudit } from '../storage/audit.ts'
import type { SeenTask } from '../tasks/tasks.ts'
import type { Export } from '../workspaces/exports.ts'
import { tierIn } from '../workspaces/tier.ts'
import { charges, windows } from './export-charges.ts'
import { inPortions, ofList, type Portions } from './export-portions.ts'
import { toldEntryOfLedger, toldGrant, toldTask } from './export-told.ts'
import type { AccountParts } from './parts.ts'
import { toldEntry } from './routes/audit.ts'
import { toldBudget } from './routes/budgets.ts'
import { toldKey } from './routes/keys.ts'
import { toldLink } from './routes/links.ts'
import { toldInvitation, toldMember } from './routes/members.ts'
import { toldQuotaRequest } from './routes/quota-requests.ts'

/**
 * The lines of an export, read page by page while they are downloaded. Those of charges, entries, usage and the audit log are the same whenever that
 * is. The last line counts all of them and has their SHA-256, so that whoever has no such line knows that something is missing.
 */

type Source = Pick<AccountParts, 'pool' | 'time' | 'tasks' | 'links' | 'people'> & {
  readonly place: Place
  readonly export: Export
  /** Reads one page, when it is the turn of whoever downloads, and while they may. */
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>
}

/** What is told as it is when it is downloaded. */
export const AS_DOWNLOADED = [
  ...(['workspace', 'member', 'invitation', 'quota_request', 'key', 'grant', 'budget', 'link', 'task'] as const),
] as const

export async function* exportLines(source: Source): AsyncGenerator<string> {
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  for await (const lines of portionsOf(source)) {
    if (lines.length === 0) continue
    for (const { type } of lines) counts[type] = (counts[type] ?? 0) + 1
    const text = lines.map((line) => line.text).join('')
    hash.update(text)
    yield text
  }
  yield `${JSON.stringify({ type: 'end', counts, sha256: hash.digest('hex') })}\n`
}

const MODES = ['live', 'test'] as const
const modesOf = ({ mode }: Export): readonly Mode[] => (mode === null ? MODES : [mode])

/** Whether it tells of what is about the whole workspace, which a client for test money does not see. */
const isOfWorkspace = ({ mode }: Export) => mode !== 'test'

async function* portionsOf(source: Source): Portions {
  const { place, export: made } = source
  yield* ofList([
    {
      ...{ type: 'export', format: 1, id: made.id, workspace_id: place.id, modes: modesOf(made) },
      ...{ as_of: made.asOf.toISOString(), as_downloaded: AS_DOWNLOADED },
    },
  ])
  yield* ofWorkspace(source)
  for (const mode of modesOf(source.export)) {
    const own = { ...source, mode, accountId: accountIn(source.place, mode) }
    yield* keys(own)
    yield* grants(own)
    yield* budgets(own)
    yield* links(own)
    yield* tasks(own)
    yield* entries(own)
    yield* charges(own)
    yield* usage(own)
  }
  if (isOfWorkspace(made)) yield* auditLog(source)
}

async function* ofWorkspace({ pool, people, place, inTurn, export: made }: Source): Portions {
  const record = await inTurn(() => loadWorkspace(pool, place.id))
  if (record === undefined) return
  const { id, name, closesAt } = place
  const { tier, limits } = tierIn(record)
  yield* ofList([{ type: 'workspace', id, name, tier, limits, closes_at: closesAt?.toISOString() ?? null }])
  const members = await inTurn(() => membersOf(pool, place.id))
  yield* ofList(members.map((one) => ({ type: 'member', ...toldMember(one) })))
  const invitations = await inTurn(() => people.invitationsOf(place.id))
  yield* ofList(invitations.map((one) => ({ type: 'invitation', ...toldInvitation(one) })))
  if (!isOfWorkspace(made)) return
  yield* inPortions<QuotaRequest>(
    ({ after, most }) => inTurn(() => listQuotaRequests(pool, { workspaceId: place.id, after: after?.id, most })),
    (one) => ({ type: 'quota_request', ...toldQuotaRequest(one) }),
  )
}

type OfAccount = Source & { readonly mode: Mode; readonly accountId: Id }

function keys({ pool, time, place, accountId, inTurn, export: { asOf } }: OfAccount): Portions {
  const whose = { workspaceId: place.id, accountId }
  return inPortions<ListedKey>(
    ({ after, most }) => inTurn(() => listKeyPage(pool, { ...whose, after: after?.id ?? idBehind(asOf), most })),
    (one) => ({ type: 'key', ...toldKey(one, time.nowMs()) }),
  )
}

function grants({ pool, place, accountId, inTurn, export: { asOf } }: OfAccount): Portions {
  const whose = { workspaceId: place.id, accountId }
  return inPortions(
    ({ after, most }) => inTurn(() => listGrantPage(pool, { ...whose, after: after?.id ?? idBehind(asOf), most })),
    toldGrant,
  )
}

/** The first id of the next millisecond: those of what is made later are greater. */
function idBehind(at: Date): Id {
  const hex = (at.getTime() + 1).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}

async function* budgets({ pool, place, mode, inTurn }: OfAccount): Portions {
  const all = await inTurn(() => listBudgets(pool, place.id, mode))
  yield* ofList(all.map((one) => ({ type: 'budget', ...toldBudget(one, mode) })))
}

function links({ links: { listOfAccount }, mode, accountId, inTurn }: OfAccount): Portions {
  return inPortions<Session>(
    ({ after, most }) => inTurn(() => listOfAccount(accountId, { after: after?.credentialId ?? null, most })),
    (one) => ({ type: 'link', mode, ...toldLink(one) }),
  )
}

function tasks({ tasks: { listOfAccount }, mode, accountId, inTurn }: OfAccount): Portions {
  return inPortions<SeenTask>(
    async ({ after, most }) => {
      const page = { limit: most, ...(after !== undefined && { before: after.resource.output.task_id }) }
      return (await inTurn(() => listOfAccount(accountId, page))).tasks
    },
    (one) => toldTask(one, mode),
  )
}

function entries({ pool, accountId, mode, inTurn, export: { asOfUs: untilUs } }: OfAccount): Portions {
  return inPortions<Entry>(
    ({ after = BEGINNING, most }) => inTurn(() => pageOfEntries(pool, { accountId, after, untilUs, most })),
    (row) => toldEntryOfLedger(row, mode),
  )
}

async function* usage(own: OfAccount): Portions {
  const { pool, accountId, mode, inTurn } = own
  for await (const { fromUs, untilUs } of windows(own)) {
    // Whole seconds: what came within the last one is among the charges.
    const [startSeconds, endSeconds] = [Number(fromUs / 1_000_000n), Number((untilUs + 1n) / 1_000_000n)]
    const window = { scope: { accountId }, startSeconds, endSeconds, nowSeconds: endSeconds }
    const { groups = [] } = await inTurn(() => readExactUsage(pool, { ...window, groupBy: 'operation' }))
    const lines = groups.flatMap(({ kind, value, buckets }) =>
      buckets.map((sums) => ({
        ...{ type: 'usage', mode, day: new Date(sums.startSeconds * 1_000).toISOString().slice(0, 10) },
        ...{ kind, operation: value, ...countsOf(sums), value: money(sums.value), charged: money(sums.charged) },
      })),
    )
    yield* ofList(
      lines.toSorted((one, other) => (`${one.day} ${one.operation}` < `${other.day} ${other.operation}` ? -1 : 1)),
    )
  }
}

function auditLog({ pool, place, inTurn, export: { asOf } }: Source): Portions {
  const filter = { workspaceId: place.id, until: asOf }
  return inPortions<AuditEntry>(
    ({ after, most }) => inTurn(() => listAudit(pool, filter, { after: after?.id, most })),
    (row) => {
      // Who is a member changes; the actor does not.
      const { member_id: _, ...lasting } = toldEntry(row, new Map())
      return { type: 'audit', ...lasting }
    },
  )
}
