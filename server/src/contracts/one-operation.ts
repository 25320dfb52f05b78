import { canonicalBytes } from './canonical.ts'
import { asObject, operationsIn, referencesIn, resolve } from './problems.ts'

/** The contract of one operation, cut out of the bytes of all: its own place, and what it refers to. Undefined where there is none. */
export function contractOfOperation(bytes: Buffer, operationId: string): Buffer | undefined {
  const document = asObject(JSON.parse(bytes.toString('utf8')))
  const found = operationsIn(document).find(({ operation }) => operation.operationId === operationId)
  if (found === undefined) return undefined
  const { path, method, operation } = found
  const { components, paths, tags, ...head } = document
  const own = new Set(Array.isArray(operation.tags) ? operation.tags : [])
  return canonicalBytes({
    ...head,
    tags: Array.isArray(tags) ? tags.filter((tag) => own.has(asObject(tag).name)) : [],
    paths: { [path]: { [method]: operation } },
    components: { ...reachable(document, operation), securitySchemes: asObject(components).securitySchemes },
  })
}

/** What something refers to, and what that refers to, by its kind and name. */
export function reachable(document: unknown, from: unknown): Record<string, Record<string, unknown>> {
  const found = new Map<string, unknown>()
  const open = [...referencesIn(from)]
  for (let reference = open.pop(); reference !== undefined; reference = open.pop()) {
    if (found.has(reference)) continue
    const target = resolve(document, reference)
    found.set(reference, target)
    open.push(...referencesIn(target))
  }
  const components: Record<string, Record<string, unknown>> = {}
  for (const [reference, target] of found) {
    const [, , kind = '', name = ''] = reference.split('/')
    components[kind] = { ...components[kind], [name]: target }
  }
  return components
}
