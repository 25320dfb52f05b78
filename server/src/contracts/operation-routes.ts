import { HOLDINGS } from '../catalogue/holding.ts'
import type { JsonSchema } from '../catalogue/member-table.ts'
import { ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import {
  type DataOperation,
  isSoldByUnit,
  isTask,
  type ModelOperation,
  type Names,
  type Operation,
  spell,
} from '../catalogue/operation.ts'
import { FITS } from '../gateway/fit.ts'
import { ANTHROPIC_RATE_HEADERS, RATE_HEADERS } from '../limits/headers.ts'
import { quoteBody } from '../pricing/quote-body.ts'
import { OUTPUT_LIMITS } from '../protocols/output-limits.ts'
import { SPOKEN } from '../protocols/protocols.ts'
import { REPLIES } from '../protocols/reply-schema.ts'
import { requestSchemaOf } from '../protocols/request-schema.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import { PROVIDER_BODY } from './document.ts'
import { parametersOf } from './query-parameters.ts'
import { refusalsOf } from './refusals.ts'
import type { ContractAnswer, ContractParameter, ContractRoute } from './route.ts'
import { schemaOf } from './schema-of.ts'

type Parts = { readonly names: Names; readonly headerNames: HeaderNames; readonly taskCreated: JsonSchema }

/** What is sold, as a contract has it. Everything comes from the operation's record; nothing is written here a second time. */
export function routesOfOperations(operations: readonly Operation[], parts: Parts): readonly ContractRoute[] {
  return operations.map((operation) => routeOf(operation, parts))
}

/** The model stands in the path in one protocol, and stays a parameter of the contract. */
const MODEL = 'model'

function routeOf(operation: Operation, parts: Parts): ContractRoute {
  const { id, method, path, summary, category, definition, isHidden } = operation
  const request = requestSchemaOf(operation)
  const inQuery = method === 'GET'
  return {
    operationId: id,
    method,
    path: spell(path, { ...parts.names, [MODEL]: `{${MODEL}}` }),
    summary,
    tag: category,
    ...(definition === 'pending' && { definition }),
    access: isHidden ? 'optional' : 'credential',
    parameters: [
      ...(inQuery ? queryOf(request) : []),
      ...(path.includes(`{${MODEL}}`) ? [MODEL_IN_PATH] : []),
      ...(operation.protocol === 'gemini_stream' ? [AS_EVENTS] : []),
      ...headersOf(operation, parts.headerNames),
    ],
    ...(!inQuery && { body: { required: true, schema: request } }),
    answers: { 200: answerOf(operation, parts) },
    refusals: refusalsOf(operation),
    passesOn: true,
  }
}

const MODEL_IN_PATH: ContractParameter = {
  in: 'path',
  name: MODEL,
  description: 'The name of a model. Its slashes may be encoded or not.',
  schema: { type: 'string', minLength: 1 },
}

const AS_EVENTS: ContractParameter = {
  in: 'query',
  name: 'alt',
  description: 'Streams are given as server-sent events.',
  required: true,
  schema: { type: 'string', enum: ['sse'] },
}

/** Those that are known, each by its name; whatever else stands in the query passes through. Refused ones are named in words. */
function queryOf(request: JsonSchema): readonly ContractParameter[] {
  const all = parametersOf(request, 'Passed on to the provider.')
  const refused = all.filter(({ schema }) => schema.not !== undefined)
  return [
    ...all.filter((one) => !refused.includes(one)),
    {
      in: 'query',
      name: 'others',
      description: [
        'Any other parameter, under its own name. It passes on to the provider as it came.',
        ...refused.map(({ name, description }) => `\`${name}\`: ${description}.`),
      ].join(' '),
      schema: { type: 'object', additionalProperties: { type: 'string' } },
      isForOthers: true,
    },
  ]
}

function headersOf(operation: Operation, names: HeaderNames): readonly ContractParameter[] {
  const header = (name: string, description: string, schema: JsonSchema, required = false): ContractParameter => ({
    in: 'header',
    name,
    description,
    required,
    schema,
  })
  return [
    header(
      'Idempotency-Key',
      'Makes a repetition safe: a second call with the same key and operation is not executed while the first runs or has completed.',
      { type: 'string', minLength: 1, maxLength: 255 },
    ),
    header(
      names.maxCost,
      'The most that the call may cost, in decimal USD. A higher price is refused before any spend.',
      {
        type: 'string',
        pattern: '^\\d{1,9}(\\.\\d{1,9})?$',
      },
    ),
    header(
      names.endUser,
      'For whom the call is made, in place of what the body says. Reports count it, and budgets of end users limit it.',
      { type: 'string', minLength: 1, maxLength: 512 },
    ),
    header(
      names.tags,
      'Whose spend the call is, as name=value pairs separated by commas, such as team=search,run=42. Tags that the key fixes beat them.',
      { type: 'string', minLength: 1 },
    ),
    header(names.tell, 'What a whole answer is to tell beside its cost, in a header of its own.', {
      type: 'string',
      enum: ['budget'],
    }),
    ...(operation.quotable
      ? [
          header(names.costMode, 'Asks for a quote in place of the call. Nothing is executed, held or charged.', {
            type: 'string',
            enum: ['quote'],
          }),
          header(names.quoteId, 'The quote that the call is to be charged by, once.', {
            type: 'string',
            maxLength: 8_100,
          }),
        ]
      : []),
    ...(isOfModels(operation) && SPOKEN[operation.protocol].protocol.stream !== undefined
      ? [
          header(
            names.onDisconnect,
            "What becomes of a stream whose caller leaves: it is heard out and charged as reported, or given up at once where that stops the provider's meter. As the key says where left out.",
            { type: 'string', enum: [...ON_DISCONNECT] },
          ),
          header(
            names.hold,
            'What is held for a stream: the most that it can cost, so that it is never cut for want of money, or what it needs as it goes on, where its provider allows that. As the key says where left out.',
            { type: 'string', enum: [...HOLDINGS] },
          ),
        ]
      : []),
    ...(isOfModels(operation) && OUTPUT_LIMITS[SPOKEN[operation.protocol].by].length > 0
      ? [
          header(
            names.fit,
            'What becomes of a call whose output limit is more than balance, budget, cap or tokens a minute allow: it is made with the largest that fits. It is refused where left out.',
            { type: 'string', enum: [...FITS] },
          ),
        ]
      : []),
    ...(isOfModels(operation)
      ? SPOKEN[operation.protocol].protocol.passesOn.map((name) =>
          header(name, 'Of the protocol; passed on to the provider.', { type: 'string' }),
        )
      : []),
    ...(isTask(operation)
      ? [
          header(
            names.async,
            'Says that the caller knows that it creates a task.',
            { type: 'string', enum: ['enable'] },
            true,
          ),
        ]
      : []),
  ]
}

function answerOf(operation: Operation, { headerNames, taskCreated }: Parts): ContractAnswer {
  const limited = [...RATE_HEADERS, ...(operation.dialect === 'anthropic' ? ANTHROPIC_RATE_HEADERS : [])]
  const charged = isTask(operation)
    ? [headerNames.held, headerNames.budget, headerNames.priceVersion]
    : [headerNames.cost, headerNames.balance, headerNames.budget, headerNames.priceVersion]
  const capped = isOfModels(operation)
    ? [headerNames.outputCap, headerNames.fittedLimit, headerNames.upstreamModel]
    : []
  const own = isTask(operation) ? taskCreated : isSoldByUnit(operation) ? outputOf(operation) : replyOf(operation)
  const frame = frameOf(operation)
  const held = mayStream(operation) ? [headerNames.hold] : []
  return {
    description: [
      operation.quotable ? 'The answer of the call, or a quote where one was asked for.' : 'The answer.',
      ...(frame === undefined ? [] : [`The \`data\` of a frame of a stream has ${pathsIn(frame).join(', ')}.`]),
    ].join(' '),
    headers: [...charged, ...capped, ...held, ...limited],
    content: {
      'application/json': operation.quotable ? eitherOf(own, QUOTE) : own,
      ...(frame !== undefined && { 'text/event-stream': { ...STREAM, 'x-frame': frame } }),
      // What a provider sends in another form is passed on in that.
      '*/*': {},
    },
  }
}

const QUOTE: JsonSchema = schemaOf(quoteBody)

/** Their definitions are put side by side. */
function eitherOf(a: JsonSchema, b: JsonSchema): JsonSchema {
  const { $defs: ofA, ...first } = a
  const { $defs: ofB, ...second } = b
  return { anyOf: [first, second], $defs: { ...Object(ofA), ...Object(ofB) } }
}

/** Vendors describe the rest of their protocols themselves, and their SDKs know it. */
const THE_REST = 'Its other members are the provider’s, and are passed on as they came.'

function replyOf({ protocol }: ModelOperation): JsonSchema {
  return {
    ...schemaOf(REPLIES[protocol].whole),
    description: `An answer of the protocol, with the members that the gateway reads, the model as it was asked for and \`cost_usd\` in its usage. ${THE_REST}`,
  }
}

const STREAM: JsonSchema = {
  type: 'string',
  description: 'Frames of the protocol as server-sent events. `x-frame` is what the `data` of each has.',
}

function frameOf(operation: Operation): JsonSchema | undefined {
  const frame = isOfModels(operation) ? REPLIES[operation.protocol].frame : undefined
  return frame && { ...schemaOf(frame), description: `The members that the gateway reads. ${THE_REST}` }
}

function mayStream(operation: Operation): boolean {
  return isOfModels(operation) && SPOKEN[operation.protocol].protocol.stream !== undefined
}

/** The members of a value and theirs, by their paths, such as `choices[].index`. */
function pathsIn({ properties, items, anyOf }: JsonSchema, path = ''): readonly string[] {
  if (properties !== undefined)
    return Object.entries(Object(properties)).flatMap(([name, one]) =>
      pathsIn(Object(one), path === '' ? name : `${path}.${name}`),
    )
  if (items !== undefined) return pathsIn(Object(items), `${path}[]`)
  const inner = (Array.isArray(anyOf) ? anyOf : []).find((one) => one.properties ?? one.items)
  return inner === undefined ? [`\`${path}\``] : pathsIn(inner, path)
}

function isOfModels(operation: Operation): operation is ModelOperation {
  return !isSoldByUnit(operation) && !isTask(operation)
}

/** What is described nowhere is told as such. */
const UNDESCRIBED: JsonSchema = { $ref: '#/$defs/ProviderBody', $defs: { ProviderBody: PROVIDER_BODY } }

function outputOf({ output }: DataOperation): JsonSchema {
  const schema = schemaOf(output)
  return Object.keys(schema).length === 0 ? UNDESCRIBED : schema
}
