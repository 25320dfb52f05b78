import type { HandOver } from '../../calls/call.ts'
import type { Calls } from '../../calls/calls.ts'
import type { TaskOperation } from '../../catalogue/operation.ts'
import { memberOf } from '../../catalogue/price.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault, invalidRequest } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import type { ReplyRoom } from '../../kernel/memory-budget.ts'
import type { Seal } from '../../kernel/seal.ts'
import { Secret } from '../../kernel/secret.ts'
import { videoPricingOf } from '../../pricing/by-second.ts'
import { type Models, priceOfModel } from '../../pricing/models.ts'
import type { Prices } from '../../pricing/prices.ts'
import { modelOf } from '../../protocols/members.ts'
import { askOfVideo, createdIn, VIDEO } from '../../protocols/video.ts'
import type { Answer } from '../../upstreams/adapters/adapter.ts'
import { passThrough } from '../../upstreams/adapters/pass-through.ts'
import type { Bindings } from '../../upstreams/bindings.ts'
import type { Quota } from '../../upstreams/quota.ts'
import type { Transport } from '../../upstreams/transport.ts'
import { adviceOnUnits, proportional } from '../../wording/money-advice.ts'
import type { CallRequest } from '../call-request.ts'
import type { LossGuard } from '../loss-guard.ts'
import type { Plan, Sent, TaskPlan } from '../plan.ts'
import { DATA_REPLY_BYTES } from '../reply-bytes.ts'
import { requireSoldModel } from '../require-sold.ts'
import {
  firstToTake,
  notAsked,
  notConfigured,
  quotaRefusal,
  refuseModel,
  routesFor,
  type Target,
  targetsOf,
} from '../routing.ts'
import { credentialFor, DEADLINES, sendOnce } from '../send.ts'
import type { TellRefused } from '../tell-refused.ts'
import { orderRoutes } from './route-order.ts'
import { boundToTask } from './video-tasks.ts'

type Parts = {
  readonly models: Pick<Models, 'find' | 'list'>
  readonly bindings: Bindings
  readonly quota: Quota
  readonly transport: Pick<Transport, 'send'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly calls: Pick<Calls, 'handOver' | 'leaveUnsettled'>
  /** Null without a master key: nothing that a caller writes is kept in the clear, so that no task can be made then. */
  readonly seal: Seal | null
  /** By which a caller says that it knows that it creates a task; in lower case. */
  readonly asyncHeader: string
  /** Our provider's word, which an upstream may spell otherwise. */
  readonly provider: string
  readonly lossGuard: LossGuard
  readonly refusedBy: TellRefused
  readonly prices: Pick<Prices, 'timesFor'>
}

const BODY_BYTES = 1_048_576
const CREATE_MS = 60_000

const ABOUT_US: ReadonlySet<number> = new Set([401, 402, 403, 404])
const ABOUT_US_BY_CODE = /^(InvalidApiKey|Arrearage|AccessDenied|Model\.AccessDenied|ModelNotFound)/
/** The upstream, or who stands before it, has waited long enough: it may have made it all the same. */
const DOUBTFUL: ReadonlySet<number> = new Set([408, 502, 504])

/** An error of the vendor's own has its code beside its message. */
function codeOf(json: unknown): string | undefined {
  const [code, message] = [memberOf(json, 'code'), memberOf(json, 'message')]
  return typeof code === 'string' && typeof message === 'string' ? code : undefined
}

/** Whether nothing was made: refused as a request, or failed in the vendor's own words. Whoever else fails may not know. */
function isRefusal(status: number, json: unknown): boolean {
  if (status < 300 || DOUBTFUL.has(status)) return false
  return status < 500 || codeOf(json) !== undefined
}

/** Some errors about our account come as if they were about the request. */
function isAboutUs(status: number, json: unknown): boolean {
  return status >= 400 && (ABOUT_US.has(status) || ABOUT_US_BY_CODE.test(codeOf(json) ?? ''))
}

/** Another one is asked only where this one has certainly made nothing, and not because of what it was asked for. */
function mayAskAnother(sent: Sent): boolean {
  if (sent.outcome !== 'answered') return sent.outcome === 'not_sent'
  const { status, json } = sent.reply
  return status < 500 && isRefusal(status, json) && (status === 429 || isAboutUs(status, json))
}

/** A video at the price of its seconds. The upstream is asked once to make it; after a doubt it is never asked again. */
export function createVideoPlan(parts: Parts) {
  const { models, bindings, quota, clock, asyncHeader, lossGuard, refusedBy, prices } = parts

  return async (request: CallRequest, operation: TaskOperation): Promise<Plan> => {
    const { caller, rawBody } = request
    requireAsync(request, asyncHeader)
    const body = request.readBody()
    const name = modelOf(body)
    const model = (await models.find(name)) ?? (await refuseModel(models, name, caller.mode))
    requireSoldModel(model, request)
    const routes = routesFor(model, 'video', operation)
    const ask = askOfVideo(body, rawBody ?? Buffer.alloc(0), model.limits)
    // No customer plan scales the price of a model; an agreement with the account does.
    const multiplier = await prices.timesFor(model.id, caller)
    const pricing = videoPricingOf({ price: priceOfModel(model), ask, multiplier })
    const found = await targetsOf(
      bindings,
      orderRoutes(routes, () => 1 - Math.random()),
      caller.mode,
    )
    if (found.length === 0) throw notConfigured(caller.mode)
    const targets = lossGuard(found, { accountId: caller.accountId, sold: model.id })
    let asked: Target | undefined

    async function askOnce(id: Id, target: Target, room: ReplyRoom): Promise<Sent> {
      const { binding, route } = target
      asked = target
      const refusal = await quotaRefusal(quota, binding)
      if (refusal !== undefined) return notAsked(binding, clock.monotonicMs(), refusal)
      return sendOnce(parts, binding, () => ({
        method: 'POST',
        target: VIDEO.createTarget,
        headers: {
          accept: 'application/json',
          'content-type': 'application/json',
          'x-request-id': id,
          [`x-${binding.segments.provider ?? parts.provider}-async`.toLowerCase()]: 'enable',
          ...credentialFor(binding, VIDEO.credentialHeader),
        },
        body: ask.bodyFor(route.upstreamModel),
        maxBodyBytes: BODY_BYTES,
        room,
        deadlines: { ...DEADLINES, totalMs: CREATE_MS },
      }))
    }

    /** The operator hears of what the upstream says about us. */
    async function attempt(id: Id, target: Target, room: ReplyRoom): Promise<Sent> {
      const sent = await askOnce(id, target, room)
      if (sent.outcome !== 'answered' || !isAboutUs(sent.reply.status, sent.reply.json)) return sent
      const { binding } = target
      refusedBy({ binding, status: sent.reply.status, target: VIDEO.createTarget })
      return sent
    }

    return {
      ...pricing,
      moneyAdvice: adviceOnUnits({
        name: 'parameters.duration',
        units: ask.secondsMost,
        terms: pricing.terms,
        mostOf: proportional(pricing.most, ask.secondsMost),
      }),
      sold: model.id,
      model: name,
      isExact: false,
      tokens: 0,
      headers: {},
      replyBytes: DATA_REPLY_BYTES,
      replyMostBytes: BODY_BYTES,
      send: (id, room) =>
        firstToTake(targets, (target) => attempt(id, target, room), mayAskAnother, operation.attempts),
      // Whatever ends a call here has made nothing.
      measure: () => ({ counts: pricing.terms.rates.map(() => 0n) }),
      answer: (reply) => passThrough.answer(reply, { input: undefined, query: '', rawBody }),
      isAboutUs: ({ status, json }) => isAboutUs(status, json),
      task: taskPlan(parts, { model: model.id, prompt: ask.prompt, asked: () => asked?.binding }),
    }
  }
}

type Created = {
  readonly model: string
  readonly prompt: string
  /** Who was asked last. */
  readonly asked: () => HandOver['upstream'] | undefined
}

function taskPlan({ calls, seal }: Parts, { model, prompt, asked }: Created): TaskPlan {
  if (seal === null) throw new Fault('not_configured')
  return {
    begun: (id) => ({ model, prompt: seal.seal(new Secret(prompt), boundToTask(id, 'prompt')) }),
    async handOver(id, sent) {
      if (sent.outcome === 'not_sent') return undefined
      if (sent.outcome === 'answered' && isRefusal(sent.reply.status, sent.reply.json)) return undefined
      const created = sent.outcome === 'answered' ? createdIn(sent.reply.json) : undefined
      const upstream = asked()
      if (created === undefined || upstream === undefined) {
        // It may have been made, and must never be made again.
        await calls.leaveUnsettled(id)
        return createdAnswer(id, 'PENDING')
      }
      const isKnown = await calls.handOver({ id, upstream, ...created })
      // Until that is written down it waits, as far as anybody here can say: nothing that is told is taken back.
      return createdAnswer(id, isKnown ? created.state : 'PENDING')
    },
  }
}

function createdAnswer(id: Id, state: 'PENDING' | 'RUNNING'): Answer {
  const body = { output: { task_id: id, task_status: state }, request_id: id }
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

function requireAsync({ headers }: CallRequest, name: string): void {
  if (headers([name])[name]?.toLowerCase() === 'enable') return
  throw invalidRequest(`Videos are asynchronous tasks. Send the header ${name}: enable.`)
}
