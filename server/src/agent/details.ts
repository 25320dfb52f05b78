import { z } from 'zod'
import { listedModel } from '../callers/model-card.ts'
import { GROUPS } from '../catalogue/limit-groups.ts'
import type { JsonSchema } from '../catalogue/member-table.ts'
import { isSoldByUnit, isTask, type Operation, spell } from '../catalogue/operation.ts'
import { modelNotSold, notSold } from '../gateway/require-sold.ts'
import { notConfigured } from '../gateway/routing.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Caller } from '../identity/caller.ts'
import type { Fault } from '../kernel/fault.ts'
import { decimalText } from '../kernel/rational.ts'
import { requestSchemaOf } from '../protocols/request-schema.ts'
import { listed } from './discovery.ts'
import type { FreeOperation, FreeOperations } from './free-operations.ts'
import type { AgentOperations } from './operations.ts'
import type { AgentParts } from './parts.ts'
import type { ToolArguments } from './tool-arguments.ts'

type Parts = Pick<AgentParts, 'models' | 'names' | 'prices' | 'sold'> & {
  readonly operations: AgentOperations
  readonly free: FreeOperations
  /** What a call would cost: as a quote over HTTP says it. */
  readonly quote: (
    request: AgentRequest,
    operation: Operation,
    given: ToolArguments<'use'>['arguments'],
  ) => Promise<unknown>
}

const MODEL = 'model:'
/** A model may think for long; a task is answered as soon as it has begun. */
const MODEL_SECONDS = 600
const TASK_SECONDS = 60
/** What gives no quotes costs nothing. */
const FREE = { expected: { usd: '0.000000000' }, max: { usd: '0.000000000' }, exact: true }
const LEAVING =
  'A call that you stop waiting for goes on and is charged, as over HTTP. Set the timeout of your client accordingly.'

/** Everything that an agent has to know of an operation before it uses it. */
export function createDetails({ operations, free, models, names, prices, sold, quote }: Parts) {
  const schemas = createSchemas()

  return async (
    request: AgentRequest,
    { operation_id: id, arguments: given, schema }: ToolArguments<'get_details'>,
    /** Counts the request, where no quote does. */
    count: () => Promise<void>,
  ) => {
    const { caller } = request
    const operation = operations.find(id)
    const refusal = operation && (await refusalOf(operation, caller))
    const isQuoted = given !== undefined && operation?.quotable === true && refusal === undefined
    if (!isQuoted) await count()
    if (id.startsWith(MODEL)) return ofModel(caller, id)
    const own = free.find(id)
    if (own !== undefined) return ofFree(own, caller, schemas)
    if (operation === undefined) throw operations.unknown(id)
    if (refusal !== undefined) throw refusal
    const { whole, short } = schemas.of(operation)
    const isShort = schema === 'short' && short !== undefined
    return {
      ...listed(operation, caller),
      definition: operation.definition,
      ...(operation.definition === 'pending' && {
        note: 'Its definition is incomplete: what you give passes on as it is, and so does the answer.',
      }),
      arguments: isShort ? short : whole,
      ...(isShort && { more: 'Nested members are left out. Ask again with schema: "full" to see them.' }),
      price_details: await priceOf(operation, caller),
      limits: limitsOf(operation, caller),
      call_may_take_seconds: secondsOf(operation),
      leaving: LEAVING,
      ...(isTask(operation) && { afterwards: AFTERWARDS }),
      ...(isSoldByUnit(operation) && operation.actsFor && { needs: NEEDS_LINK }),
      http: `${operation.method} ${spell(operation.path, { ...names, model: '{model}' })}`,
      examples: [{ operation_id: id, arguments: operation.example, max_price_usd: 0.05 }],
      ...(given !== undefined && {
        price_of_arguments: isQuoted ? withoutQuote(await quote(request, operation, given)) : FREE,
      }),
    }
  }

  async function ofModel(caller: Caller, id: string) {
    const name = id.slice(MODEL.length)
    const model = (await models.list(caller.mode)).find((one) => one.id === name)
    if (model === undefined && (await models.find(name))?.isOff === true) throw modelNotSold(name)
    if (model === undefined) throw operations.unknown(id)
    return { operation_id: id, ...listedModel(model, await sold.operations(caller.mode), caller) }
  }

  /** As a call of it would be refused; undefined where it is offered. */
  async function refusalOf(operation: Operation, { mode }: Caller): Promise<Fault | undefined> {
    const { in: offered, switches } = await sold.now()
    if (offered[mode].some(({ id }) => id === operation.id)) return undefined
    return switches.isOff(operation) ? notSold(operation.id) : notConfigured(mode)
  }

  /** What the caller pays, which may differ from what is published. */
  async function priceOf(operation: Operation, caller: Caller) {
    if (!isSoldByUnit(operation)) return { see: 'The model decides: search for it, or use list_models.' }
    const { contract, unit, unitPrice, isExact } = operation.price
    const { rates, version } = await prices.termsFor(operation, caller)
    return {
      contract,
      unit,
      published_usd: decimalText(unitPrice, 9),
      your_usd: rates[0] === undefined ? null : decimalText(rates[0].price, 9),
      version,
      exact: isExact,
    }
  }
}

const AFTERWARDS =
  'The answer has output.task_id. Poll it with get_video_task every 3 to 5 seconds, at most twice a second, until task_status is SUCCEEDED, FAILED or CANCELED; cancel_video_task ends one that waits; list_video_tasks lists them. All three are free. The price is held until the task has ended, and charged if it succeeds.'
const NEEDS_LINK =
  'An account has to be linked to this key: list_links tells whether one is, auth_link starts it. A person has to open the address and approve.'

type Schemas = ReturnType<typeof createSchemas>
type Described = { readonly whole: JsonSchema; readonly short: JsonSchema | undefined }

/** What each operation takes, made once: to make it costs more than to answer. There are as many as there are operations. */
function createSchemas() {
  const ofOperations = new Map<string, Described>()
  const ofFree = new Map<string, JsonSchema>()

  function describe(operation: Operation): Described {
    const whole = requestSchemaOf(operation)
    const short = whole.$defs === undefined ? undefined : withModel(operation, withoutDefinitions(whole))
    return { whole: withModel(operation, whole), short }
  }

  return {
    of(operation: Operation): Described {
      const made = ofOperations.get(operation.id) ?? describe(operation)
      ofOperations.set(operation.id, made)
      return made
    },
    ofFree({ id, input }: FreeOperation): JsonSchema {
      const { $schema, ...schema } = ofFree.get(id) ?? z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
      ofFree.set(id, schema)
      return schema
    },
  }
}

function ofFree(own: FreeOperation, caller: Caller, schemas: Schemas) {
  const example = { operation_id: own.id, arguments: own.example, max_price_usd: 0 }
  return {
    ...listed(own, caller),
    definition: 'complete',
    arguments: schemas.ofFree(own),
    price_details: { free: true },
    limits: { requests_per_minute: caller.limits.requestsPerMinute },
    call_may_take_seconds: 30,
    changes_something: !own.isReadOnly,
    http: own.http,
    examples: [example],
  }
}

/** Where the model stands in the path, a tool takes it as an argument. */
function withModel({ path }: Operation, schema: JsonSchema): JsonSchema {
  if (!path.includes('{model}')) return schema
  const { properties, required } = schema
  return {
    ...schema,
    properties: { model: { type: 'string', description: 'The name of a model' }, ...Object(properties) },
    required: ['model', ...(Array.isArray(required) ? required : [])],
  }
}

/** What points to a definition that is left out says nothing. */
function withoutDefinitions({ $defs, ...rest }: JsonSchema): JsonSchema {
  const bare = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(bare)
    if (typeof value !== 'object' || value === null) return value
    const kept = Object.entries(value).filter(([name]) => name !== '$ref')
    return Object.fromEntries(kept.map(([name, one]) => [name, bare(one)]))
  }
  return Object(bare(rest))
}

/** No tool redeems a quote: what is said of the price is what counts. */
function withoutQuote(quoted: unknown): unknown {
  const { quote_id, expires_at, ...price } = Object(quoted)
  return price
}

function limitsOf({ limits }: Operation, { limits: own }: Caller) {
  const groups = limits.flatMap((name) => (name in GROUPS ? [[name, Object(GROUPS)[name]] as const] : []))
  return {
    requests_per_minute: own.requestsPerMinute,
    ...(limits.includes('tokens') && { tokens_per_minute: own.tokensPerMinute }),
    ...(limits.includes('concurrency') && { calls_at_once: own.concurrency }),
    ...Object.fromEntries(groups),
  }
}

function secondsOf(operation: Operation): number {
  if (isSoldByUnit(operation)) return operation.upstream.totalMs / 1_000
  return isTask(operation) ? TASK_SECONDS : MODEL_SECONDS
}
