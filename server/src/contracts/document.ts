import type { JsonSchema } from '../catalogue/member-table.ts'
import { FAULTS, type FaultCode } from '../kernel/fault.ts'
import { createComponents, type SchemaPlace } from './components.ts'
import type { ContractAnswer, ContractParameter, ContractRoute, HeaderWords, Refusals } from './route.ts'

/** Everything that a contract is made from but what an installation spells. Equal inputs give equal bytes. */
export type ContractInput = {
  readonly title: string
  readonly description: string
  readonly version: string
  /** What each tag is about. */
  readonly tags: Readonly<Record<string, string>>
  readonly routes: readonly ContractRoute[]
  /** How refusals look, by dialect. */
  readonly refusals: Readonly<Record<string, RefusalShape>>
  /** What requests can be made with, of which one is enough; an API key or a token where left out. */
  readonly credentials?: Readonly<Record<string, JsonSchema>>
  /** Headers of answers, by their names. */
  readonly headers: Readonly<Record<string, HeaderWords>>
}

/** A refusal in JSON, and as a page where people come too. */
export type RefusalShape = { readonly type: string; readonly schema: JsonSchema; readonly page?: string }

/** The version of OpenAPI that every contract of ours is written in. */
export const OPENAPI = '3.0.3'
/** On every answer. */
const REQUEST_ID = 'X-Request-ID'
const RETRY_AFTER = 'Retry-After'

const KEY_OR_TOKEN: NonNullable<ContractInput['credentials']> = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key, or an OAuth access token, as `Authorization: Bearer <credential>`.',
  },
}
const JSON_TYPE = 'application/json'

/** For answers that nobody here describes. */
export const PROVIDER_BODY: JsonSchema = { description: 'What the provider sent, as it came.' }

/** A provider's own words about our account are never passed on, and neither is its rate limit. */
const NEVER_A_PROVIDERS: ReadonlySet<number> = new Set([401, 402, 429])

/** The document as a value, without the address of an installation. It has the interface alone: what anything costs is told by quotes. */
export function openapiOf(input: ContractInput): JsonSchema {
  const components = createComponents()
  const parts = { input, components }
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of input.routes) {
    const methods = paths[route.path] ?? {}
    paths[route.path] = methods
    const method = route.method.toLowerCase()
    if (methods[method] !== undefined) throw new Error(`${route.method} ${route.path} is described twice`)
    methods[method] = operationOf(parts, route)
  }
  const used = new Set(input.routes.map(({ tag }) => tag))
  return {
    openapi: OPENAPI,
    info: {
      title: input.title,
      description: input.description,
      version: input.version,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    // Each installation has its own.
    servers: [],
    tags: [...used].sort().map((name) => ({ name, description: input.tags[name] ?? missing(`the tag ${name}`) })),
    security: securityBy(input),
    paths,
    components: {
      ...components.all(),
      securitySchemes: input.credentials ?? KEY_OR_TOKEN,
    },
  }
}

type Parts = { readonly input: ContractInput; readonly components: ReturnType<typeof createComponents> }

function operationOf(parts: Parts, route: ContractRoute): JsonSchema {
  const { operationId, summary, tag, definition, access, body } = route
  const place = parts.components.placeFor(operationId)
  return {
    operationId,
    summary,
    ...descriptionOf(route),
    tags: [tag],
    ...(definition === 'pending' && { 'x-definition': 'pending' }),
    ...securityOf(access, parts.input),
    ...(route.parameters !== undefined && {
      parameters: route.parameters.map((one) => parameterOf(one, place)),
    }),
    ...(body && {
      requestBody: {
        required: body.required,
        ...(body.description !== undefined && { description: body.description }),
        content: { [body.type ?? JSON_TYPE]: { schema: place('Request', body.schema) } },
      },
    }),
    responses: responsesOf(parts, route, place),
  }
}

const PENDING =
  'Pending: the definition of this operation is incomplete. What is not described here passes through as it came, in both directions; no name of a field is promised.'

function descriptionOf({ definition, description, passesOn }: ContractRoute): { readonly description?: string } {
  const said = [definition === 'pending' && passesOn === true ? PENDING : undefined, description].filter(
    (one) => one !== undefined,
  )
  return said.length === 0 ? {} : { description: said.join('\n\n') }
}

function securityBy({ credentials = KEY_OR_TOKEN }: ContractInput): readonly JsonSchema[] {
  return Object.keys(credentials).map((name) => ({ [name]: [] }))
}

function securityOf(
  access: ContractRoute['access'],
  input: ContractInput,
): { readonly security?: readonly JsonSchema[] } {
  if (access === 'credential') return {}
  return { security: access === 'public' ? [] : [...securityBy(input), {}] }
}

function parameterOf(
  { in: where, name, description, required = where === 'path', schema, isForOthers }: ContractParameter,
  place: SchemaPlace,
): JsonSchema {
  return {
    in: where,
    name,
    description,
    required,
    ...(isForOthers && { style: 'form', explode: true }),
    schema: place.inline(schema),
  }
}

function responsesOf(parts: Parts, route: ContractRoute, place: SchemaPlace): JsonSchema {
  const responses: Record<string, unknown> = {}
  const answers = Object.entries(route.answers)
  for (const [status, answer] of answers) {
    const name = answers.length === 1 ? 'Answer' : `Answer${status}`
    responses[status] = answerOf(parts, answer, (type, schema) =>
      type === JSON_TYPE ? place(name, schema) : place.inline(schema),
    )
  }
  for (const [status, codes] of byStatus(route.refusals)) {
    // A status may be an answer and a refusal: whoever has a record of the task gets that.
    if (responses[status] === undefined) responses[status] = refusalOf(parts, route, status, codes)
  }
  if (route.passesOn) responses.default = passedOn(parts)
  return responses
}

type Put = (type: string, schema: JsonSchema) => JsonSchema

function answerOf({ components, input }: Parts, answer: ContractAnswer, put: Put) {
  const { description, content, headers = [] } = answer
  return {
    description,
    headers: components.headers([REQUEST_ID, ...headers], input.headers),
    ...(content && {
      content: Object.fromEntries(
        Object.entries(content).map(([type, schema]) => [type, { schema: put(type, schema) }]),
      ),
    }),
  }
}

function byStatus(refusals: Refusals | undefined): ReadonlyMap<number, readonly FaultCode[]> {
  return Map.groupBy([...(refusals?.codes ?? [])].sort(), (code) => FAULTS[code].status)
}

/** Routes that refuse alike share the description of it. */
function refusalOf({ input, components }: Parts, route: ContractRoute, status: number, codes: readonly FaultCode[]) {
  const { name, dialect: usual, dialectOf400 = usual } = route.refusals ?? missing('how it refuses')
  const dialect = status === 400 ? dialectOf400 : usual
  const { type, schema, page } = input.refusals[dialect] ?? missing(`the dialect ${dialect}`)
  const isEither = route.passesOn === true && !NEVER_A_PROVIDERS.has(status)
  return components.response(`${name}_${dialect}_${status}`, () => {
    const ours = components.shared(`${dialect}_error`, schema)
    const says = codes.map((code) => `- \`${code}\`: ${FAULTS[code].text}`).join('\n')
    return {
      description: `${isEither ? 'Refused by us, or the answer of the provider. ' : ''}Our codes:\n\n${says}`,
      'x-error-codes': codes,
      headers: components.headers([REQUEST_ID, ...(status === 429 ? [RETRY_AFTER] : [])], input.headers),
      content: {
        [type]: { schema: isEither ? { anyOf: [ours, components.shared('ProviderBody', PROVIDER_BODY)] } : ours },
        ...(page !== undefined && { [page]: { schema: { type: 'string' } } }),
        ...(isEither && { '*/*': { schema: {} } }),
      },
    }
  })
}

function passedOn({ input, components }: Parts): JsonSchema {
  return components.response('provider_answer', () => ({
    description: 'An answer of the provider, passed on with its own status, body and content type.',
    headers: components.headers([REQUEST_ID], input.headers),
    content: { '*/*': { schema: {} } },
  }))
}

function missing(what: string): never {
  throw new Error(`${what} is described nowhere`)
}
