import { createHash } from 'node:crypto'
import { money } from '../http/routes/money.ts'
import { countsOf } from '../http/routes/usage.ts'
import type { Export } from '../identity/exports.ts'
import { listKeyPage } from '../identity/keys-of-account.ts'
import { membersOf } from '../identity/people/members.ts'
import { accountIn, type Place } from '../identity/people/place.ts'
import { listQuotaRequests } from '../identity/quota-requests.ts'
import { listBudgets } from '../identity/set-budgets.ts'
import { loadWorkspace, tierIn } from '../identity/tier-of-workspace.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { readAccountLife } from '../ledger/balance.ts'
import {
  BEGINNING,
  type Charge,
  type Entry,
  type PageOfAccount,
  type Position,
  pageOfCharges,
  pageOfEntries,
} from '../ledger/pages-of-account.ts'
import { CHARGES_KEPT_DAYS } from '../ledger/retention.ts'
import { readExactUsage } from '../ledger/usage.ts'
import { listAudit } from '../storage/audit.ts'
import type { AccountParts } from './parts.ts'
import { toldEntry } from './routes/audit.ts'
import { toldBudget } from './routes/budgets.ts'
import { toldKey } from './routes/keys.ts'
import { toldMember } from './routes/members.ts'
import { toldQuotaRequest } from './routes/quota-requests.ts'

/**
 * The lines of an export, read page by page while they are downloaded. Those of charges, entries, usage and the audit log are the same whenever that
 * is. The last line counts all of them and has their SHA-256, so that whoever has no such line knows that something is missing.
 */

type Parts = Pick<AccountParts, 'pool' | 'time'>
type Line = Readonly<Record<string, unknown>>

type Source = Parts & {
  readonly place: Place
  readonly export: Export
  /** Reads one page, when it is the turn of whoever downloads, and while they may. */
  readonly inTurn: <T>(read: () => Promise<T>) => Promise<T>
}

/** Rows in memory at a time. */
const PAGE = 500
const DAY_US = 86_400_000_000n
/** Of charges and of usage: of so many days a statement opens no more than some partitions. */
const WINDOW_DAYS = 31n

/** What is told as it is when it is downloaded. */
export const AS_DOWNLOADED = ['workspace', 'member', 'key', 'budget', 'quota_request'] as const

export async function* exportLines(source: Source): AsyncGenerator<string> {
  const { place, export: made } = source
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  const written = (lines: readonly Line[]) => {
    for (const { type } of lines) counts[String(type)] = (counts[String(type)] ?? 0) + 1
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    hash.update(text)
    return text
  }
  yield written([
    {
      ...{ type: 'export', format: 1, id: made.id, workspace_id: place.id, modes: modesOf(made) },
      ...{ as_of: made.asOf.toISOString(), as_downloaded: AS_DOWNLOADED },
    },
  ])
  for await (const page of pagesOf(source)) if (page.length > 0) yield written(page)
  yield `${JSON.stringify({ type: 'end', counts, sha256: hash.digest('hex') })}\n`
}

const MODES = ['live', 'test'] as const
const modesOf = ({ mode }: Export): readonly Mode[] => (mode === null ? MODES : [mode])

type Pages = AsyncGenerator<readonly Line[]>

async function* pagesOf(source: Source): Pages {
  yield* ofWorkspace(source)
  for (const mode of modesOf(source.export)) {
    const own = { ...source, mode, accountId: accountIn(source.place, mode) }
    yield* keys(own)
    yield* budgets(own)
    yield* walked(own, pageOfEntries, toldEntryOfLedger)
    yield* charges(own)
    yield* usage(own)
  }
  yield* auditLog(source)
}

async function* ofWorkspace({ pool, place, inTurn }: Source): Pages {
  const record = await inTurn(() => loadWorkspace(pool, place.id))
  if (record === undefined) return
  const { tier, limits } = tierIn(record)
  yield [
    {
      type: 'workspace',
      id: place.id,
      name: place.name,
      tier,
      limits,
      closes_at: place.closesAt?.toISOString() ?? null,
    },
  ]
  yield (await inTurn(() => membersOf(pool, place.id))).map((one) => ({ type: 'member', ...toldMember(one) }))
  const page = (after: Id | undefined) =>
    inTurn(() => listQuotaRequests(pool, { workspaceId: place.id, after, most: PAGE }))
  for await (const rows of backwards(undefined, page))
    yield rows.map((one) => ({ type: 'quota_request', ...toldQuotaRequest(one) }))
}

type OfAccount = Source & { readonly mode: Mode; readonly accountId: Id }

async function* keys({ pool, time, place, accountId, inTurn, export: { asOf } }: OfAccount): Pages {
  const page = (after: Id | undefined) =>
    inTurn(() => listKeyPage(pool, { workspaceId: place.id, accountId, after, most: PAGE }))
  for await (const rows of backwards(idBehind(asOf), page))
    yield rows.map((one) => ({ type: 'key', ...toldKey(one, time.nowMs()) }))
}

/** The first id of the next millisecond: those of what is made later are greater. */
function idBehind(at: Date): Id {
  const hex = (at.getTime() + 1).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}

async function* budgets({ pool, place, mode, inTurn }: OfAccount): Pages {
  const all = await inTurn(() => listBudgets(pool, place.id, mode))
  yield all.map((one) => ({ type: 'budget', ...toldBudget(one, mode) }))
}

async function* charges(own: OfAccount): Pages {
  for await (const { fromUs, untilUs } of windows(own))
    yield* walked(own, pageOfCharges, toldCharge, { after: { ...BEGINNING, us: fromUs }, untilUs })
}

async function* usage(own: OfAccount): Pages {
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
    yield lines.toSorted((one, other) => (`${one.day} ${one.operation}` < `${other.day} ${other.operation}` ? -1 : 1))
  }
}

/** From when there was an account, or from when charges are kept, up to the moment of the export. */
async function* windows({ pool, accountId, inTurn, export: { asOf, asOfUs } }: OfAccount) {
  const { createdAtMs } = await inTurn(() => readAccountLife(pool, accountId))
  const asOfDay = asOf.getTime() - (asOf.getTime() % 86_400_000)
  const keptMs = asOfDay - (CHARGES_KEPT_DAYS - 8) * 86_400_000
  const firstMs = Math.max(createdAtMs - (createdAtMs % 86_400_000), keptMs)
  for (let fromUs = BigInt(firstMs) * 1_000n; fromUs <= asOfUs; fromUs += WINDOW_DAYS * DAY_US) {
    const nextUs = fromUs + WINDOW_DAYS * DAY_US
    yield { fromUs, untilUs: nextUs > asOfUs ? asOfUs : nextUs - 1n }
  }
}

type Walk = { readonly after: Position; readonly untilUs: bigint }

async function* walked<Row extends { readonly us: bigint; readonly id: Id }>(
  { pool, accountId, mode, inTurn, export: { asOfUs } }: OfAccount,
  read: (pool: Parts['pool'], page: PageOfAccount) => Promise<readonly Row[]>,
  told: (row: Row, mode: Mode) => Line,
  { after, untilUs }: Walk = { after: BEGINNING, untilUs: asOfUs },
): Pages {
  let position = after
  for (;;) {
    const from = position
    const rows = await inTurn(() => read(pool, { accountId, after: from, untilUs, most: PAGE }))
    yield rows.map((row) => told(row, mode))
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) return
    position = { us: last.us, id: last.id }
  }
}

function toldEntryOfLedger({ id, kind, credited, charged, debt, corrects, entered_at: at }: Entry, mode: Mode): Line {
  return {
    ...{ type: 'entry', mode, id, kind, at: at.toISOString(), corrects },
    ...{ credited: money(credited), charged: money(charged), debt: money(debt) },
  }
}

function toldCharge(row: Charge, mode: Mode): Line {
  return {
    ...{ type: 'charge', mode, id: row.id, credential_id: row.credential_id, operation: row.operation },
    ...{ model: row.model, route: row.route, outcome: row.outcome, failed: row.failed },
    ...{ amount: money(row.amount), promotional: money(row.promo), value: money(row.value) },
    ...{ input_tokens: Number(row.input_tokens), output_tokens: Number(row.output_tokens) },
    ...{ cache_read_tokens: Number(row.cache_read_tokens), cache_write_tokens: Number(row.cache_write_tokens) },
    ...{ end_user_id: row.end_user, end_user: row.end_user_label, tags: row.tags ?? [] },
    ...{ begun_at: row.begun_at?.toISOString() ?? null, ended_at: row.ended_at.toISOString() },
  }
}

async function* auditLog({ pool, place, inTurn, export: { asOf } }: Source): Pages {
  const filter = { workspaceId: place.id, until: asOf }
  const page = (after: Id | undefined) => inTurn(() => listAudit(pool, filter, { after, most: PAGE }))
  for await (const rows of backwards(undefined, page))
    yield rows.map((row) => {
      // Who is a member changes; the actor does not.
      const { member_id: _, ...lasting } = toldEntry(row, new Map())
      return { type: 'audit', ...lasting }
    })
}

/** Pages of a list whose newest come first, each behind the one before. */
async function* backwards<Row extends { readonly id: Id }>(
  first: Id | undefined,
  read: (after: Id | undefined) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let after = first
  for (;;) {
    const rows = await read(after)
    yield rows
    if (rows.length < PAGE) return
    after = rows.at(-1)?.id
  }
}
