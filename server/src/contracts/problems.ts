import { isMembers } from '../catalogue/member-table.ts'

/** What would make a contract useless to a program that reads it: a reference to nothing, a name twice, a place without a name. */
export function problemsIn(document: unknown): readonly string[] {
  const root = asObject(document)
  return [...danglingIn(root), ...ofOperations(root)]
}

/** Every reference in a value, wherever it stands. */
export function referencesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === '$ref' && typeof member === 'string' ? [member] : referencesIn(member),
  )
}

/** What a reference points to; undefined where there is nothing. */
export function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined
  return reference
    .slice(2)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, step) => {
      const members = asObject(value)
      return Object.hasOwn(members, step) ? members[step] : undefined
    }, root)
}

type Members = Readonly<Record<string, unknown>>

export type FoundOperation = {
  readonly path: string
  readonly method: string
  readonly operation: Members
}

/** Every operation of a document, with its place. */
export function operationsIn(document: unknown): readonly FoundOperation[] {
  return Object.entries(asObject(asObject(document).paths)).flatMap(([path, methods]) =>
    Object.entries(asObject(methods)).map(([method, operation]) => ({ path, method, operation: asObject(operation) })),
  )
}

function danglingIn(root: Members): readonly string[] {
  return [...new Set(referencesIn(root))]
    .filter((reference) => resolve(root, reference) === undefined)
    .map((reference) => `${reference} is nowhere`)
}

function ofOperations(root: Members): readonly string[] {
  const seen = new Set<unknown>()
  return operationsIn(root).flatMap(({ path, method, operation }) => {
    const { operationId, parameters, responses } = operation
    const problems: string[] = []
    if (typeof operationId !== 'string' || seen.has(operationId)) problems.push(`${operationId} is there twice`)
    seen.add(operationId)
    const named = listOf(parameters).flatMap((one) => (asObject(one).in === 'path' ? [String(asObject(one).name)] : []))
    const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name ?? '')
    if (named.sort().join() !== inPath.sort().join())
      problems.push(`${method} ${path} has other parameters than its path`)
    if (Object.keys(asObject(responses)).length === 0) problems.push(`${method} ${path} answers nothing`)
    return problems
  })
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

const NONE: Members = {}

export function asObject(value: unknown): Members {
  return isMembers(value) ? value : NONE
}
