/** TypeScript of a contract: what operations take and answer, for the client. What a schema leaves open stays `unknown`. */

type Schema = Readonly<Record<string, unknown>>
type Parameter = { readonly name: string; readonly in: string; readonly required: boolean; readonly schema: Schema }
type Operation = {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  readonly body: Schema | undefined
  readonly isBodyRequired: boolean
  readonly answer: Schema | undefined
  readonly isStreamed: boolean
}

const METHODS = ['get', 'post', 'patch', 'delete'] as const
const JSON_TYPE = 'application/json'
const EVENTS = 'text/event-stream'

/** The whole file. */
export function typesOfContract(contract: unknown): string {
  const schemas = record(at(contract, 'components', 'schemas'))
  const writer = createWriter(schemas)
  const all = operationsOf(contract)
  const sold = all.filter((one) => isSold(one) && one.path !== '' && !one.path.includes(':stream'))
  const free = all.filter((one) => !isSold(one) && one.answer !== undefined && /^\/(v1|apis\/v1)\//.test(one.path))
  const operations = sold.map((one) => memberOf(one, writer)).join('')
  const routes = free.map((one) => memberOf(one, writer)).join('')
  return [
    '// Written by scripts/client-types.ts from docs/releases/contracts/gateway.json. Do not edit.\n',
    `/** What is sold: what each operation takes, and what it answers. */\nexport interface Operations {\n${operations}}\n`,
    `/** What a key may look at for free. */\nexport interface FreeRoutes {\n${routes}}\n`,
    tableOf('OPERATIONS', 'Where each operation is: `q` can be quoted, `t` makes a task.', sold),
    tableOf('FREE_ROUTES', 'Where the free routes are.', free),
    ...writer.declarations(),
  ].join('\n')
}

/** The same of the account API: every route is one of a member’s. What is no JSON is downloaded by other means. */
export function typesOfAccount(contract: unknown): string {
  const writer = createWriter(record(at(contract, 'components', 'schemas')))
  const all = operationsOf(contract).filter(({ id, answer }) => id !== 'get_document' && answer !== undefined)
  return [
    '// Written by scripts/client-types.ts from docs/releases/contracts/account.json. Do not edit.\n',
    `/** What members do: what each operation takes, and what it answers. */\nexport interface AccountOperations {\n${all.map((one) => memberOf(one, writer)).join('')}}\n`,
    tableOf('ACCOUNT_OPERATIONS', 'Where each operation is.', all),
    ...writer.declarations().slice(1),
  ].join('\n')
}

function operationsOf(contract: unknown): readonly Operation[] {
  return Object.entries(record(at(contract, 'paths'))).flatMap(([path, methods]) =>
    METHODS.flatMap((method) => {
      const found = at(methods, method)
      return found === undefined ? [] : [operationOf(path, method, found)]
    }),
  )
}

function operationOf(path: string, method: string, found: unknown): Operation {
  const content = record(at(found, 'responses', '200', 'content') ?? at(found, 'responses', '201', 'content'))
  return {
    id: String(at(found, 'operationId')),
    method: method.toUpperCase(),
    path,
    summary: String(at(found, 'summary')),
    parameters: list(at(found, 'parameters')).map((one) => ({
      name: String(at(one, 'name')),
      in: String(at(one, 'in')),
      required: at(one, 'required') === true,
      schema: record(at(one, 'schema')),
    })),
    body: schemaIn(at(found, 'requestBody', 'content')),
    isBodyRequired: at(found, 'requestBody', 'required') === true,
    answer: schemaIn(content),
    isStreamed: EVENTS in content,
  }
}

function schemaIn(content: unknown): Schema | undefined {
  const schema = at(content, JSON_TYPE, 'schema')
  return schema === undefined ? undefined : record(schema)
}

const hasHeader = ({ parameters }: Operation, ending: string) =>
  parameters.some((one) => one.in === 'header' && one.name.toLowerCase().endsWith(ending))
const isSold = (operation: Operation) => hasHeader(operation, 'idempotency-key')

/** One line for each: its method, its path and its marks. */
function tableOf(name: string, words: string, operations: readonly Operation[]): string {
  const lines = operations.map((one) => {
    const marks = `${hasHeader(one, '-cost-mode') ? 'q' : ''}${hasHeader(one, '-async') ? 't' : ''}`
    return `  ${one.id}: '${[one.method, one.path, marks].join(' ').trimEnd()}',\n`
  })
  return `/** ${words} */\nexport const ${name} = {\n${lines.join('')}} as const\n`
}

function memberOf(operation: Operation, writer: Writer): string {
  const { id, summary, answer } = operation
  const answered = answer === undefined ? 'unknown' : writer.type(withoutQuote(answer, writer))
  return `  /** ${summary}. */\n  ${id}: { input: ${inputOf(operation, writer)}; answer: ${answered} }\n`
}

function inputOf({ parameters, body, isBodyRequired, isStreamed }: Operation, writer: Writer): string {
  const named = parameters.filter((one) => (one.in === 'query' || one.in === 'path') && !isForOthers(one))
  const members = named.map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${writer.type(schema)}`)
  const others = parameters.some(isForOthers) ? ['[name: string]: QueryValue'] : []
  const parts = [
    ...(members.length + others.length > 0 ? [`{ ${[...members, ...others].join('; ')} }`] : []),
    ...(body === undefined ? [] : [isBodyRequired ? writer.type(body) : `Partial<${writer.type(body)}>`]),
    // Streams are for the SDKs of the protocols.
    ...(isStreamed ? ['{ stream?: false | null }'] : []),
  ]
  return parts.length === 0 ? 'Record<string, never>' : parts.join(' & ')
}

/** Of a query whose other parameters pass through. */
const isForOthers = ({ name, schema }: Parameter) => name === 'others' && schema.type === 'object'

/** A quote is asked for by a function of its own. */
function withoutQuote(schema: Schema, writer: Writer): Schema {
  const { $ref } = schema
  const target = typeof $ref === 'string' ? writer.target($ref) : schema
  const options = list(target.anyOf)
  const own = options.filter((one) => at(one, '$ref') !== '#/components/schemas/Quote')
  return own.length === options.length || own.length !== 1 ? schema : record(own[0])
}

type Writer = {
  readonly type: (schema: Schema) => string
  readonly target: (ref: string) => Schema
  readonly declarations: () => readonly string[]
}

const PREFIX = '#/components/schemas/'

function createWriter(schemas: Schema): Writer {
  const wanted = new Set<string>()
  const written = new Map<string, string>()

  function name(ref: string): string {
    const id = ref.slice(PREFIX.length)
    wanted.add(id)
    return nameOf(id)
  }

  function type(schema: Schema): string {
    const known = typeOf(schema)
    return schema.nullable === true && known !== 'unknown' && !/(^|\| )null$/.test(known) ? `${known} | null` : known
  }

  function typeOf(schema: Schema): string {
    const { $ref, enum: values, anyOf, oneOf } = schema
    // What some models have a price for is refused for the others alone.
    if (isRefused(schema)) return /unless/.test(String(schema.description)) ? 'unknown' : 'never'
    if (typeof $ref === 'string') return name($ref)
    if (Array.isArray(values)) return union(values.map((value) => JSON.stringify(value).replaceAll('"', "'")))
    const options = list(anyOf ?? oneOf).map((one) => type(record(one)))
    if (options.length > 0) return union(options)
    if (schema.type === 'array') return `(${type(record(schema.items))})[]`
    if (schema.type === 'object') return objectOf(schema)
    return schema.type === 'integer' ? 'number' : typeof schema.type === 'string' ? schema.type : 'unknown'
  }

  /** What stands in `allOf` without a type of its own says what an object has, and is one here. */
  function objectOf({ allOf, properties, required, additionalProperties }: Schema): string {
    const bases = list(allOf).flatMap((one) => {
      const ref = at(one, '$ref')
      return typeof ref === 'string' ? [name(ref)] : []
    })
    const needed = new Set(list(required))
    const members = Object.entries(record(properties)).map(([key, value]) => {
      const schema = record(value)
      const words =
        typeof schema.description === 'string' ? `/** ${schema.description.replaceAll('*/', '* /')} */\n` : ''
      return `${words}${quoted(key)}${needed.has(key) ? '' : '?'}: ${type(schema)}\n`
    })
    const isOpen = additionalProperties === true || (isRecord(additionalProperties) && !('not' in additionalProperties))
    const body = [...members, ...(isOpen ? ['[name: string]: unknown\n'] : [])]
    const own = body.length === 0 ? [] : [`{\n${indent(body.join(''))}}`]
    const parts = [...bases, ...own]
    return parts.length === 0 ? 'Record<string, unknown>' : parts.join(' & ')
  }

  function declare(id: string): string {
    const schema = record(schemas[id])
    const asObject =
      schema.type === undefined && schema.properties !== undefined ? { ...schema, type: 'object' } : schema
    return `export type ${nameOf(id)} = ${type(asObject)}\n`
  }

  return {
    type,
    target: (ref) => record(schemas[ref.slice(PREFIX.length)]),
    /** Those that are named by what was written so far, and by each other. */
    declarations() {
      const ordered = ['Quote', 'Money'].filter((id) => id in schemas)
      for (const id of ordered) wanted.add(id)
      for (let before = -1; before !== wanted.size; ) {
        before = wanted.size
        for (const id of [...wanted]) if (!written.has(id)) written.set(id, declare(id))
      }
      const all = [...written].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
      return [
        'export type QueryValue = string | number | boolean | readonly (string | number | boolean)[] | undefined\n',
        ...all,
      ]
    },
  }
}

function isRefused({ not }: Schema): boolean {
  return isRecord(not) && Object.keys(not).length === 0
}

function union(options: readonly string[]): string {
  const each = [...new Set(options)].filter((one) => one !== 'never')
  if (each.length === 0) return 'never'
  return each.includes('unknown') ? 'unknown' : each.map((one) => (one.includes('&') ? `(${one})` : one)).join(' | ')
}

const nameOf = (id: string) =>
  id
    .split(/[._]/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')
const quoted = (key: string) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? key : JSON.stringify(key))
const indent = (text: string) => text.replaceAll(/^(?=.)/gm, '  ')

function isRecord(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
const record = (value: unknown): Schema => (isRecord(value) ? value : {})
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((found, key) => record(found)[key], value)
