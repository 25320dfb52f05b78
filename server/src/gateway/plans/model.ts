import type { ModelOperation } from '../../catalogue/operation.ts'
import { memberOf } from '../../catalogue/price.ts'
import type { Clock } from '../../kernel/clock.ts'
import { invalidRequest } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { LARGE_BYTES, REPLY_MOST_BYTES, type ReplyRoom } from '../../kernel/memory-budget.ts'
import { ZERO } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { type Models, priceOfModel } from '../../pricing/models.ts'
import { outputMostOf } from '../../pricing/output-most.ts'
import { pricingOf } from '../../pricing/price-model.ts'
import type { Prices } from '../../pricing/prices.ts'
import { endUserIn } from '../../protocols/end-user.ts'
import { readOutline } from '../../protocols/json-outline.ts'
import { MOST_TEXT_BYTES } from '../../protocols/kept-text.ts'
import { OUTPUT_LIMITS } from '../../protocols/output-limits.ts'
import { FREE, headersFor, SPOKEN } from '../../protocols/protocols.ts'
import { PLAIN_PROFILE } from '../../protocols/route-profile.ts'
import { toldAnswer, upstreamModelIn } from '../../protocols/told-answer.ts'
import type { Incoming } from '../../upstreams/adapters/adapter.ts'
import { passThrough } from '../../upstreams/adapters/pass-through.ts'
import type { Bindings } from '../../upstreams/bindings.ts'
import { isToBlame } from '../../upstreams/breakers.ts'
import type { Quota } from '../../upstreams/quota.ts'
import { isPlain } from '../../upstreams/reply-headers.ts'
import type { TokenCounter } from '../../upstreams/tokens/count-tokens.ts'
import type { Transport } from '../../upstreams/transport.ts'
import { adviceOnMoney, adviceOnUnits, proportional } from '../../wording/money-advice.ts'
import { adviceOn, fittingOutputOf } from '../../wording/token-advice.ts'
import type { CallRequest } from '../call-request.ts'
import { type Growth, shortFault } from '../growth.ts'
import { growthOf } from '../growth-plan.ts'
import type { LossGuard } from '../loss-guard.ts'
import { createOutputGuard } from '../output-guard.ts'
import type { Plan, Routing, Sent } from '../plan.ts'
import { replyBytesOf } from '../reply-bytes.ts'
import { requireSoldModel } from '../require-sold.ts'
import {
  firstToTake,
  notAsked,
  quotaRefusal,
  refuseModel,
  routesFor,
  type Target,
  takersOf,
  targetsOf,
} from '../routing.ts'
import { credentialFor, sendOnce } from '../send.ts'
import { openOnce, openUntil } from '../send-stream.ts'
import type { TellRefused } from '../tell-refused.ts'
import { conversationOf, SESSION_HEADERS } from './conversation.ts'
import { createRouteChoice, type RouteChoice } from './route-choice.ts'

type Parts = {
  readonly models: Pick<Models, 'find' | 'list'>
  readonly bindings: Bindings
  readonly quota: Quota
  readonly transport: Pick<Transport, 'send' | 'open'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly counter: Pick<TokenCounter, 'count'>
  readonly outputCapHeader: string
  readonly fittedLimitHeader: string
  readonly upstreamModelHeader: string
  readonly lossGuard: LossGuard
  readonly refusedBy: TellRefused
  readonly prices: Pick<Prices, 'timesFor'>
}

const NOTHING = rational(0n)
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
  const {
    models,
    bindings,
    quota,
    clock,
    counter,
    outputCapHeader,
    fittedLimitHeader,
    upstreamModelHeader,
    lossGuard,
    refusedBy,
    prices,
  } = parts

  const chooseRoutes = createRouteChoice(parts)

  return async (request: CallRequest, operation: ModelOperation): Promise<Plan> => {
    const { caller, rawBody } = request
    const { by, protocol } = SPOKEN[operation.protocol]
    requireEvents(request, operation)
    const body = request.readBody()
    const name = protocol.modelOf(body, request.model)
    if (request.progress !== undefined) request.progress.model = name
    const found = models.find(name)
    const known = found instanceof Promise ? await found : found
    const model = known ?? (await refuseModel(models, name, caller.mode))
    requireSoldModel(model, request)
    const routes = routesFor(model, by, operation)
    const headers = headersFor(protocol, request.headers(protocol.passesOn))
    const { outputAtMost } = request
    const limits = outputAtMost === undefined ? model.limits : { ...model.limits, outputAtMost }
    const ask = protocol.ask({ body, rawBody: rawBody ?? Buffer.alloc(0), headers }, limits)
    const isFree = FREE.has(operation.protocol)
    // No customer plan scales the price of a model; an agreement with the account does.
    const agreed = isFree ? NOTHING : prices.timesFor(model.id, caller)
    const multiplier = agreed instanceof Promise ? await agreed : agreed
    const { tokenizer } = model
    const outputMost = outputMostOf(ask, routes, model.limits)
    const pricing = pricingOf({ price: priceOfModel(model), ask, outputMost, multiplier }, { counter, tokenizer })
    const heldFor = (outputLimit: number, moreInput = 0) =>
      pricing.heldFor?.(outputMostOf({ ...ask, outputLimit }, routes, model.limits), moreInput) ?? ZERO
    const takers = takersOf(await targetsOf(bindings, routes, caller.mode), ask.unknownMembers, caller.mode)
    // What costs nothing loses nothing.
    const targets = isFree ? takers : lossGuard(takers, { accountId: caller.accountId, sold: model.id })
    const { inputEstimate, outputLimit, choices, isDefaultLimit } = ask
    const limitNames = OUTPUT_LIMITS[by]
    const reserve = { inputEstimate, outputLimit, choices, isDefaultLimit, limitNames }
    const countsTokens = operation.limits.includes('tokens')
    const cancels = (request.onDisconnect ?? caller.onDisconnect) === 'cancel'
    const conversation = () => {
      const said = { accountId: caller.accountId, model: model.id, protocol: by, body, endUser: request.endUser }
      return conversationOf({ ...said, headers: request.headers(SESSION_HEADERS) })
    }
    /** How the one that was asked last counts. */
    let profile = PLAIN_PROFILE
    let upstreamModel = name

    /** A name that can't stand in a header is left out. */
    const told = (name: string | undefined) => (name === undefined ? {} : { [upstreamModelHeader]: name })

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
    async function askOnce(id: Id, target: Target, room: ReplyRoom, growth: Growth | undefined): Promise<Sent> {
      const { binding, route } = target
      profile = route.profile
      upstreamModel = route.upstreamModel
      // What costs nothing does not use up what paying callers need.
      const isCounted = binding.requestsPerMinute !== null && !isFree
      const refusal = isCounted ? await quotaRefusal(quota, binding) : undefined
      if (refusal !== undefined) return notAsked(binding, clock.monotonicMs(), refusal)
      const { stream } = protocol
      if (!ask.isStream || stream === undefined)
        return sendOnce(parts, binding, () => requestTo(id, target, room), readOutline)
      const isStoppable = cancels && route.profile.abort === 'stops'
      const opening = openUntil(parts, { left: isStoppable ? request.whenLeft : undefined, short: growth?.whenShort })
      const sent = await openOnce(
        opening,
        binding,
        () => requestTo(id, target, room),
        (reply) => {
          const reader = stream.createReader(ask, route.profile)
          const limit = outputMostOf(ask, [route], model.limits)
          return {
            reply,
            reader,
            measure: (text, isOwed) =>
              pricing.ofDelivered({
                reported: reader.reported(),
                text,
                isOwed,
                isWhole: reader.state() === 'complete',
              }),
            lost: () => pricing.ofNothing(reader.reported()),
            errorFrame: stream.errorFrame,
            headers: told(upstreamModelIn(undefined, route.upstreamModel)),
            outputGuard: createOutputGuard({ counter, tokenizer, limit }),
            stopsOnAbort: isStoppable,
          }
        },
      )
      if (sent.outcome !== 'unknown' && sent.outcome !== 'not_sent') return sent
      // Nothing has come, and there is no more for it.
      const short = growth?.short()
      if (short !== undefined && sent.outcome === 'not_sent') return { ...sent, failure: shortFault(short) }
      if (short !== undefined) return { ...sent, failure: shortFault(short), owed: () => pricing.ofNothing({}) }
      if (sent.outcome === 'not_sent' || !opening.hasLeft()) return sent
      return { ...sent, owed: () => pricing.ofNothing({}) }
    }

    /** The operator hears of what the upstream says about us. */
    async function attempt(id: Id, target: Target, room: ReplyRoom, growth: Growth | undefined): Promise<Sent> {
      const sent = await askOnce(id, target, room, growth)
      if (sent.outcome !== 'answered' || !isAboutUs(sent.reply.status, sent.reply.json)) return sent
      const { binding, route } = target
      refusedBy({ binding, status: sent.reply.status, target: protocol.target(route.upstreamModel) })
      return sent
    }

    return {
      ...pricing,
      sold: model.id,
      model: name,
      endUser: endUserIn(body),
      isExact: false,
      isFree,
      tokens: countsTokens ? pricing.tokens : 0,
      tokenAdvice: adviceOn(reserve),
      fittingOutput: fittingOutputOf(reserve),
      moneyAdvice: pricing.heldFor
        ? adviceOnMoney({ ...reserve, heldFor, inputMost: ask.inputMost })
        : adviceOnUnits({
            name: 'n',
            units: ask.choices,
            terms: pricing.terms,
            mostOf: proportional(pricing.most, ask.choices),
          }),
      growth: isFree
        ? undefined
        : growthOf({
            ask,
            pricing,
            outputMost,
            profiles: targets.map(({ route }) => route.profile),
            countsTokens,
            limitNames,
          }),
      headers: {
        ...(ask.isDefaultLimit && { [outputCapHeader]: String(ask.outputLimit) }),
        // A limit is never lowered behind anybody's back.
        ...(outputAtMost !== undefined && { [fittedLimitHeader]: String(ask.outputLimit) }),
      },
      ...replyBytesOf(ask, outputMost),
      async send(id, room, growth) {
        const choice = chooseRoutes(
          [...new Set(takers.map(({ route }) => route))],
          conversation,
          // What costs nothing is no traffic that a route has a share of.
          `${model.id} ${by} ${caller.mode} ${isFree ? 'free' : 'paid'}`,
        )
        const inOrder = choice.routes.flatMap((route) => targets.filter((target) => target.route === route))
        const [first] = inOrder
        let last = first
        const sent = await firstToTake(
          inOrder,
          (target) => {
            last = target
            return attempt(id, target, room, growth)
          },
          (sent) => growth?.short() === undefined && mayAskAnother(sent),
          operation.attempts,
        )
        if (first === undefined || last === undefined) return sent
        const { route } = last
        const putLast = () => choice.putLast(route)
        if (hasFailed(sent)) putLast()
        // Where all refuse, the one that was chosen.
        const routing = routingOf(choice, first, mayAskAnother(sent) ? first : last)
        return sent.outcome === 'streaming' ? { ...sent, routing, brokeOff: putLast } : { ...sent, routing }
      },
      measure(reply) {
        const { status, json } = reply
        if (status >= 300) return pricing.nothing()
        // An empty body gave nothing; what can't be read was handed over all the same.
        if (json === undefined) return reply.body.length === 0 ? undefined : pricing.ofUnreadable(textOf(reply))
        const reported = protocol.usageOf(json, profile)
        const [text, form] = [protocol.textOf(json), protocol.formOf(json)]
        return pricing.ofReply({
          json: protocol.restOf?.(json) ?? json,
          reported,
          text,
          form,
          hasMedia: protocol.hasMedia?.(json) ?? true,
          raw: () => textOf(reply) ?? '',
        })
      },
      answer(reply) {
        const answer = passThrough.answer(reply, { input: undefined, query: '', rawBody })
        if (answer === undefined) return answer
        return { ...answer, headers: { ...answer.headers, ...told(upstreamModelIn(reply.json, upstreamModel)) } }
      },
      withCost(reply, answer, cost) {
        if (isFree || reply.status >= 300 || reply.json === undefined || reply.body.length > LARGE_BYTES) return answer
        return { ...answer, body: toldAnswer(reply.body, reply.json, { protocol: by, model: name, cost }) }
      },
      isAboutUs: ({ status, json }) => isAboutUs(status, json),
    }
  }
}

/** Another credential of a slot is another cache, and so no less of a failover than another route. */
function routingOf({ routes, reason }: RouteChoice, first: Target | undefined, taker: Target): Routing {
  const { slot, upstreamModel } = taker.route
  const isFirst = taker === first && taker.route === routes[0]
  return { slot, upstreamModel, reason: isFirst ? reason : 'failover' }
}

/** Of a body that is no JSON, as much as is counted; undefined where it came in an encoding that nobody asked for. */
function textOf({ headers, body }: Incoming): string | undefined {
  return isPlain(headers) ? body.toString('utf8', 0, MOST_TEXT_BYTES) : undefined
}

/** One protocol streams in two forms, of which every library of its callers asks for this one. */
function requireEvents({ query }: CallRequest, { protocol }: ModelOperation): void {
  if (protocol !== 'gemini_stream' || new URLSearchParams(query).get('alt') === 'sse') return
  throw invalidRequest('Streams are sent as server-sent events. Add ?alt=sse to the URL.')
}

function isAboutUs(status: number, json: unknown): boolean {
  if (status < 400) return false
  const error = memberOf(json, 'error')
  const names = ['type', 'code', 'status'].map((name) => memberOf(error, name))
  const details = memberOf(error, 'details')
  const reasons = Array.isArray(details) ? details.slice(0, 10).map((detail) => memberOf(detail, 'reason')) : []
  return ABOUT_US.has(status) || [...names, ...reasons].some((name) => ABOUT_US_BY_NAME.has(name))
}

function mayAskAnother(sent: Sent): boolean {
  if (sent.outcome !== 'answered') return sent.outcome === 'not_sent'
  const { status, json } = sent.reply
  return BUSY.has(status) || isAboutUs(status, json)
}

/** The route is to blame, and no other was asked: nobody knows what it has done. */
function hasFailed(sent: Sent): boolean {
  if (sent.outcome === 'unknown') return isToBlame(sent.failure)
  return sent.outcome === 'answered' && sent.reply.status >= 500 && !mayAskAnother(sent)
}
