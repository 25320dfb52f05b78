import type pg from 'pg'
import { z } from 'zod'
import { cursorOf, positionOf } from '../callers/request-filters.ts'
import { isCredentialOf } from '../identity/credential-names.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { LOOKED_AT, listRequests, type RequestFilter } from '../ledger/list-requests.ts'
import { listOpen } from '../ledger/open-requests.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, flag } from './action.ts'
import { callLines, endedView, openView, ownersOf, readCall } from './call-view.ts'
import { accountField, choiceOf, idField, idOf, LISTED, timeOf, unknown, wholeNumber } from './fields.ts'

const DAY_MS = 86_400_000
const SINCE_DAYS = 30
/** A call that begins meanwhile is among them, whichever clock is ahead. */
const AHEAD_MS = 60_000

const OUTCOMES = { posted: 'posted', voided: 'voided', running: 'running', unsettled: 'unsettled' } as const

const text = (shown: string, description: string) => field(shown, description, String).optional()
const cost = (description: string) => field('usd', description, costOf).optional()

const input = z.object({
  account: accountField()
    .optional()
    .meta({ shown: 'account', description: 'only calls of this customer account (default: all)' }),
  test: flag('only calls of test money (default: live money)'),
  key: idField('id', 'only calls of this key or grant, of either money (default: all)').optional(),
  operation: text('operation', 'only this operation, such as chat_completions (default: all)'),
  model: text('model', 'only this model, by the name that callers ask for (default: all)'),
  upstream: text('slot', 'only calls that went to this upstream, by its slot (default: all)'),
  outcome: field(
    'outcome',
    'posted (charged), voided (not charged), running, or unsettled (default: posted and voided)',
    (one) => choiceOf(one, OUTCOMES),
  ).optional(),
  failed: flag('only calls that failed (default: all)'),
  tag: field('name=value', 'only calls with this tag (default: all)', tagOf).optional(),
  minCost: cost('only calls that cost this much or more, less what was given back (default: all)'),
  maxCost: cost('only calls that cost this much or less (default: all)'),
  since: field(
    'time',
    `only calls that began at or after this time (default: ${SINCE_DAYS} days ago)`,
    timeOf,
  ).optional(),
  until: field('time', 'only calls that began before this time (default: now)', timeOf).optional(),
  limit: field('rows', `maximum number of calls on a page, up to ${LISTED} (default: 20)`, (one) =>
    wholeNumber(one, LISTED),
  ).default(20),
  after: field(
    'cursor',
    'go on after a page; its last line has the cursor (default: from the latest)',
    cursorIn,
  ).optional(),
})

type Input = z.output<typeof input>

const list = action({
  name: 'requests list',
  summary: `find calls of all customers, the latest first; a page looks at up to ${LOOKED_AT.toLocaleString('en-US')} calls`,
  effect: 'reads',
  positional: [],
  input,
  async run({ pool, clock }, given) {
    const filter = await filterOf(pool, given, clock.nowMs())
    const { outcome } = given
    if (outcome === 'running' || outcome === 'unsettled') return openPage(pool, filter, outcome === 'unsettled')
    const { rows, next } = await listRequests(pool, { ...filter, ...(outcome !== undefined && { outcome }) })
    const ownerOf = await ownersOf(pool, rows)
    return pageOf(
      rows.map((row) => ({ ...endedView(row), ...ownerOf(row) })),
      filter,
      next && cursorOf(next),
    )
  },
  lines: ({ requests, since, until, next, isCutShort }) => [
    ...requests.map(requestLine),
    ...(requests.length === 0 && !isCutShort
      ? [`No calls match that began from ${since.toISOString()} to ${until.toISOString()}.`]
      : []),
    ...(next === null ? [] : [moreLine(requests.length, isCutShort, next)]),
  ],
})

async function filterOf(pool: pg.Pool, given: Input, nowMs: number): Promise<RequestFilter> {
  const { account, test, key, operation, model, upstream, outcome, failed, tag, minCost, maxCost, limit, after } = given
  const isOpen = outcome === 'running' || outcome === 'unsettled'
  if (isOpen && (upstream !== undefined || failed))
    throw new Error('--upstream and --failed are known only of calls that have ended')
  const workspace =
    account === undefined ? undefined : await findWorkspace(pool, account).catch(unknown(`account ${account}`))
  const accountId = workspace && (test ? workspace.testAccountId : workspace.liveAccountId)
  if (accountId !== undefined && key !== undefined && !(await isCredentialOf(pool, accountId, key)))
    throw new Error(
      `${key} is no key and no grant of this account's ${test ? 'test' : 'live'} money: leave --account out, or change --test`,
    )
  const mode = test ? ('test' as const) : ('live' as const)
  return {
    byBeginning: true,
    sinceMs: given.since?.getTime() ?? nowMs - SINCE_DAYS * DAY_MS,
    untilMs: given.until?.getTime() ?? nowMs + AHEAD_MS,
    limit,
    ...(accountId !== undefined && { accountId }),
    ...(key !== undefined && { credentialIds: [key] }),
    ...(accountId === undefined && key === undefined && { ofEverybody: true, mode }),
    ...(operation !== undefined && { operation }),
    ...(model !== undefined && { model }),
    ...(upstream !== undefined && { route: upstream }),
    ...(failed && { failed }),
    ...(tag !== undefined && { tag }),
    ...(minCost !== undefined && { costAtLeast: minCost }),
    ...(maxCost !== undefined && { costAtMost: maxCost }),
    ...(after !== undefined && { after }),
  }
}

async function openPage(pool: pg.Pool, filter: RequestFilter, isUnsettled: boolean) {
  const { limit } = filter
  const found = await listOpen(pool, { ...filter, isUnsettled, limit: limit + 1 })
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  const ownerOf = await ownersOf(pool, rows)
  const next = last === undefined ? null : cursorOf({ endedUs: 0n, id: last.id })
  return pageOf(
    rows.map((row) => ({ ...openView(row), ...ownerOf(row) })),
    filter,
    next,
  )
}

type Owner = ReturnType<Awaited<ReturnType<typeof ownersOf>>>
type Listed = (ReturnType<typeof endedView> | ReturnType<typeof openView>) & Owner

function pageOf(requests: readonly Listed[], { sinceMs, untilMs, limit }: RequestFilter, next: string | null) {
  return {
    requests,
    since: new Date(sinceMs),
    until: new Date(untilMs),
    next,
    /** Whether there is more to look at although the page is not full. */
    isCutShort: next !== null && requests.length < limit,
  }
}

function moreLine(shown: number, isCutShort: boolean, next: string): string {
  if (!isCutShort) return `There may be more. For the next page, add --after ${next}`
  const found = shown === 0 ? 'none of them matches' : `${shown} of them match`
  return `Looked at ${LOOKED_AT.toLocaleString('en-US')} calls, and ${found}. There are earlier calls. To look at the next ones, add --after ${next}`
}

function requestLine(call: Listed): string {
  const { id, operation, model, begunAt, account, credentialId, madeBy } = call
  const at = begunAt ?? ('endedAt' in call ? call.endedAt : null)
  const customer = account === null ? call.ledgerAccountId : `${account.name} ${account.id}`
  const maker = madeBy === null ? (credentialId ?? '') : `${madeBy.kind} ${madeBy.name}`
  const money = 'held' in call ? `holds ${formatUsd(call.held)} USD` : `${formatUsd(call.cost)} USD`
  const went =
    'held' in call
      ? []
      : [
          call.upstream ?? 'no upstream',
          ...(call.status === null ? [] : [`status ${call.status}`]),
          ...(call.failed ? ['failed'] : []),
        ]
  return [
    at?.toISOString() ?? '',
    id,
    `${call.outcome} ${money}`,
    [operation, model].filter((one) => one !== null).join(' '),
    went.join(' '),
    customer,
    maker,
  ]
    .filter((part) => part !== '')
    .join('  ')
}

const show = action({
  name: 'requests show',
  summary:
    'show all that is known of a call: what its customer sees, what the upstream cost, attempts and ledger lines',
  effect: 'reads',
  positional: ['id'],
  input: z.object({
    id: field('call', 'id of the call', (one) =>
      idOf(one, ' of a call: the caller has it as X-Request-ID, and in errors as request_id'),
    ),
  }),
  async run({ pool }, { id }) {
    const call = await readCall(pool, id)
    if (call === undefined) throw new Error(missing(id))
    return call
  },
  lines: callLines,
})

function missing(id: Id): string {
  return `there is no call ${id}: a refused call leaves none (farebox keys refusals <key>), and an id of something else is explained by farebox ledger explain ${id}`
}

function costOf(given: string): Nanos {
  const amount = usd(given)
  if (amount < ZERO) throw new Error('must be 0 or more')
  return amount
}

function tagOf(given: string): string {
  if (!/^[^=]+=/.test(given)) throw new Error('must be written name=value')
  return given
}

function cursorIn(given: string) {
  const position = positionOf(given)
  if (position === undefined) throw new Error('must be the cursor that the last line of a page has')
  return position
}

export const requests = [list, show]
