import { Ajv, type ValidateFunction } from 'ajv'
import { contractHere } from '../../harness/recorded-contract.ts'
import { unquotable } from '../acceptance/hostile-operations.ts'
import { imaginedForecast, imaginedModel } from '../acceptance/one-more-operation.ts'

/** An answer that a caller got, and what it had asked. */
export type Exchange = {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly asked: Headers
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** An upstream of the test's own answered what no provider would; what it gave is passed on, and not described. */
  readonly isDeviant?: boolean
}

type Members = Readonly<Record<string, unknown>>

type Place = {
  readonly operationId: string
  readonly method: string
  readonly pattern: RegExp
  readonly responses: Members
}

const QUOTE = { $ref: 'contract#/components/schemas/Quote' }

/** Holds answers against a contract, by a validator that is not ours. */
export function createDeclared(bytes: Buffer) {
  const document = Object(JSON.parse(bytes.toString('utf8'), forAjv))
  const ajv = new Ajv({ strict: false, validateFormats: false, validateSchema: false })
  ajv.addSchema({ components: document.components }, 'contract')
  const places = placesIn(document)
  const compiled = new Map<unknown, ValidateFunction>()

  function breach(value: unknown, schema: unknown): string | undefined {
    const validate = compiled.get(schema) ?? ajv.compile(Object(schema))
    compiled.set(schema, validate)
    return validate(value) ? undefined : ajv.errorsText(validate.errors).slice(0, 500)
  }

  const resolved = (value: unknown): Members => {
    const { $ref } = Object(value)
    if (typeof $ref !== 'string') return Object(value)
    return $ref
      .replace('contract#/', '')
      .split('/')
      .reduce((found: unknown, step) => Object(found)[step], document) as Members
  }

  const find = ({ method, path }: Pick<Exchange, 'method' | 'path'>): Place | undefined => {
    // As whoever sends it reads it: some spellings never leave a client.
    const place = decoded(new URL(`http://localhost${path}`).pathname)
    return places.find((one) => one.method === method && one.pattern.test(place))
  }

  /** Why an answer is not what the contract declares; undefined where it is. */
  function undeclared(exchange: Exchange): string | undefined {
    const { status, headers, text } = exchange
    if (!/^[0-9a-f-]{36}$/.test(headers.get('x-request-id') ?? '')) return 'there is no X-Request-ID'
    const place = find(exchange)
    // Of what is nowhere there are only refusals.
    if (place === undefined) return status >= 400 ? undefined : `${status}, and no operation has this method and path`
    const found = place.responses[String(status)] ?? place.responses.default
    if (found === undefined) return `${place.operationId} declares no ${status}`
    const response = resolved(found)
    for (const [name, header] of Object.entries(Object(response.headers))) {
      const value = headers.get(name)
      const { schema } = resolved(header)
      const is = Object(schema).type === 'integer' ? Number(value) : value
      const wrong = value === null ? undefined : breach(is, schema)
      if (wrong !== undefined) return `${name}: ${value} ${wrong}`
    }
    if (response.content === undefined) return text === '' ? undefined : `${status} has a body`
    const content = Object(response.content)
    const [type = ''] = (headers.get('content-type') ?? '').split(';')
    const declared = content[type] ?? content['*/*']
    if (declared === undefined) return `${place.operationId} declares no ${type} for ${status}`
    const isCall = place.responses.default !== undefined
    const isPassedOn = exchange.isDeviant === true && isCall
    if (!type.endsWith('json') || (isPassedOn && status === 200)) return undefined
    if (isCall && status === 200 && exchange.asked.get('x-farebox-cost-mode') === 'quote')
      return ofJson(exchange, response, QUOTE)
    return ofJson(exchange, response, declared.schema)
  }

  function ofJson({ headers, text }: Exchange, response: Members, schema: unknown): string | undefined {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      // A provider may say that it sends JSON, and send something else.
      return response['x-error-codes'] === undefined ? undefined : 'is no JSON'
    }
    const codes = response['x-error-codes']
    const isOurs = Object(value).request_id === headers.get('x-request-id')
    if (Array.isArray(codes) && isOurs) {
      const [ours = schema] = Object(schema).anyOf ?? []
      const code = codeIn(value)
      // An answer of no operation: the contract has the operation here, and the installation that was asked has it elsewhere.
      const isOfNone = code === 'route_not_found' && codes.includes('not_sold')
      return breach(value, ours) ?? (isOfNone || codes.includes(code) ? undefined : `the code ${code} is not declared`)
    }
    return breach(value, schema)
  }

  return { undeclared, find, breach, document, resolved }
}

/** Our code, wherever the protocol has a place for it. */
function codeIn(value: unknown): unknown {
  const { code, error } = Object(value)
  const { code: own, details } = Object(error)
  return Array.isArray(details) ? Object(details[0]).reason : (own ?? code)
}

/** References by the name that the validator knows the document by, and bounds as JSON Schema has them since its sixth draft. */
function forAjv(name: string, value: unknown): unknown {
  if (name === '$ref' && typeof value === 'string') return `contract${value}`
  // Nearly every value: it is asked of each in the document, before the first test of a file.
  if (typeof value !== 'object' || value === null || !('exclusiveMinimum' in value || 'exclusiveMaximum' in value))
    return value
  const { exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = Object(value)
  if (exclusiveMinimum === true)
    return { ...rest, exclusiveMinimum: minimum, ...(maximum !== undefined && { maximum }) }
  if (exclusiveMaximum === true)
    return { ...rest, exclusiveMaximum: maximum, ...(minimum !== undefined && { minimum }) }
  return value
}

/** Names of models have slashes, and one of them is followed by what is to be done. The plainest path first. */
function placesIn(document: Members): readonly Place[] {
  return Object.entries(Object(document.paths))
    .sort(([a], [b]) => parametersIn(a) - parametersIn(b) || b.length - a.length)
    .flatMap(([path, methods]) =>
      Object.entries(Object(methods)).map(([method, operation]) => ({
        operationId: String(Object(operation).operationId),
        method: method.toUpperCase(),
        pattern: new RegExp(
          `^${path
            .replaceAll(/[.]/g, '\\.')
            .replace('{model}', '.+')
            .replaceAll(/\{\w+\}/g, '[^/]+')}$`,
        ),
        responses: Object(Object(operation).responses),
      })),
    )
}

/** A path is the same in other spellings; a slash within a segment is none between two. */
function decoded(path: string): string {
  try {
    return path
      .split('/')
      .map((segment) => decodeURIComponent(segment).replaceAll('/', '%2F'))
      .join('/')
  } catch {
    return path
  }
}

const parametersIn = (path: string) => path.split('{').length

/** Also what some tests sell beside our own list. Made before anybody asks: it takes long enough to make connections wait. */
const declared = createDeclared(contractHere([imaginedForecast, imaginedModel, unquotable]).bytes)

/** Throws where an answer is not what the contract declares. */
export function requireDeclared(exchange: Exchange): void {
  const wrong = declared.undeclared(exchange)
  if (wrong === undefined) return
  const { method, path, status, text } = exchange
  throw new Error(`not in the contract: ${method} ${path.slice(0, 200)} → ${status}: ${wrong}\n${text.slice(0, 500)}`)
}
