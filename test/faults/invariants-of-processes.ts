import { microseconds } from '../ledger/instants.ts'
import { groupOf, limitOfGroup } from './endpoint-limits.ts'
import type { Evidence } from './evidence.ts'
import { isStreamed, type Operation } from './history.ts'
import type { Trouble } from './injector.ts'
import { DATABASE_CONNECTIONS_MOST, UPSTREAM_CONNECTIONS_MOST } from './leaks.ts'
import { NO_LIMIT } from './people.ts'
import type { Kind } from './plan.ts'
import type { Unsettled } from './sampler.ts'
import { VIDEO_OPERATION } from './videos.ts'

const WINDOW_SECONDS = 60
/** A reset is told in whole seconds, rounded up. */
const ROUNDING_SECONDS = 1

/**
 * By what callers were told: within a window never more admissions than the limit, and no window begins before the last
 * one has ended. A crash of PostgreSQL forgets windows, so each allows one more; one that was being told at the crash ends.
 */
export function windowsKept({ people, operations, charges, samples, troubles }: Evidence): string[] {
  const problems = [...samples.beyondWindow]
  const isOfWindow = speaksOfItsAdmission(charges)
  const crashes = troubles.filter(({ kind }) => CRASHES.has(kind)).length
  const admitted = Map.groupBy(operations.filter(isAdmitted), ({ keyId = '' }) => keyId)
  for (const { keys, requestsPerMinute, name } of people) {
    for (const { id } of keys) {
      const own = admitted.get(id) ?? []
      if (requestsPerMinute < NO_LIMIT) {
        if (own.length === 0) problems.push(`key ${id} of ${name} was never admitted`)
        problems.push(
          ...beyond(`key ${id}`, tellingOf(own, requestsPerMinute).filter(isOfWindow), requestsPerMinute, crashes),
        )
      }
      for (const [group, ofGroup] of Map.groupBy(own, ({ operation }) => groupOf(operation))) {
        const limit = limitOfGroup(group)
        if (limit === undefined) continue
        problems.push(...beyond(`key ${id} of ${group}`, tellingOf(ofGroup, limit).filter(isOfWindow), limit, crashes))
        // The limit of the group is the tightest there is where a tier has none.
        if (requestsPerMinute >= NO_LIMIT && tellingOf(ofGroup, limit).length < ofGroup.length)
          problems.push(`key ${id} was told of another limit than that of ${group}`)
      }
    }
  }
  if (!operations.some(({ told }) => told.status === 429)) problems.push('nobody ever met a limit')
  return problems
}

/**
 * Whole answers tell of the window that stands when their call ends. One that was begun before it was admitted in another, of which
 * nobody heard by it. A reset is rounded up, so that some of a window's first second are left out too: the sampler counts those.
 */
function speaksOfItsAdmission(charges: Evidence['charges']): (operation: Operation) => boolean {
  return (operation) => {
    const { id, resetSeconds = 0 } = operation.told
    const begunAt = id === undefined || isStreamed(operation) ? undefined : charges.get(id)?.begun_at
    return (
      begunAt === undefined || begunAt === null || Number(microseconds(begunAt)) / 1e6 >= resetSeconds - WINDOW_SECONDS
    )
  }
}

/** Those that were told of a window with such a limit: an answer tells of the tightest. */
function tellingOf(admitted: readonly Operation[], limit: number): readonly Operation[] {
  return admitted.filter(({ told }) => told.limit === limit)
}

function beyond(about: string, admitted: readonly Operation[], limit: number, crashes: number): string[] {
  const windows = Map.groupBy(admitted, ({ told }) => told.resetSeconds ?? 0)
  const full = [...windows].filter(([, own]) => own.length > limit)
  const resets = [...windows.keys()].sort((a, b) => a - b)
  const overlaps = resets.filter((reset, at) => reset - (resets[at - 1] ?? 0) < WINDOW_SECONDS - ROUNDING_SECONDS)
  return [
    ...full.map(([reset, own]) => `${about} had ${own.length} of ${limit} in the window until ${reset}`),
    ...(overlaps.length > crashes ? [`${about} had windows until ${resets.join(', ')} with ${crashes} crashes`] : []),
  ]
}

const CRASHES: ReadonlySet<Kind> = new Set(['kill postgres', 'fill disk'])

/** A refusal for money, a key or a quote is a request as well: 402, 409 and 422. */
const UNCOUNTED: ReadonlySet<number> = new Set([401, 403, 429])

function isAdmitted({ told }: Operation): boolean {
  return told.resetSeconds !== undefined && !UNCOUNTED.has(told.status ?? 0)
}

export function nothingLeaks({ claimsLeft, leaks, resolutions }: Evidence): string[] {
  const tooMany = Object.entries(leaks.database).filter(([, connections]) => connections > DATABASE_CONNECTIONS_MOST)
  return [
    ...resolutions.left.map((id) => `call ${id} still holds money`),
    ...claimsLeft.map((claim) => `claim ${claim} has no charged call`),
    ...tooMany.map(([name, connections]) => `${connections} connections on ${name}`),
    ...(leaks.upstream > UPSTREAM_CONNECTIONS_MOST ? [`${leaks.upstream} connections to the upstream`] : []),
    ...(leaks.upstreamBusy > 0 ? [`${leaks.upstreamBusy} connections wait for an answer of the upstream`] : []),
    ...leaks.unanswered.map((id) => `the upstream still answers ${id}`),
    ...(leaks.callers > 0 ? [`${leaks.callers} connections of callers who have gone`] : []),
    ...leaks.strangers.map((pid) => `process ${pid} belongs to nobody`),
    ...leaks.missing.map((name) => `${name} is not there`),
  ]
}

/** What may leave a call without anybody who knows how it went: its process died or slept, or lost PostgreSQL. */
const OF_PROCESS: ReadonlySet<Kind> = new Set(['kill gateway', 'pause gateway'])
const OF_DATABASE: ReadonlySet<Kind> = new Set(['cut database', 'stall database', 'half-close database'])
const OF_EVERYBODY: ReadonlySet<Kind> = new Set(['kill postgres', 'pause postgres', 'fill disk'])
const AROUND_MS = 1_000

/** Whether something can have kept a call from being settled, whoever ran it. */
export function isOfSettlement({ kind }: Trouble): boolean {
  return OF_PROCESS.has(kind) || OF_DATABASE.has(kind) || OF_EVERYBODY.has(kind)
}

/** What may keep the answer of an upstream from us. */
const OF_UPSTREAM: ReadonlySet<Kind> = new Set(['kill sandbox', 'cut upstream', 'half-close upstream'])

export function unsettledForReason({ samples, troubles, cluster, videos }: Evidence): string[] {
  return [...samples.unsettled.values()].flatMap((call) => (hasReason(call) ? [] : [sentenceOf(call)]))

  function hasReason({ id, operation, ownerId, begunAtMs, unsettledAtMs }: Unsettled): boolean {
    const isTask = operation === VIDEO_OPERATION
    // Its upstream was told to lose the answer to its creation.
    if (isTask && videos.get(id)?.isLost === true) return true
    const at = cluster.gateways.findIndex(({ owners }) => owners.has(ownerId))
    return troubles.some(({ kind, target, fromMs, toMs }) => {
      if (fromMs > unsettledAtMs || toMs < begunAtMs - AROUND_MS) return false
      if (OF_EVERYBODY.has(kind) || (isTask && OF_UPSTREAM.has(kind))) return true
      return (
        (OF_PROCESS.has(kind) && target === `gateway-${at}`) || (OF_DATABASE.has(kind) && target === `database-${at}`)
      )
    })
  }

  function sentenceOf({ id, ownerId }: Unsettled): string {
    const owner = cluster.gateways.find(({ owners }) => owners.has(ownerId))
    return `call ${id} of ${owner?.name ?? `an unknown process ${ownerId}`} is unsettled, and nothing was done to that`
  }
}

export function everythingResolved({ resolutions: { left }, operations }: Evidence): string[] {
  const open = operations.filter(({ outcome }) => outcome === 'open')
  return [...left.map((id) => `call ${id} is open`), ...open.map(({ n }) => `operation ${n} never ended`)]
}

/** A change is known everywhere a second later, or what it is about is asked anew. */
const KNOWN_AFTER_MS = 2_000

/** And a revoked key begins no paid call from its revocation on. */
export function revokedStartNothing({ revokedAt, charges, operations, people }: Evidence): string[] {
  const problems: string[] = []
  for (const { id, credential_id, begun_at } of charges.values()) {
    const at = revokedAt.get(credential_id ?? '')
    if (at !== undefined && begun_at !== null && microseconds(begun_at) > microseconds(at))
      problems.push(`call ${id} was begun at ${begun_at} with key ${credential_id}, revoked at ${at}`)
  }
  const toldAtMs = new Map(
    operations
      .filter(({ what, outcome }) => what === 'revocation' && outcome === 'ok')
      .map((one) => [one.subject, one.endedAtMs]),
  )
  for (const { n, keyId, outcome, invokedAtMs, told } of operations) {
    const atMs = toldAtMs.get(keyId) ?? Number.POSITIVE_INFINITY
    if (outcome === 'ok' && invokedAtMs > atMs + (told.costNanos === undefined ? KNOWN_AFTER_MS : 0))
      problems.push(`operation ${n} succeeded ${invokedAtMs - atMs} ms after key ${keyId} was revoked`)
  }
  if (people.some(({ name }) => name === 'rotating') && toldAtMs.size === 0) problems.push('no key was revoked')
  return problems
}

export function noDeaths({ cluster }: Evidence): string[] {
  return [...cluster.gateways, cluster.worker].flatMap(({ deaths }) => deaths)
}

/** What begins so long after a price was set is charged by it; what was quoted before is not. */
export function pricesKnown({ operations }: Evidence): string[] {
  const set = operations.filter(({ what, outcome }) => what === 'price' && outcome === 'ok')
  const late = operations.flatMap(({ n, what, operation, invokedAtMs, told }) => {
    if (told.priceVersion === undefined || what === 'quoted call') return []
    const known = set.filter((one) => one.operation === operation && one.endedAtMs + KNOWN_AFTER_MS < invokedAtMs)
    const version = known.reduce((newest, { told: { amount = 0n } }) => (amount > newest ? amount : newest), 0n)
    if (told.priceVersion >= Number(version)) return []
    return [
      `operation ${n} (${told.id}) was charged by price ${told.priceVersion} of ${operation}, after ${version} was set`,
    ]
  })
  return [...late, ...(set.length === 0 ? ['no price was set'] : [])]
}
