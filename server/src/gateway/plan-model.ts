import type { Attempts, ModelOperation, Operation } from '../catalogue/operation.ts'
import { memberOf } from '../catalogue/price.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { REPLY_MOST_BYTES, type ReplyRoom } from '../kernel/memory-budget.ts'
import { rational } from '../kernel/rational.ts'
import type { Incoming } from '../upstreams/adapters/adapter.ts'
import { passThrough } from '../upstreams/adapters/pass-through.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import { readOutline } from '../upstreams/protocols/json-outline.ts'
import { unknownRefusal } from '../upstreams/protocols/members.ts'
import type { ModelAsk, ModelLimits, ProtocolName } from '../upstreams/protocols/protocol.ts'
import { FREE, headersFor, pathOf, SPOKEN } from '../upstreams/protocols/protocols.ts'
import { PLAIN_PROFILE } from '../upstreams/protocols/route-profile.ts'
import { MOST_TEXT_BYTES } from '../upstreams/protocols/withholding-reader.ts'
import type { Quota } from '../upstreams/quota.ts'
import type { TokenCounter } from '../upstreams/tokens/count-tokens.ts'
import type { Transport } from '../upstreams/transport.ts'
import type { LossGuard } from './loss-guard.ts'
import { pricingOf } from './model-pricing.ts'
import { type Model, type Models, orderRoutes, priceOfModel, type Route } from './models.ts'
import { createOutputGuard } from './output-guard.ts'
import type { CallRequest } from './pipeline.ts'
import type { Plan, Sent } from './plan.ts'
import { findBindings, notConfigured } from './plan-data.ts'
import type { Attempt } from './records.ts'
import { replyBytesOf } from './reply-bytes.ts'
import { credentialFor, sendOnce } from './send.ts'
import { openOnce } from './send-stream.ts'

type Parts = {
  readonly models: Pick<Models, 'find'>
  readonly bindings: Bindings
  readonly quota: Quota
  readonly transport: Pick<Transport, 'send' | 'open'>
  readonly counter: Pick<TokenCounter, 'count'>
  readonly outputCapHeader: string
  readonly lossGuard: LossGuard
  readonly random?: () => number
}

/** Those that can't be reached cost little, and are not among the requests that a call may make. */
const TRIED_MOST = 20
const MINUTE_MS = 60_000
/** A model may think for long before its first word, and between words. */
const DEADLINES = { connectMs: 5_000, headersMs: 10 * MINUTE_MS, idleMs: 5 * MINUTE_MS, totalMs: 60 * MINUTE_MS }

/** The model's name there is ours to get right, so that a 404 is no more the caller's than a wrong key. */
const ABOUT_US: ReadonlySet<number> = new Set([401, 402, 403, 404])
/** What protocols call it in the type, code or status of an error, whatever the status of the answer. */
const ABOUT_US_BY_NAME: ReadonlySet<unknown> = new Set([
  ...['authentication_error', 'billing_error', 'permission_error'],
  ...['insufficient_quota', 'billing_hard_limit_reached', 'invalid_api_key'],
  ...['UNAUTHENTICATED', 'PERMISSION_DENIED', 'API_KEY_INVALID'],
])

/** Too busy for us. Here, as where it is about us, another upstream may do better, and vendors bill none of it. */
const BUSY: ReadonlySet<number> = new Set([429, 503, 529])

/** A model at the price of its tokens, from the first of its upstreams that takes the call. */
export function createModelPlan(parts: Parts) {
  const { models, bindings, quota, transport, counter, outputCapHeader, lossGuard, random = Math.random } = parts

  return async (request: CallRequest, operation: ModelOperation): Promise<Plan> => {
    const { caller, rawBody } = request
    const { by, protocol } = SPOKEN[operation.protocol]
    requireEvents(request, operation)
    const body = request.readBody()
    const name = protocol.modelOf(body, request.model)
    const found = models.find(name)
    const model = requireModel(found instanceof Promise ? await found : found, name)
    const routes = routesFor(model, by, operation)
    const headers = headersFor(protocol, request.headers(protocol.passesOn))
    const ask = protocol.ask({ body, rawBody: rawBody ?? Buffer.alloc(0), headers }, model.limits)
    const isFree = FREE.has(operation.protocol)
    const multiplier = isFree ? rational(0n) : caller.priceMultiplier
    const { tokenizer } = model
    const outputMost = outputMostOf(ask, routes, model.limits)
    const pricing = pricingOf({ price: priceOfModel(model), ask, outputMost, multiplier }, { counter, tokenizer })
    const bound = await targetsOf(bindings, orderRoutes(routes, random), caller.mode)
    // What costs nothing loses nothing.
    const open = isFree ? bound : lossGuard(bound, { accountId: caller.accountId, sold: model.id })
    const targets = takersOf(open, ask.unknownMembers)
    /** How the one that was asked last counts. */
    let profile = PLAIN_PROFILE

    const requestTo = (id: Id, { binding, route }: Target, room: ReplyRoom) => ({
      method: 'POST' as const,
      target: protocol.target(route.upstreamModel),
      headers: {
        accept: ask.isStream ? 'text/event-stream' : 'application/json',
        'content-type': 'application/json',
        'x-request-id': id,
        ...headers,
        ...credentialFor(binding, protocol.credentialHeader),
      },
      body: ask.bodyFor(route.upstreamModel, route.profile),
      maxBodyBytes: REPLY_MOST_BYTES,
      room,
      deadlines: DEADLINES,
    })

    /** Asks one of them, once. */
    async function attempt(id: Id, target: Target, room: ReplyRoom): Promise<Sent> {
      const { binding, route } = target
      profile = route.profile
      // What costs nothing does not use up what paying callers need.
      const isCounted = binding.requestsPerMinute !== null && !isFree
      const refusal = isCounted ? await quotaRefusal(quota, binding) : undefined
      if (refusal !== undefined) return notAsked(binding, refusal)
      const { stream } = protocol
      if (!ask.isStream || stream === undefined)
        return sendOnce(transport, binding, () => requestTo(id, target, room), readOutline)
      return openOnce(
        transport,
        binding,
        () => requestTo(id, target, room),
        (reply) => {
          const reader = stream.createReader(ask, route.profile)
          const limit = outputMostOf(ask, [route], model.limits)
          return {
            reply,
            reader,
            measure: (text, isOwed) => pricing.ofDelivered({ reported: reader.reported(), text, isOwed }),
            lost: () => pricing.ofNothing(reader.reported()),
            errorFrame: stream.errorFrame,
            outputGuard: createOutputGuard({ counter, tokenizer, limit }),
            stopsOnAbort: route.profile.abort === 'stops',
          }
        },
      )
    }

    return {
      ...pricing,
      sold: model.id,
      isExact: false,
      tokens: operation.limits.includes('tokens') ? pricing.tokens : 0,
      headers: ask.isDefaultLimit ? { [outputCapHeader]: String(ask.outputLimit) } : {},
      replyBytes: replyBytesOf(ask, outputMost),
      send: (id, room) =>
        firstToTake(targets, (target) => attempt(id, target, room), mayAskAnother, operation.attempts),
      measure(reply) {
        const { status, json } = reply
        if (status >= 300) return pricing.nothing
        // An empty body gave nothing; what can't be read was handed over all the same.
        if (json === undefined) return reply.body.length === 0 ? undefined : pricing.ofUnreadable(textOf(reply))
        const reported = protocol.usageOf(json, profile)
        const [text, form] = [protocol.textOf(json), protocol.formOf(json)]
        return pricing.ofReply({ json, reported, text, form, raw: () => textOf(reply) ?? '' })
      },
      answer: (reply) => passThrough.answer(reply, { input: undefined, query: '', rawBody }),
      isAboutUs: ({ status, json }) => isAboutUs(status, json),
    }
  }
}

/**
 * The most output that a call can have, of all choices together. Where an upstream counts reasoning apart, the limit that is
 * sent does not bound it: it may reason for as long as the longest answer, within the context window.
 */
function outputMostOf(
  { outputLimit, choices, imageKind }: ModelAsk,
  routes: readonly Route[],
  { outputMost, contextWindow }: ModelLimits,
): number {
  const isApart = routes.some(({ profile }) => profile.reasoning === 'apart')
  if (!isApart || outputLimit === 0 || imageKind !== undefined) return outputLimit * choices
  return Math.max(outputLimit, Math.min(outputLimit + outputMost, contextWindow)) * choices
}

/** Of a body that is no JSON, as much as is counted; undefined where it came in an encoding that nobody asked for. */
function textOf({ headers, body }: Incoming): string | undefined {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return undefined
  return body.toString('utf8', 0, MOST_TEXT_BYTES)
}

/** One protocol streams in two forms, of which every library of its callers asks for this one. */
function requireEvents({ query }: CallRequest, { protocol }: ModelOperation): void {
  if (protocol !== 'gemini_stream' || new URLSearchParams(query).get('alt') === 'sse') return
  throw new Fault('invalid_request', { detail: 'Streams are given as server-sent events: add ?alt=sse.' })
}

function isAboutUs(status: number, json: unknown): boolean {
  if (status < 400) return false
  const error = memberOf(json, 'error')
  const names = ['type', 'code', 'status'].map((name) => memberOf(error, name))
  const details = memberOf(error, 'details')
  const reasons = Array.isArray(details) ? details.slice(0, 10).map((detail) => memberOf(detail, 'reason')) : []
  return ABOUT_US.has(status) || [...names, ...reasons].some((name) => ABOUT_US_BY_NAME.has(name))
}

export async function findModel(models: Parts['models'], name: string): Promise<Model> {
  return requireModel(await models.find(name), name)
}

function requireModel(model: Model | undefined, name: string): Model {
  if (model !== undefined) return model
  const detail = `There is no model ${JSON.stringify(name)}. GET /v1/models lists those that there are.`
  throw new Fault('resource_not_found', { detail })
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
  const instead = others.length === 0 ? 'Nobody serves it yet.' : `It is served at ${others.join(' and ')}.`
  throw new Fault('resource_not_found', { detail: `The model ${id} is not served at ${path}. ${instead}` })
}

export type Target = { readonly route: Route; readonly binding: Binding }

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
export function takersOf(targets: readonly Target[], unknownMembers: readonly string[]): readonly Target[] {
  if (targets.length === 0) throw notConfigured()
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
  throw notConfigured()
}

function asked(attempts: readonly Attempt[]): number {
  return attempts.filter(({ outcome }) => outcome !== 'not_sent').length
}

function mayAskAnother(sent: Sent): boolean {
  if (sent.outcome !== 'answered') return sent.outcome === 'not_sent'
  const { status, json } = sent.reply
  return BUSY.has(status) || isAboutUs(status, json)
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

export function notAsked({ slot, kind }: Binding, failure: Fault): Sent {
  const attempts = [{ slot, outcome: 'not_sent' as const, status: null, reason: 'quota' }]
  return { attempts, kind, outcome: 'not_sent', failure }
}
