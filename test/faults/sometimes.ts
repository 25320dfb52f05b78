import { IMAGE_MODEL, IMAGE_TOKENS_MODEL } from '../../harness/seed.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { vendorOf } from '../acceptance/deviants/vendors.ts'
import { FIRST_SLICE, GROWING_MODEL } from './deviants.ts'
import { groupOf, limitOfGroup } from './endpoint-limits.ts'
import type { Evidence, TaskRow } from './evidence.ts'
import { isStreamed, type Operation } from './history.ts'
import type { Trouble } from './injector.ts'
import { billsIn } from './invariants-of-deviants.ts'
import { ABOUT_A_LINK, FOLLOW_OPERATION } from './linked-accounts.ts'
import { isBrokenOffUpstream } from './listen.ts'
import type { Kind } from './plan.ts'
import { BREAKING } from './questions.ts'
import { hasEnded } from './resolve-tasks.ts'
import { streamedSpeechOf } from './speeches.ts'
import { VIDEO_OPERATION } from './videos.ts'

/** How streams and other calls of models went. A run that has none of one of these has not tried what it is for. */
export function callsOfModels({ operations }: Pick<Evidence, 'operations'>): Readonly<Record<string, number>> {
  const streams = operations.filter(isStreamed)
  const count = (went: (one: Operation) => boolean) => streams.filter(went).length
  const paid = (is: (one: Operation) => boolean) =>
    operations.filter((one) => one.outcome === 'ok' && (one.told.costNanos ?? 0n) > 0n && is(one)).length
  return {
    'streams that ended well': count(({ outcome }) => outcome === 'ok'),
    'streams cut by callers': count((one) => hasBegun(one) && one.told.isCut === true && one.outcome === 'unknown'),
    'streams hit by faults': count((one) => hasBegun(one) && isHit(one)),
    'streams of the third protocol that ended well': count((one) => one.outcome === 'ok' && reportsAsItGoes(one)),
    'streams of the third protocol broken off': count(
      (one) => hasBegun(one) && reportsAsItGoes(one) && isBrokenOffUpstream(one),
    ),
    'streams that ended where the money did': count(({ told }) => told.isAtCeiling === true),
    'answers of the third protocol paid': paid(({ operation }) => operation === 'generate_content'),
    'embeddings paid': paid(({ operation }) => operation === 'embeddings'),
    'pictures paid by the piece': paid(({ question }) => question?.model === IMAGE_MODEL),
    'pictures paid by the token': paid(({ question }) => question?.model === IMAGE_TOKENS_MODEL),
    'calls of agents paid': paid(({ isByTool }) => isByTool === true),
    'calls of agents that were refused': operations.filter((one) => one.isByTool === true && one.outcome === 'fail')
      .length,
    'requests beyond the limit of their endpoint': operations.filter(isBeyondItsEndpoint).length,
  }
}

function hasBegun({ told }: Operation): boolean {
  return (told.heardBytes ?? 0) > 0
}

/** Neither its caller nor its upstream meant it to end like that. */
function isHit({ outcome, told, question }: Operation): boolean {
  return outcome !== 'ok' && told.isCut !== true && !BREAKING.has(question?.model ?? '')
}

function reportsAsItGoes({ operation }: Operation): boolean {
  return streamedSpeechOf(operation)?.reportsAsItGoes === true
}

function isBeyondItsEndpoint({ operation, told }: Operation): boolean {
  return told.status === 429 && told.limit === limitOfGroup(groupOf(operation))
}

/** How tasks went. A run that has none of one of these has not tried what it is for. */
export function callsOfTasks(evidence: Evidence): Readonly<Record<string, number>> {
  const { operations, tasks, upstreamTasks, troubles, samples } = evidence
  const ended = upstreamTasks.filter(hasEnded)
  const rows = ended.flatMap(({ request_id_of_create: id }) => tasks.get(id ?? '') ?? [])
  const inState = (state: string) => rows.filter((row) => row.state === state).length
  const polls = operations.filter(({ what, outcome }) => what === 'poll' && outcome === 'ok')
  const polled = new Set(operations.filter(({ what }) => what === 'poll').map(({ subject }) => subject))
  const creations = new Map(operations.filter(isCreation).map((one) => [one.told.taskId, one.told.servedBy]))
  const servedBy = (id: Id) => creations.get(id) ?? ''
  const unsettled = [...samples.unsettled.values()].filter(({ operation }) => operation === VIDEO_OPERATION)
  return {
    'tasks succeeded': inState('SUCCEEDED'),
    'tasks failed': inState('FAILED'),
    'tasks canceled': inState('CANCELED'),
    'tasks whose creation was lost': unsettled.length,
    'tasks polled during a fault': polls.filter((one) => troubles.some((trouble) => isDuring(one, trouble))).length,
    'tasks settled by others than who created them': rows.filter(({ id }) => ONLY_CREATE.has(servedBy(id))).length,
    'tasks settled that nobody polled': rows.filter(({ id }) => !polled.has(id)).length,
    'tasks refused for want of a place': operations.filter(
      ({ operation, told, client }) =>
        operation === VIDEO_OPERATION && told.status === 429 && client.startsWith('filming'),
    ).length,
  }
}

function isDuring({ invokedAtMs, endedAtMs }: Operation, { fromMs, toMs }: Trouble): boolean {
  return fromMs < endedAtMs && toMs > invokedAtMs
}

/** Gateways that ask for no tasks. */
const ONLY_CREATE: ReadonlySet<string> = new Set(['gateway-1', 'gateway-2'])
const DEATHS: ReadonlySet<Kind> = new Set(['kill gateway', 'restart gateway'])

/** How many tasks were settled when the process that had created them was gone. */
export function tasksOutliving({ operations, tasks, troubles }: Evidence): number {
  const creations = new Map(operations.filter(isCreation).map((one) => [one.told.taskId, one]))
  const outlived = (row: TaskRow) => troubles.some((trouble) => hasOutlived(row, creations.get(row.id), trouble))
  return [...tasks.values()].filter(outlived).length
}

function isCreation({ video, told }: Operation): boolean {
  return video !== undefined && told.taskId !== undefined
}

/** Whether the gateway that answered its creation ended while it went on. */
function hasOutlived({ ended_at }: TaskRow, creation: Operation | undefined, { kind, target, fromMs, toMs }: Trouble) {
  if (creation === undefined || ended_at === null || !DEATHS.has(kind)) return false
  return target === creation.told.servedBy && fromMs > creation.endedAtMs && toMs < ended_at.getTime()
}

/** More than a question and the first slice of its answer. */
const GROWN = 2n * FIRST_SLICE

/** How calls of deviants went. A run that has none of one of these has not tried what it is for. */
export function callsOfDeviants(evidence: Evidence): Readonly<Record<string, number>> {
  const bills = billsIn(evidence).filter(({ entry }) => vendorOf(entry.model ?? '') !== undefined)
  return {
    'calls of vendors that deviate': bills.length,
    'calls that got more than their hold by an unknown deviance': bills.filter(
      ({ bill, held, entry }) => bill > held && entry.model !== GROWING_MODEL,
    ).length,
    'streams that held more as they grew': bills.filter(
      ({ held, entry }) => entry.model === GROWING_MODEL && held > GROWN,
    ).length,
  }
}

/** How calls for users of a platform went. A run that has none of one of these has not tried what it is for. */
export function callsOfLinks({ operations, asked }: Evidence): Readonly<Record<string, number>> {
  const follows = operations.filter(({ operation }) => operation === FOLLOW_OPERATION)
  const refreshes = new Set(
    asked.filter(({ path }) => path.endsWith('/oauth2/token')).map(({ request_id }) => request_id),
  )
  const refused = asked.filter(
    ({ upstream, status, path }) => upstream === 'platform' && status === 401 && !ABOUT_A_LINK.test(path),
  )
  const twice = [...Map.groupBy(refused, ({ request_id }) => request_id).values()].filter((own) => own.length > 1)
  return {
    'writes for users paid': follows.filter(({ outcome, told }) => outcome === 'ok' && (told.costNanos ?? 0n) > 0n)
      .length,
    'writes for users that refreshed': follows.filter(({ told }) => refreshes.has(told.id ?? '')).length,
    'writes for users refused twice': twice.length,
  }
}
