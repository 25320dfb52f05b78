import type { Attempts, Operation } from '../catalogue/operation.ts'
import { asFault, asUnavailable, Fault } from '../kernel/fault.ts'
import type { Mode } from '../kernel/mode.ts'
import { nearest } from '../kernel/nearest.ts'
import type { Model, Models, Route } from '../pricing/models.ts'
import { unknownRefusal } from '../protocols/members.ts'
import type { ProtocolName } from '../protocols/protocol.ts'
import { pathOf } from '../protocols/protocols.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import type { Quota } from '../upstreams/quota.ts'
import type { Attempt, Sent } from './plan.ts'

/** Those that can't be reached cost little, and are not among the requests that a call may make. */
const TRIED_MOST = 20

/** An upstream that may be asked, and by which of a model's routes. */
export type Target = { readonly route: Route; readonly binding: Binding }

/** Says that there is no such model, and which one may be meant. */
export async function refuseModel({ list }: Pick<Models, 'list'>, name: string, mode: Mode): Promise<never> {
  throw noSuchModel(name, await list(mode))
}

export function noSuchModel(name: string, models: readonly Pick<Model, 'id'>[]): Fault {
  // The maker is the same in many names, and often left out.
  const own = (id: string) => id.slice(id.lastIndexOf('/') + 1)
  const word = nearest(
    own(name),
    models.map(({ id }) => own(id)),
  )
  const near = word === undefined ? undefined : models.find(({ id }) => own(id) === word)?.id
  const instead = near === undefined ? 'Use one that GET /v1/models lists.' : `Did you mean ${JSON.stringify(near)}?`
  const detail = `There is no model ${JSON.stringify(name)}. ${instead}`
  return new Fault('model_not_found', { detail, members: { param: 'model' } })
}

/** Those of its upstreams that speak the caller's protocol; nothing is translated. */
export function routesFor(
  { id, routes }: Model,
  by: ProtocolName,
  { path }: Pick<Operation, 'path'>,
): readonly Route[] {
  const found = routes.filter(({ protocol }) => protocol === by)
  if (found.length > 0) return found
  const others = [...new Set(routes.map(({ protocol }) => pathOf(protocol)))]
  const instead =
    others.length === 0
      ? 'No upstream provider serves it yet; ask the operator.'
      : `It is served at ${others.join(' and ')}.`
  const detail = `The model ${id} is not served at ${path}. ${instead}`
  throw new Fault('resource_not_found', { detail, members: { param: 'model' } })
}

export async function targetsOf(
  bindings: Bindings,
  routes: readonly Route[],
  mode: Binding['mode'],
): Promise<Target[]> {
  const targets: Target[] = []
  for (const route of routes) {
    const found = findBindings(bindings, route.slot, mode)
    for (const binding of found instanceof Promise ? await found : found) targets.push({ route, binding })
  }
  return targets
}

/** Those that may get a request: what our tables do not know goes to those alone whose route passes it on. */
export function takersOf(
  targets: readonly Target[],
  unknownMembers: readonly string[],
  mode: Binding['mode'],
): readonly Target[] {
  if (targets.length === 0) throw notConfigured(mode)
  if (unknownMembers.length === 0) return targets
  const takers = targets.filter(({ route }) => route.profile.unknown === 'pass')
  if (takers.length === 0) throw unknownRefusal(unknownMembers)
  return takers
}

/** One after the other, while it is certain that none of those before has begun the call. All attempts are told. */
export async function firstToTake(
  targets: readonly Target[],
  attempt: (target: Target) => Promise<Sent>,
  mayAskAnother: (sent: Sent) => boolean,
  { requests }: Attempts,
): Promise<Sent> {
  const before: Attempt[] = []
  let left = Math.min(targets.length, TRIED_MOST)
  for (const target of targets) {
    left -= 1
    const sent = await attempt(target)
    if (left === 0 || !mayAskAnother(sent) || asked(before) + asked(sent.attempts) >= requests)
      return before.length === 0 ? sent : { ...sent, attempts: [...before, ...sent.attempts] }
    before.push(...sent.attempts)
  }
  throw new Fault('not_configured')
}

function asked(attempts: readonly Attempt[]): number {
  return attempts.filter(({ outcome }) => outcome !== 'not_sent').length
}

/** Why our quota with the upstream does not let us ask it; undefined where it does. */
export async function quotaRefusal(quota: Quota, binding: Binding): Promise<Fault | undefined> {
  try {
    const taken = await quota.take(binding)
    return taken === 'taken' ? undefined : new Fault('upstream_rate_limit', taken)
  } catch (error) {
    return asFault(error)
  }
}

export function notAsked({ id, name, slot, kind }: Binding, atMs: number, failure: Fault): Sent {
  const span = { beganMs: atMs, endedMs: atMs }
  const about = { slot, upstream: name, upstreamId: id }
  const attempts = [{ ...about, outcome: 'not_sent' as const, status: null, reason: 'quota', ...span }]
  return { attempts, kind, outcome: 'not_sent', failure }
}

export function findBindings(bindings: Bindings, slot: string, mode: Binding['mode']): ReturnType<Bindings['find']> {
  const found = bindings.find(slot, mode)
  return found instanceof Promise ? found.catch(asUnavailable) : found
}

/** Nobody can be asked. A key of the wrong mode is what newcomers stumble over: each reaches upstreams of its own mode alone. */
export function notConfigured(mode: Binding['mode']): Fault {
  return new Fault('not_configured', { detail: NO_UPSTREAM[mode] })
}

const NO_UPSTREAM: Readonly<Record<Binding['mode'], string>> = {
  live: 'You sent a live key, and live keys reach live providers only: this installation has none for this operation. A test key may work: it reaches test providers and spends test money, which every workspace has.',
  test: 'You sent a test key, and test keys reach test providers only: this installation has none for this operation. A live key may work.',
}
