import type pg from 'pg'
import { credentialNames } from '../identity/credential-names.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, nanos, ZERO } from '../kernel/money.ts'
import { entriesAbout, entryLine, taskOfCall } from '../ledger/explain.ts'
import { findOpen, type OpenRequest } from '../ledger/open-requests.ts'
import { type EndedRequest, findEnded } from '../ledger/requests.ts'
import { termsInText } from '../pricing/terms.ts'
import { workspacesOfAccounts } from '../workspaces/account-owners.ts'

/** All that is known of a call: what its customer is shown, and what the upstream cost, who was asked, and the lines of the ledger. */

type Row = Pick<
  EndedRequest,
  'account_id' | 'credential_id' | 'operation' | 'end_user' | 'end_user_label' | 'tags' | 'begun_at'
>

/** Whose calls are, by names. */
export async function ownersOf(pool: pg.Pool, rows: readonly Pick<Row, 'account_id' | 'credential_id'>[]) {
  const [workspaces, names] = await Promise.all([
    workspacesOfAccounts(pool, [...new Set(rows.map((row) => row.account_id))]),
    credentialNames(pool, [...new Set(rows.flatMap((row) => row.credential_id ?? []))]),
  ])
  return (row: Pick<Row, 'account_id' | 'credential_id'>) => ({
    account: workspaces.get(row.account_id) ?? null,
    ledgerAccountId: row.account_id,
    credentialId: row.credential_id,
    madeBy: row.credential_id === null ? null : (names.get(row.credential_id) ?? null),
  })
}

function sharedOf(row: Row) {
  return {
    operation: row.operation,
    endUser: row.end_user === null ? null : { id: row.end_user, label: row.end_user_label },
    tags: row.tags ?? [],
    begunAt: row.begun_at,
  }
}

/** One that runs, or whose outcome nobody knows. */
export function openView(row: OpenRequest) {
  return {
    id: row.id,
    outcome: row.unsettled_at === null ? ('running' as const) : ('unsettled' as const),
    model: row.asked_model,
    ...sharedOf(row),
    begunAt: row.begun_at,
    held: row.amount,
    /** Null of a task, which any worker ends. */
    processId: row.owner_id,
    unsettledAt: row.unsettled_at,
  }
}

export function endedView(row: EndedRequest) {
  return {
    id: row.id,
    outcome: row.outcome,
    model: row.model ?? row.detail?.model ?? null,
    ...sharedOf(row),
    endedAt: row.ended_at,
    failed: row.failed,
    status: row.detail?.status ?? null,
    upstream: row.route,
    charged: row.amount,
    givenBack: row.given_back,
    cost: nanos(row.amount - row.given_back),
  }
}

/** What only a whole record has. */
function wholeOf(row: EndedRequest) {
  const { detail } = row
  return {
    executed: row.executed || row.outcome === 'posted',
    tokens: {
      input: Number(row.input_tokens),
      output: Number(row.output_tokens),
      cacheRead: Number(row.cache_read_tokens),
      cacheWrite: Number(row.cache_write_tokens),
    },
    promotional: row.promo,
    publishedValue: row.value,
    held: row.held,
    overrun: row.overrun,
    upstreamCost: row.upstream_cost,
    margin: nanos(row.amount - row.given_back - row.upstream_cost),
    priceVersion: detail?.price_version ?? null,
    formula: detail?.formula ?? null,
    evidence: new Map(Object.entries(detail?.evidence ?? {})),
    holdSteps: detail?.hold ?? [],
    balanceAfterUsd: detail?.balance_after ?? null,
    timeline: detail?.timeline ?? {},
    firstByteMs: detail?.first_byte_ms ?? null,
    routing: detail?.routing ?? null,
    attempts: detail?.upstream ?? [],
    hasDetail: detail !== null,
  }
}

/** Undefined where there is none of that id. */
export async function readCall(pool: pg.Pool, id: Id) {
  // In this order: one that ends between the two is found by the second.
  const open = await findOpen(pool, 'everybody', id)
  const ended = open === undefined ? await findEnded(pool, 'everybody', id) : undefined
  const row = open ?? ended
  if (row === undefined) return undefined
  const [ownerOf, task, entries] = await Promise.all([
    ownersOf(pool, [row]),
    taskOfCall(pool, id),
    entriesAbout(pool, id),
  ])
  const about = { ...ownerOf(row), task: task ?? null, entries }
  if (open !== undefined) return { ...openView(open), ...about, priceVersion: versionIn(open.terms) }
  return ended && { ...endedView(ended), ...about, ...wholeOf(ended) }
}

function versionIn(terms: string): string | null {
  try {
    return termsInText(terms).terms.version
  } catch {
    return null
  }
}

export type CallView = NonNullable<Awaited<ReturnType<typeof readCall>>>
type Open = Extract<CallView, { readonly processId: Id | null }>
type Ended = Exclude<CallView, Open>

/** For a person, the most important first. */
export function callLines(call: CallView): readonly string[] {
  return [
    ...('endedAt' in call ? endedLines(call) : openLines(call)),
    ...(call.task === null ? [] : [taskLine(call.task)]),
    ...call.entries.map(entryLine),
    ...('endedAt' in call && call.cost > ZERO
      ? [`To give it back: farebox charges refund ${call.id} --reason <text>`]
      : []),
  ]
}

function openLines(call: Open): readonly string[] {
  const { id, outcome, begunAt, unsettledAt, processId, held, priceVersion } = call
  const owner = processId === null ? 'the workers' : `process ${processId}`
  const state =
    outcome === 'running'
      ? `is running since ${begunAt.toISOString()}, by ${owner}`
      : `is unsettled since ${unsettledAt?.toISOString()}: its process ${processId ?? ''} is gone, and its usage is unknown`
  return [
    `Call ${id} (${subjectOf(call)}) ${state}.`,
    ...whoseLines(call),
    `Held: ${formatUsd(held)} USD${priceVersion === null ? '' : `, at version ${priceVersion} of the price`}`,
    ...(outcome === 'unsettled'
      ? [`When you know what the provider did: farebox ledger resolve ${id} --charge <usd>, or --void.`]
      : []),
  ]
}

function endedLines(call: Ended): readonly string[] {
  const { id, outcome, failed, begunAt, endedAt, credentialId, charged } = call
  const ended = endedAt.toISOString()
  if (credentialId === null) return [`Call ${id} was voided at ${ended} before it had begun.`]
  const did = outcome === 'voided' ? 'was not charged' : `was charged ${formatUsd(charged)} USD`
  const began = begunAt === null ? '' : ` It began at ${begunAt.toISOString()}.`
  return [
    `Call ${id} (${subjectOf(call)}) ${failed ? 'failed and ' : ''}${did}. It ended at ${ended}.${began}`,
    ...whoseLines(call),
    ...answerLines(call),
    ...moneyLines(call),
    ...(call.routing === null
      ? []
      : [`Route: ${call.routing.upstream_model} of ${call.routing.slot} (${call.routing.reason})`]),
    ...call.attempts.map(attemptLine),
  ]
}

function subjectOf({ operation, model }: Pick<CallView, 'operation' | 'model'>): string {
  return [operation ?? 'no operation', ...(model === null ? [] : [model])].join(', ')
}

function whoseLines({ account, ledgerAccountId, credentialId, madeBy, endUser, tags }: CallView): readonly string[] {
  const customer = account === null ? 'none' : `${account.name}, account ${account.id}, ${account.mode} money`
  const key = madeBy === null ? `${credentialId}, which is gone` : `${madeBy.kind} ${madeBy.id}, ${madeBy.name}`
  const forWhom = [...(endUser === null ? [] : [`end user ${endUser.label} (${endUser.id})`]), ...tags]
  return [
    `Customer: ${customer} (ledger account ${ledgerAccountId})`,
    `Made by: ${key}`,
    ...(forWhom.length === 0 ? [] : [`Made for: ${forWhom.join(', ')}`]),
  ]
}

function answerLines({ hasDetail, status, firstByteMs, timeline }: Ended): readonly string[] {
  if (!hasDetail)
    return ['Answer: how it ran is not known: that is kept for 30 days, and lost if the process dies first']
  const times = Object.entries(timeline).toSorted(([, one], [, other]) => one - other)
  const moments = firstByteMs === null ? times : [...times, ['first byte', firstByteMs] as const]
  const told = moments.map(([moment, ms]) => `${moment} after ${ms} ms`)
  return [`Answer: ${[`status ${status ?? 'unknown'}`, ...told].join(', ')}`]
}

function moneyLines(call: Ended): readonly string[] {
  const { priceVersion, formula, evidence, tokens, charged, promotional, givenBack, cost, publishedValue } = call
  const counted = `${tokens.input} input, ${tokens.output} output, ${tokens.cacheRead} read from a cache, ${tokens.cacheWrite} written to one`
  // Its tokens are counted already.
  const how = [...evidence].filter(([name]) => !name.endsWith('Tokens')).map(([name, value]) => `${name} ${value}`)
  const parts = [
    `${formatUsd(charged)} USD charged`,
    ...(promotional > ZERO ? [`${formatUsd(promotional)} of it promotional credit`] : []),
    ...(givenBack === ZERO ? [] : [`${formatUsd(givenBack)} given back, ${formatUsd(cost)} left`]),
    ...(publishedValue === charged ? [] : [`${formatUsd(publishedValue)} at the published price`]),
  ]
  return [
    `Cost: ${parts.join(', ')}`,
    ...(formula === null ? [] : [`Price: ${priceVersion === null ? '' : `version ${priceVersion}: `}${formula}`]),
    `Tokens: ${counted}${how.length === 0 ? '' : ` (evidence: ${how.join(', ')})`}`,
    `Held: ${heldOf(call)}`,
    ...(call.balanceAfterUsd === null ? [] : [`Balance after it: ${call.balanceAfterUsd} USD`]),
    upstreamLine(call),
  ]
}

function heldOf({ held, holdSteps }: Ended): string {
  const steps = holdSteps.map(({ at_ms: atMs, usd }) => `${usd} after ${atMs} ms`)
  return `${formatUsd(held)} USD at most${steps.length === 0 ? '' : `: ${steps.join(', ')}`}`
}

function upstreamLine({ upstream, upstreamCost, margin, overrun }: Ended): string {
  const cost =
    upstreamCost === ZERO
      ? 'cost nothing, or no cost is set for it'
      : `cost ${formatUsd(upstreamCost)} USD, margin ${formatUsd(margin)} USD`
  const loss = overrun === ZERO ? '' : `, overrun ${formatUsd(overrun)} USD (our loss)`
  return `Upstream: ${upstream === null ? 'nobody was asked' : `${upstream} ${cost}`}${loss}`
}

function attemptLine({ slot, upstream_id, began_ms, ended_ms, ...how }: Ended['attempts'][number], at: number): string {
  const whom = upstream_id === null ? slot : `${slot}, upstream ${upstream_id}`
  const when = began_ms === null || ended_ms === null ? '' : `, from ${began_ms} to ${ended_ms} ms`
  const { outcome, status, reason } = how
  return `Attempt ${at + 1}: ${whom}${when}: ${[outcome.replaceAll('_', ' '), status, reason].filter((part) => part !== null).join(' ')}`
}

function taskLine({ model, state, created_at, ended_at, code }: NonNullable<CallView['task']>): string {
  const end =
    ended_at === null ? 'has not ended' : `ended at ${ended_at.toISOString()}${code === null ? '' : ` with ${code}`}`
  return `Task: of ${model}, ${state}, created at ${created_at.toISOString()}, ${end}`
}
