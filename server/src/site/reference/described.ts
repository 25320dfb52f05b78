import type { Contract } from '../../contracts/contract.ts'
import { asObject, operationsIn, resolve } from '../../contracts/problems.ts'
import { FAULTS, type FaultCode } from '../../kernel/fault.ts'
import { asSchema, isSchema, type Resolve, type Schema } from './schema-tree.ts'

/** One route of the contract, as pages show it. */
export type Described = {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly tag: string
  readonly isPending: boolean
  readonly isPublic: boolean
  readonly parameters: readonly Parameter[]
  readonly body: { readonly type: string; readonly schema: Schema } | null
  readonly answers: readonly Answer[]
  readonly errors: readonly { readonly status: number; readonly code: FaultCode }[]
}

export type Parameter = {
  readonly name: string
  readonly in: string
  readonly isRequired: boolean
  readonly description: string
  readonly schema: Schema
}

export type Answer = {
  readonly status: string
  readonly description: string
  readonly type: string | null
  readonly schema: Schema | null
}

export type Reference = {
  readonly all: readonly Described[]
  readonly find: (id: string) => Described | undefined
  /** What each tag is about. */
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly resolve: Resolve
}

/** The contract that is served now with its routes; null where none could be verified. */
export type KeptReference = () => { readonly contract: Contract; readonly reference: Reference } | null

/** Read once for each contract: it is another after each switch of what is sold. */
export function keptReference(current: () => Contract | null): KeptReference {
  let kept: ReturnType<KeptReference> = null
  return () => {
    const contract = current()
    if (contract === null) return null
    if (kept?.contract !== contract) kept = { contract, reference: readReference(contract) }
    return kept
  }
}

/** Reads the very bytes that are served, so that a page can say nothing else than they. */
export function readReference({ bytes }: Pick<Contract, 'bytes'>): Reference {
  const document = asObject(JSON.parse(bytes.toString('utf8')))
  const resolved: Resolve = (schema) =>
    typeof schema.$ref === 'string' ? asSchema(resolve(document, schema.$ref)) : schema
  const all = operationsIn(document).map(({ path, method, operation }): Described => {
    const responses = Object.entries(asSchema(operation.responses)).map(
      ([status, response]) => [status, resolved(asSchema(response))] as const,
    )
    return {
      id: text(operation.operationId),
      method: method.toUpperCase(),
      path,
      summary: text(operation.summary),
      description: text(operation.description),
      tag: text(listIn(operation.tags)[0]),
      isPending: operation['x-definition'] === 'pending',
      isPublic: Array.isArray(operation.security) && operation.security.length === 0,
      parameters: listIn(operation.parameters).map((one) => parameterIn(asSchema(one))),
      body: contentIn(asSchema(operation.requestBody)),
      answers: responses.filter(([, response]) => !isRefusal(response)).map(([status, one]) => answerIn(status, one)),
      errors: responses.flatMap(([status, response]) => errorsIn(status, response)),
    }
  })
  const byId = new Map(all.map((one) => [one.id, one]))
  const tags = listIn(document.tags).map((tag) => ({
    name: text(asSchema(tag).name),
    description: text(asSchema(tag).description),
  }))
  return { all, find: (id) => byId.get(id), tags, resolve: resolved }
}

const text = (value: unknown) => (typeof value === 'string' ? value : '')
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function parameterIn(given: Schema): Parameter {
  const { name, description, required, schema } = given
  return {
    name: text(name),
    in: text(given.in),
    isRequired: required === true,
    description: text(description),
    schema: asSchema(schema),
  }
}

/** What is sent in JSON where that is one of several forms, else the first. */
function contentIn({ content }: Schema): { readonly type: string; readonly schema: Schema } | null {
  const forms = Object.entries(asSchema(content))
  const [type, form] = forms.find(([name]) => name === 'application/json') ?? forms[0] ?? []
  return type === undefined || !isSchema(form) ? null : { type, schema: asSchema(form.schema) }
}

const isRefusal = (response: Schema) => Array.isArray(response['x-error-codes'])

function answerIn(status: string, response: Schema): Answer {
  const content = contentIn(response)
  return {
    status,
    description: text(response.description),
    type: content?.type ?? null,
    schema: content?.schema ?? null,
  }
}

function errorsIn(status: string, response: Schema): Described['errors'] {
  return listIn(response['x-error-codes'])
    .filter((code): code is FaultCode => typeof code === 'string' && Object.hasOwn(FAULTS, code))
    .map((code) => ({ status: Number(status), code }))
}
