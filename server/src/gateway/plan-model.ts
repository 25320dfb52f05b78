import type { ModelOperation, ModelProtocol } from '../catalogue/operation.ts'
import { memberOf } from '../catalogue/price.ts'
import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { multiply, rational } from '../kernel/rational.ts'
import { passThrough } from '../upstreams/adapters/pass-through.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import type { ModelAsk, Protocol, ProtocolName, Reported, TokenUsage } from '../upstreams/protocols/protocol.ts'
import { countTokensProtocol, headersFor, PROTOCOLS } from '../upstreams/protocols/protocols.ts'
import type { Quota } from '../upstreams/quota.ts'
import type { TokenCounter } from '../upstreams/tokens/count-tokens.ts'
import type { Transport } from '../upstreams/transport.ts'
import { type Model, type ModelPrice, type Models, orderRoutes, priceOfModel, type Route } from './models.ts'
import type { CallRequest } from './pipeline.ts'
import type { Measured, Plan, Sent } from './plan.ts'
import { findBindings, notConfigured } from './plan-data.ts'
import { credentialFor, sendOnce } from './send.ts'
import { openOnce } from './send-stream.ts'
import type { Counts, Terms } from './terms.ts'

type Parts = {
  readonly models: Pick<Models, 'find'>
  readonly bindings: Bindings
  readonly quota: Quota
  readonly transport: Pick<Transport, 'send' | 'open'>
  readonly counter: Pick<TokenCounter, 'count'>
  readonly outputCapHeader: string
  readonly random?: () => number
}

/** The classes in which tokens are priced, and the order of a model's rates and counts. */
const CLASSES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const
const UNITS = {
  input: 'input token',
  output: 'output token',
  cacheRead: 'cache-read token',
  cacheWrite: 'cache-write token',
} as const
const READING = ['input', 'cacheRead', 'cacheWrite'] as const

/** What answers have as a rule, where a limit would allow more. */
const USUAL_OUTPUT = 500
/** So many get the request; those that can't be reached cost little and are not counted among them. */
const ASKED_MOST = 3
const TRIED_MOST = 20
const MINUTE_MS = 60_000
/** A model may think for long before its first word, and between words. */
const DEADLINES = { connectMs: 5_000, headersMs: 10 * MINUTE_MS, idleMs: 5 * MINUTE_MS, totalMs: 60 * MINUTE_MS }
const BODY_BYTES = 64 * 1_048_576

/** What each operation's callers speak, and what their model's upstreams have to. */
const SPOKEN: Readonly<Record<ModelProtocol, { readonly name: ProtocolName; readonly protocol: Protocol }>> = {
  openai: { name: 'openai', protocol: PROTOCOLS.openai },
  anthropic: { name: 'anthropic', protocol: PROTOCOLS.anthropic },
  anthropic_count_tokens: { name: 'anthropic', protocol: countTokensProtocol },
}

/** The model's name there is ours to get right, so that a 404 is no more the caller's than a wrong key. */
const ABOUT_US: ReadonlySet<number> = new Set([401, 402, 403, 404])
const ABOUT_US_BY_TYPE: ReadonlySet<unknown> = new Set([
  'authentication_error',
  'billing_error',
  'insufficient_quota',
  'permission_error',
])

/** Where such an answer comes from one upstream, another may do better, and vendors bill none of them. */
const ASK_ANOTHER: ReadonlySet<number> = new Set([401, 402, 403, 404, 429, 503, 529])

/** A model at the price of its tokens, from the first of its upstreams that takes the call. */
export function createModelPlan(parts: Parts) {
  const { models, bindings, quota, transport, counter, outputCapHeader, random = Math.random } = parts

  return async (request: CallRequest, operation: ModelOperation): Promise<Plan> => {
    const { caller, rawBody } = request
    const { name, protocol } = SPOKEN[operation.protocol]
    const body = request.readBody()
    const model = await modelOf(models, protocol.modelOf(body))
    const routes = routesFor(model, name, operation)
    const headers = headersFor(name, request.headers(protocol.passesOn))
    const ask = protocol.ask({ body, rawBody: rawBody ?? Buffer.alloc(0), headers }, model.limits)
    const terms = termsOf(priceOfModel(model), caller, operation)
    const targets = await targetsOf(bindings, orderRoutes(routes, random), caller.mode)
    if (targets.length === 0) throw notConfigured()
    const meter = createMeter(model, ask, counter)

    const requestTo = (id: Id, { binding, route }: Target) => ({
      method: 'POST' as const,
      target: protocol.path,
      headers: {
        accept: ask.isStream ? 'text/event-stream' : 'application/json',
        'content-type': 'application/json',
        'x-request-id': id,
        ...headers,
        ...credentialFor(binding, protocol.credentialHeader),
      },
      body: ask.bodyFor(route.upstreamModel),
      maxBodyBytes: BODY_BYTES,
      deadlines: DEADLINES,
    })

    /** Asks one of them, once. */
    async function attempt(id: Id, target: Target): Promise<Sent> {
      const { binding } = target
      const taken = await quota.take(binding).catch((fault: unknown) => fault)
      if (taken !== 'taken') return notAsked(binding, taken)
      if (!ask.isStream) return sendOnce(transport, binding, () => requestTo(id, target))
      return openOnce(
        transport,
        binding,
        () => requestTo(id, target),
        (reply) => {
          const reader = protocol.createReader(ask)
          return {
            reply,
            reader,
            measure: (text) => meter.of(reader.reported(), text),
            lost: () => meter.ofNothing(reader.reported()),
            errorFrame: protocol.errorFrame,
          }
        },
      )
    }

    return {
      terms,
      most: mostOf(terms, ask),
      expected: countsOf({ ...NONE, input: ask.inputEstimate, output: usualOutput(ask) }),
      isExact: false,
      tokens: operation.limits.includes('tokens') ? ask.inputEstimate + usualOutput(ask) : 0,
      headers: ask.isDefaultLimit ? { [outputCapHeader]: String(ask.outputLimit) } : {},
      send: (id) => firstToTake(targets, (target) => attempt(id, target)),
      measure(reply) {
        const { status, json } = reply
        if (status >= 300) return { counts: countsOf(NONE) }
        // What can't be read gave the caller nothing that could be counted.
        if (status !== 200 || json === undefined) return undefined
        return meter.of(protocol.usageOf(json), protocol.textOf(json))
      },
      answer: (reply) => passThrough.answer(reply, { input: undefined, query: '', rawBody }),
      isAboutUs: ({ status, json }) => ABOUT_US.has(status) || ABOUT_US_BY_TYPE.has(errorTypeOf(json)),
    }
  }
}

function errorTypeOf(json: unknown): unknown {
  return memberOf(json, 'error', 'type')
}

async function modelOf(models: Parts['models'], name: string): Promise<Model> {
  const model = await models.find(name)
  if (model !== undefined) return model
  const detail = `There is no model ${JSON.stringify(name)}. GET /v1/models lists those that there are.`
  throw new Fault('resource_not_found', { detail })
}

/** Those of its upstreams that speak the caller's protocol; nothing is translated. */
function routesFor({ id, routes }: Model, name: ProtocolName, { path }: ModelOperation): readonly Route[] {
  const found = routes.filter(({ protocol }) => protocol === name)
  if (found.length > 0) return found
  const others = [...new Set(routes.map((route) => PROTOCOLS[route.protocol].path))]
  const instead = others.length === 0 ? 'Nobody serves it yet.' : `It is served at ${others.join(' and ')}.`
  throw new Fault('resource_not_found', { detail: `The model ${id} is not served at ${path}. ${instead}` })
}

function termsOf({ version, rates }: ModelPrice, { priceMultiplier }: Caller, { protocol }: ModelOperation): Terms {
  const multiplier = protocol === 'anthropic_count_tokens' ? rational(0n) : priceMultiplier
  return {
    version,
    rates: CLASSES.map((name) => ({
      unit: UNITS[name],
      ...rates[name],
      price: multiply(rates[name].published, multiplier),
    })),
  }
}

/** All of the input at the dearest price that input can have, and all of the output that may come. */
function mostOf({ rates }: Terms, { inputMost, outputLimit, choices }: ModelAsk): Counts {
  const priceOf = (name: (typeof READING)[number]) => {
    const { numerator, denominator } = rates[CLASSES.indexOf(name)]?.price ?? rational(0n)
    return Number(numerator) / Number(denominator)
  }
  const dearest = READING.toSorted((a, b) => priceOf(b) - priceOf(a))[0] ?? 'input'
  return countsOf({ ...NONE, [dearest]: inputMost, output: outputLimit * choices })
}

function usualOutput({ outputLimit, choices }: ModelAsk): number {
  return Math.min(outputLimit, USUAL_OUTPUT) * choices
}

const NONE: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const countsOf = (usage: TokenUsage): Counts => CLASSES.map((name) => BigInt(usage[name]))

type Target = { readonly route: Route; readonly binding: Binding }

async function targetsOf(bindings: Bindings, routes: readonly Route[], mode: Binding['mode']): Promise<Target[]> {
  const found = await Promise.all(
    routes.map(async (route) =>
      (await findBindings(bindings, route.slot, mode)).map((binding) => ({ route, binding })),
    ),
  )
  return found.flat()
}

/** One after the other, while it is certain that none of those before has begun the call. All attempts are told. */
async function firstToTake(targets: readonly Target[], attempt: (target: Target) => Promise<Sent>): Promise<Sent> {
  const attempts: Sent['attempts'][number][] = []
  const tried = targets.slice(0, TRIED_MOST)
  for (const [place, target] of tried.entries()) {
    const sent = await attempt(target)
    attempts.push(...sent.attempts)
    const asked = attempts.filter(({ outcome }) => outcome !== 'not_sent').length
    const isLast = place === tried.length - 1 || asked >= ASKED_MOST
    const mayGoOn = sent.outcome === 'not_sent' || (sent.outcome === 'answered' && ASK_ANOTHER.has(sent.reply.status))
    if (isLast || !mayGoOn) return { ...sent, attempts }
  }
  throw notConfigured()
}

/** Our quota with the upstream is used up, or could not be asked for. */
function notAsked({ slot, kind }: Binding, why: unknown): Sent {
  const seconds =
    typeof why === 'object' && why !== null && 'retryAfterSeconds' in why ? why.retryAfterSeconds : undefined
  const isSpent = !(why instanceof Error) && typeof seconds === 'number'
  const failure = isSpent ? new Fault('upstream_rate_limit', { retryAfterSeconds: seconds }) : why
  return {
    attempts: [{ slot, outcome: 'not_sent', status: null, reason: 'quota' }],
    kind,
    outcome: 'not_sent',
    failure,
  }
}

/** Counts what an upstream did not report, by what went in and what was delivered. */
function createMeter({ tokenizer }: Model, ask: ModelAsk, counter: Parts['counter']) {
  const counted = async (reported: Reported, text: string): Promise<Measured> => {
    const isReported = reported.input !== undefined && reported.output !== undefined
    const [input, output] = await Promise.all([
      reported.input ?? counter.count(ask.inputText(), tokenizer),
      reported.output ?? counter.count(text, tokenizer),
    ])
    // What was counted is all of the input, from wherever it was read.
    const caches = reported.input === undefined ? {} : reported
    return measured({ ...NONE, ...caches, input, output }, isReported ? 'provider' : 'counted')
  }
  return {
    /** Undefined where nothing was delivered, and no output reported. */
    async of(reported: Reported, text: string): Promise<Measured | undefined> {
      return text === '' && reported.output === undefined ? undefined : counted(reported, text)
    },
    ofNothing: (reported: Reported) => counted({ output: 0, ...reported }, ''),
  }
}

function measured(usage: TokenUsage, source: Measured['source'] & string): Measured {
  return {
    counts: countsOf(usage),
    inputTokens: usage.input,
    outputTokens: usage.output,
    cacheReadTokens: usage.cacheRead,
    cacheWriteTokens: usage.cacheWrite,
    source,
  }
}
